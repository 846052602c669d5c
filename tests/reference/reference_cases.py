"""Data and parameters of the reference fits, and what is recorded of each fit.

The results are those of version 0.2.0. They are compared through the public interface only:
features, labels, the topology of the tree and the number of clusters must be equal, other numbers
up to rounding.
"""

import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

LINKAGES = ("single", "complete", "average", "weighted", "ward", "centroid", "median")


def clusters(n=40, p=300, k=3, q=30, shift=2.0, seed=0):
    """Normal data with k clusters, each with a higher mean in q / k features of its own."""
    rng = np.random.default_rng(seed)
    X, labels, own = rng.standard_normal((n, p)), np.arange(n) * k // n, q // k
    for c in range(k):
        X[labels == c, c * own : (c + 1) * own] += shift
    return X


def holes(X, share=0.05, seed=1):
    """Replace a share of the values by NaN."""
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def spoilt(X, seed=2):
    """Add extreme values to some cells, and move two samples far from all others."""
    rng = np.random.default_rng(seed)
    X = X.copy()
    X[rng.random(X.shape) < 0.005] += 15.0
    X[[3, 17]] += rng.standard_normal((2, X.shape[1])) * 6.0
    return X


def ties():
    """Small integers, so that many distances, variances and ranks are equal."""
    return np.round(clusters(n=24, p=60, q=12)).astype(float)


def awkward():
    """Constant and duplicated features, and duplicated samples."""
    X = clusters(n=30, p=120, seed=5)
    X[:, 40:60], X[:, 60:70] = 3.0, X[:, :10]
    X[[1, 2, 11, 21]] = X[[0, 0, 10, 20]]
    return X


def noise(n=50, p=200, seed=7):
    return np.random.default_rng(seed).standard_normal((n, p))


def many_features():
    return clusters(n=60, p=20_000, k=4, q=200, shift=1.5, seed=9)


def in_storage(kind):
    """Return the data in a storage backend; packages are imported when they are needed."""
    X = clusters(n=40, p=600, k=3, q=30, seed=11)
    folder = Path(tempfile.mkdtemp())
    if kind == "memory map":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    if kind == "HDF5":
        import h5py

        return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X, chunks=(40, 50))
    if kind == "Zarr":
        import zarr

        array = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(40, 70), dtype="f8")
        array[:] = X
        return array
    if kind == "sparse":
        return sparse.csr_array(X)
    if kind == "Dask":
        import dask.array

        return dask.array.from_array(X, chunks=(40, 130))
    import array_api_strict

    return array_api_strict.asarray(X)


STORAGE = ("memory", "memory map", "HDF5", "Zarr", "sparse", "Dask", "device")
NEW_SAMPLES = clusters(n=15, seed=33)
PAPER = {"n_features_to_select": 30, "n_clusters": 3, "random_state": 0}

