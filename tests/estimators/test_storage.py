"""Fits to stored data are those to the array; orders and units of the data do not matter."""

import numpy as np
import pytest
from sklearn.base import clone

from mrshc.core import sparse_components
from mrshc.estimators import COSA, SHC, AssociationHC, HighVarianceHC, MrSHC, SparseKMeans
from storage_backends import STORAGE_BACKENDS, numbers_in, store, use_small_blocks

pytestmark = pytest.mark.filterwarnings("ignore::mrshc.estimators.UnsupportedClustersWarning")


def clustered(n=24, p=150, seed=0):
    """Return three clusters of samples that show in some forty features."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p))
    A[: n // 3, :25] += 2.0
    A[n // 3 : n // 2, 15:40] -= 2.5
    return A


A = clustered()
HOLES = np.where(np.random.default_rng(1).random(A.shape) < 0.05, np.nan, A)
MODELS = {
    "MrSHC": MrSHC([10, 20], max_rank=2, n_references=5, n_clusters=3, random_state=0),
    "AssociationHC": AssociationHC(),
    "SHC": SHC([10, 20], n_permutations=2, n_clusters=3, random_state=0),
    "SHC, cityblock": SHC(10, metric="cityblock", n_clusters=3),
    "HighVarianceHC": HighVarianceHC(20, n_clusters=3, metric="correlation"),
    "COSA": COSA(n_clusters=3),
    "SparseKMeans": SparseKMeans(3, l1_bound=3.0, random_state=0),
}
# Every storage with one model, and every model with one storage of each class.
PAIRS = [("MrSHC", place) for place in STORAGE_BACKENDS]
PAIRS += [(name, place) for name in MODELS for place in ("map", "CSC", "Dask", "torch")]
PAIRS.append(("AssociationHC", "array API"))


def assert_same_fit(found, expected, rtol=1e-7):
    np.testing.assert_array_equal(found.get_support(), expected.get_support())
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    for name in ("linkage_matrix_", "feature_weights_", "feature_qvalues_", "components_"):
        if hasattr(expected, name):
            values = getattr(expected, name)
            np.testing.assert_allclose(getattr(found, name), values, rtol=rtol, atol=1e-9)
    for name, values in getattr(expected, "search_results_", {}).items():
        np.testing.assert_allclose(found.search_results_[name], values, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize(("name", "place"), dict.fromkeys(PAIRS))
def test_fits_are_those_to_the_array(name, place, tmp_path, monkeypatch):
    use_small_blocks(monkeypatch, 24 * 40)
    monkeypatch.setattr(sparse_components, "_ALL_VALUES", 24 * 149)
    table = A if name == "SparseKMeans" else HOLES
    X = store(place, table, tmp_path / "data")
    expected = clone(MODELS[name]).fit(numbers_in(place, table))
    found = clone(MODELS[name]).fit(X)
    assert_same_fit(found, expected)
    np.testing.assert_array_equal(found.predict(X), expected.predict(numbers_in(place, table)))
    np.testing.assert_allclose(found.transform(X), numbers_in(place, table)[:, found.get_support()])
    if place == "AnnData":
        assert found.sample_names_in_[0] == "s0"
        assert found.get_feature_names_out()[0].startswith("f")
    if name == "MrSHC":
        distances = expected.sample_distances(numbers_in(place, table))
        np.testing.assert_allclose(found.sample_distances(X), distances, atol=1e-9)
        np.testing.assert_allclose(
            found.markers(X, alpha=1.0)["effect_size"],
            expected.markers(numbers_in(place, table), alpha=1.0)["effect_size"],
        )


@pytest.mark.parametrize("place", ["map", "CSR", "Dask", "array API"])
def test_few_features_are_loaded_and_checked_like_an_array(place, tmp_path):
    few = A[:, :20].copy()
    model = MrSHC(5, rank=1, n_references=5, random_state=0)
    expected = clone(model).fit(few)
    assert_same_fit(clone(model).fit(store(place, few, tmp_path / "few")), expected)
    for value, message in ((np.nan, "feature 3 of X has none"), (np.inf, "holds inf")):
        bad = A.copy()
        bad[:, 3] = value
        with pytest.raises(ValueError, match=message):
            clone(model).fit(store(place, bad, tmp_path / str(value)))
    expected = clone(model).fit(A)
    with pytest.raises(ValueError, match="has 70"):
        expected.predict(store(place, A[:, :70], tmp_path / "other"))
    with pytest.raises(ValueError, match="must have the 150 features of the fit, but has 70"):
        expected.transform(store(place, A[:, :70], tmp_path / "more"))


# Orders, units and copies -------------------------------------------------------------------


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "SparseKMeans"])
@pytest.mark.parametrize("table", [A, HOLES], ids=["complete", "missing values"])
def test_order_unit_sign_and_offset_of_the_data_do_not_matter(name, table):
    rng = np.random.default_rng(3)
    expected = clone(MODELS[name]).fit(table)
    rows, columns = rng.permutation(24), rng.permutation(150)
    order = {
        "samples": (table[rows], rows, slice(None)),
        "features": (table[:, columns], slice(None), columns),
        "unit": (table * 1e-9, slice(None), slice(None)),
        "large unit": (table * 1e60, slice(None), slice(None)),
    }
    if name != "COSA":  # whose quartiles are single values
        order["sign"] = (-table, slice(None), slice(None))
    if name != "HighVarianceHC":  # correlations change with the offsets of features
        order["offset"] = (table + 50 * rng.normal(size=150), slice(None), slice(None))
    if name == "AssociationHC" and table is HOLES:  # which takes long
        order = {what: order[what] for what in ("samples", "unit")}
    for what, (X, samples, features) in order.items():
        if what in ("samples", "features") and name == "SHC":
            continue  # permutations of the distances depend on the order
        found = clone(MODELS[name]).fit(X)
        np.testing.assert_array_equal(found.get_support(), expected.get_support()[features], what)
        if name != "MrSHC" or what not in ("samples", "features"):
            assert same_partition(found.labels_, expected.labels_[samples]), what
        heights = found.distances_ / found.distances_[-1]
        np.testing.assert_allclose(
            heights, expected.distances_ / expected.distances_[-1], rtol=1e-5
        )