# Name of the case: method, parameters, function that returns the data.
CASES = {
    "paper": ("mrshc", PAPER, clusters),
    "paper, K unknown": ("mrshc", {"n_features_to_select": 30, "random_state": 0}, clusters),
    "paper, q unknown": ("mrshc", {"n_clusters": 3, "random_state": 0}, clusters),
    "paper, nothing known": ("mrshc", {"random_state": 0}, clusters),
    "paper, candidates": (
        "mrshc",
        {"n_features_to_select": [5, 15, 40], "random_state": 3},
        lambda: clusters(n=60, k=4, q=40, shift=1.5, seed=3),
    ),
    "paper, rank 2": ("mrshc", PAPER | {"rank": 2}, clusters),
    "paper, ranks to 8": ("mrshc", PAPER | {"max_rank": 8}, clusters),
    "paper, 10 references": ("mrshc", PAPER | {"n_references": 10}, clusters),
    "paper, tolerance": ("mrshc", PAPER | {"feature_tolerance": 4}, clusters),
    "paper, grand mean": ("mrshc", PAPER | {"center": "grand"}, lambda: clusters() + 0.3),
    "paper, not centred": ("mrshc", PAPER | {"center": False}, lambda: clusters() + 0.3),
    "paper, more clusters than supported": ("mrshc", PAPER | {"n_clusters": 7}, clusters),
    "paper, weak clusters": ("mrshc", {"random_state": 1}, lambda: clusters(shift=0.8, seed=4)),
    "paper, noise": ("mrshc", {"random_state": 0}, noise),
    "paper, more samples than features": (
        "mrshc",
        {"random_state": 0},
        lambda: clusters(n=150, p=40, k=3, q=9, shift=3.0),
    ),
    "paper, eight features": (
        "mrshc",
        {"random_state": 0},
        lambda: clusters(n=40, p=8, k=2, q=4, shift=3.0),
    ),
    "paper, ties": ("mrshc", {"random_state": 0}, ties),
    "paper, awkward": ("mrshc", {"random_state": 0}, awkward),
    "paper, 5 % missing": ("mrshc", PAPER, lambda: holes(clusters())),
    "paper, 20 % missing": ("mrshc", {"random_state": 0}, lambda: holes(clusters(), 0.2)),
    "paper, missing, cityblock": (
        "mrshc",
        PAPER | {"metric": "cityblock"},
        lambda: holes(clusters()),
    ),
    "paper, missing, correlation": (
        "mrshc",
        PAPER | {"metric": "correlation"},
        lambda: holes(clusters()),
    ),
    "paper, missing in single precision": (
        "mrshc",
        PAPER,
        lambda: holes(clusters()).astype(np.float32),
    ),
    "paper, cityblock": ("mrshc", {"metric": "cityblock", "random_state": 0}, clusters),
    "paper, correlation": ("mrshc", {"metric": "correlation", "random_state": 0}, clusters),
    "paper, single precision": ("mrshc", PAPER, lambda: clusters().astype(np.float32)),
    "paper, tiny values": ("mrshc", PAPER, lambda: clusters() * 1e-9),
    "paper, large offset": ("mrshc", PAPER, lambda: clusters() + 1e6),
    "paper, robust": ("mrshc", PAPER | {"robust": True}, lambda: spoilt(clusters())),
    "paper, robust, nothing known": (
        "mrshc",
        {"robust": True, "random_state": 0},
        lambda: spoilt(clusters()),
    ),
    "paper, robust, missing": (
        "mrshc",
        PAPER | {"robust": True},
        lambda: holes(spoilt(clusters())),
    ),
    "paper, robust, eight samples": (
        "mrshc",
        {"robust": True, "random_state": 0},
        lambda: clusters(n=8, p=100, k=2, q=20, shift=4.0),
    ),
    "paper, 20,000 features": (
        "mrshc",
        {"n_features_to_select": 200, "n_clusters": 4, "random_state": 0},
        many_features,
    ),
    "association": ("association", {}, clusters),
    "association, K given": ("association", {"n_clusters": 5}, clusters),
    "association, four clusters": (
        "association",
        {},
        lambda: clusters(n=60, p=1000, k=4, q=100, shift=1.5, seed=3),
    ),
    "association, noise": ("association", {}, noise),
    "association, noise, K given": ("association", {"n_clusters": 3}, noise),
    "association, correlation": ("association", {"metric": "correlation"}, clusters),
    "association, cityblock": (
        "association",
        {"metric": "cityblock", "linkage": "average"},
        clusters,
    ),
    "association, ties": ("association", {}, ties),
    "association, awkward": ("association", {}, awkward),
    "association, missing": ("association", {}, lambda: holes(clusters())),
    "association, missing, correlation": (
        "association",
        {"metric": "correlation"},
        lambda: holes(clusters()),
    ),
    "association, robust": ("association", {"robust": True}, lambda: spoilt(clusters())),
    "association, single precision": (
        "association",
        {},
        lambda: clusters().astype(np.float32),
    ),
    "association, six samples": (
        "association",
        {},
        lambda: clusters(n=6, p=80, k=2, q=40, shift=5.0),
    ),
    "association, four features": (
        "association",
        {},
        lambda: clusters(n=30, p=4, k=2, q=4, shift=4.0),
    ),
    "association, more samples than features": (
        "association",
        {},
        lambda: clusters(n=150, p=40, k=3, q=9, shift=3.0),
    ),
    "association, 20,000 features": ("association", {}, many_features),
    "SHC": ("shc", {"n_features_to_select": 30, "n_clusters": 3}, clusters),
    "SHC, candidates": (
        "shc",
        {"n_features_to_select": [10, 30, 60], "n_clusters": 3, "random_state": 0},
        clusters,
    ),
    "SHC, bounds": ("shc", {"l1_bound": "auto", "n_clusters": 3, "random_state": 0}, clusters),
    "SHC, cityblock": (
        "shc",
        {"l1_bound": 4.0, "metric": "cityblock", "linkage": "average", "n_clusters": 3},
        clusters,
    ),
    "SHC, missing": ("shc", {"l1_bound": 4.0, "n_clusters": 3}, lambda: holes(clusters())),
    "SHC, missing, cityblock": (
        "shc",
        {"l1_bound": 4.0, "metric": "cityblock", "n_clusters": 3},
        lambda: holes(clusters()),
    ),
    "SHC, spike and slab": (
        "shc",
        {"penalty": "ssl", "n_clusters": 3, "n_permutations": 3, "random_state": 0},
        lambda: clusters(n=24, p=100, shift=3.0),
    ),
    "SHC, one spike penalty": (
        "shc",
        {"penalty": "ssl", "spike_penalty": 30.0, "n_clusters": 3},
        clusters,
    ),
    "SHC, ward": ("shc", {"l1_bound": 3.0, "linkage": "ward", "n_clusters": 3}, clusters),
    "variance": ("hmv", {"n_features_to_select": 50, "n_clusters": 3}, clusters),
    "variance, correlation": (
        "hmv",
        {"n_features_to_select": 50, "metric": "correlation", "n_clusters": 3},
        lambda: holes(clusters()),
    ),
    "all features": (
        "hmv",
        {"n_features_to_select": 300, "linkage": "ward", "n_clusters": 3},
        clusters,
    ),
    "COSA": ("cosa", {"n_clusters": 3}, clusters),
    "COSA, missing": ("cosa", {"n_clusters": 3, "n_neighbors": 5}, lambda: holes(clusters())),
    "sparse K-means": ("sparse-kmeans", {"n_clusters": 3, "random_state": 0}, clusters),
    "sparse K-means, one bound": (
        "sparse-kmeans",
        {"n_clusters": 3, "l1_bound": 4.0, "random_state": 0},
        clusters,
    ),
    "sparse K-means, q": (
        "sparse-kmeans",
        {"n_clusters": 3, "n_features_to_select": 30, "random_state": 0},
        clusters,
    ),
}
for _linkage in LINKAGES:
    CASES[f"paper, {_linkage}"] = (
        "mrshc",
        {"linkage": _linkage, "n_features_to_select": [10, 30], "random_state": 0},
        lambda: clusters(shift=1.5, seed=6),
    )
    CASES[f"association, {_linkage}"] = (
        "association",
        {"linkage": _linkage},
        lambda: clusters(shift=1.5, seed=6),
    )
for _n in (3, 4, 5, 7, 9, 12):
    CASES[f"paper, {_n} samples"] = (
        "mrshc",
        {"random_state": 0},
        lambda n=_n: clusters(n=n, p=50, k=2, q=10, shift=4.0),
    )
for _kind in STORAGE:
    _data = (
        (lambda: clusters(n=40, p=600, k=3, q=30, seed=11))
        if _kind == "memory"
        else (lambda kind=_kind: in_storage(kind))
    )
    CASES[f"paper, {_kind}"] = ("mrshc", PAPER, _data)
    CASES[f"association, {_kind}"] = ("association", {}, _data)
    CASES[f"SHC, {_kind}"] = ("shc", {"l1_bound": 4.0, "n_clusters": 3}, _data)

# Cases in which further methods of the fitted estimator, and further functions, are recorded.
WITH_MARKERS = ("paper", "paper, correlation", "association", "SHC", "COSA", "paper, robust")
WITH_PREDICTION = (
    *("paper", "paper, correlation", "paper, cityblock", "paper, 5 % missing", "paper, robust"),
    *("association", "SHC", "variance", "COSA", "sparse K-means, q"),
)
WITH_SIGNIFICANCE = ("paper", "association", "association, noise", "all features", "SHC")
WITH_STABILITY = ("paper", "association", "all features", "COSA")

# What only the paper's procedure has; version 0.2.0 filled it for both.
_OF_THE_PAPER = ("search best_rank", "search removed", "tests ")

# Columns of `search_results_` that are recorded.
_COLUMNS = (
    *("n_features_target", "n_features", "rank", "n_leaves", "silhouette", "chosen"),
    *("n_associated", "strength", "gap", "gap_sd", "criterion", "best_rank", "removed"),
)


def describe(name, model, X, functions):
    """Return what is recorded of a fit: a dict of lists of numbers.

    `functions` are `branch_significance` and `stability`.
    """
    described = {"features": np.flatnonzero(model.get_support())}
    for attribute in (
        *("labels_", "linkage_matrix_", "n_clusters_", "rank_", "supported_", "l1_bound_"),
        *("associated_features_", "outlier_samples_", "criterion_", "n_iter_", "spike_penalty_"),
    ):
        if getattr(model, attribute, None) is not None:
            described[attribute] = getattr(model, attribute)
    for attribute in ("feature_qvalues_", "feature_weights_"):
        if hasattr(model, attribute):
            described[attribute] = _few(getattr(model, attribute))
    for column in _COLUMNS:
        if column in getattr(model, "search_results_", {}):
            described[f"search {column}"] = model.search_results_[column]
    if hasattr(model, "split_tests_"):
        for column in ("node", "drop", "expected_drop", "standard_error"):
            described[f"tests {column}"] = model.split_tests_[column]
    if hasattr(model, "components_"):
        described["components"] = np.abs(model.components_).sum(axis=1)
    if name in WITH_MARKERS:
        table = model.markers(X, alpha=1.0)
        for column in ("node", "feature", "effect_size", "p_value", "q_value"):
            described[f"markers {column}"] = _few(table[column].to_numpy())
    if name in WITH_PREDICTION:
        described["predicted"] = model.predict(NEW_SAMPLES)
    significance, stability = functions
    if name in WITH_SIGNIFICANCE:
        tested = significance(model, X, n_simulations=20, random_state=0)
        for field in ("node", "statistic", "p_value", "labels", "n_simulations"):
            described[f"significance {field}"] = getattr(tested, field)
    if name in WITH_STABILITY:
        result = stability(model, X, n_resamples=8, random_state=0)
        described["stability jaccard"] = result.cluster_jaccard
        described["stability branches"] = result.branch_support
        described["stability features"] = _few(result.feature_frequency)
    if CASES[name][0] == "association":
        described = {k: v for k, v in described.items() if not k.startswith(_OF_THE_PAPER)}
    return {key: np.asarray(value, dtype=float).tolist() for key, value in described.items()}


def _few(values):
    """Return at most about 300 of many values, evenly spaced."""
    flat = np.asarray(values).ravel()
    return flat[:: max(1, flat.size // 300)]
