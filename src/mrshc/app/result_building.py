"""What a fitted method found: clusters, features, scores, and how they came to be."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.app.messages import late_notes, notes_on
from mrshc.app.plan import Plan
from mrshc.comparison import Comparison, whole_counts
from mrshc.core.data.host_transfer import to_host
from mrshc.core.trees.silhouette import average_silhouette, silhouette_widths
from mrshc.core.trees.tree import Tree
from mrshc.io.comparison_file_version import COMPARISON_FORMAT, COMPARISON_VERSION
from mrshc.io.raw_table import unique
from mrshc.io.result import FORMAT, FORMAT_VERSION, MOST_CUTS, Result
from mrshc.metrics import classification_error_rate, purity

_PACKAGES = ("mrshc", "numpy", "scipy", "scikit-learn", "numba", "pandas", "matplotlib")
# Methods without a rule for the number of clusters are cut where the silhouette is best, within
# what a reader can still tell apart.
_MOST_CLUSTERS = 10
_KINDS = {"f": "number", "i": "whole"}


def result_of(plan: Plan, model: Any, said: tuple[str, ...]) -> Result:
    """Return what a fitted estimator found, with all that is worth knowing about it."""
    support = model.get_support()
    distances = model.sample_distances(plan.data)
    labels, search = _clusters(model, distances)
    features = _features(plan, model, labels)
    samples = _samples(plan, model, labels, distances=distances)
    about = _about(plan, model, labels, search=search, said=said)
    known = plan.table.sample_annotations
    own = samples.shape[1] - known.shape[1]
    if about["scores"] is not None:  # the annotation may have had to change its name
        about["scores"]["truth"] = dict(zip(known, samples.columns[own:], strict=True))[plan.truth]
    about["chosen"]["silhouette"] = average_silhouette(distances, labels)
    about["annotations"] = {
        "samples": _kinds(samples, skip=own),
        "features": _kinds(features, skip=0)[: plan.table.feature_annotations.shape[1]],
    }
    markers = _markers(plan, model, labels)
    about["n_rows"] = {"features": len(features), "markers": len(markers)}
    return Result(
        about=about,
        samples=samples,
        features=features.sort_values(
            ["selected", "effect_size"], ascending=False, kind="stable", na_position="last"
        ),
        selected=pd.DataFrame(
            plan.matrix.columns(np.flatnonzero(support)).astype(np.float64),
            index=samples.index,
            columns=pd.Index(plan.feature_names[support], name="feature", dtype=object),
        ),
        silhouettes=pd.DataFrame(
            {
                f"cut_{k}": silhouette_widths(distances, model.cut(k))
                for k in range(2, min(MOST_CUTS, len(samples)) + 1)
            },
            index=samples.index,
        ),
        markers=markers,
        linkage_matrix_=model.linkage_matrix_,
    )


def _clusters(
    model: Any, distances: NDArray[np.float64]
) -> tuple[NDArray[np.intp], list[dict[str, Any]]]:
    """Return the clusters, and the table of what was tried."""
    search = _search(model)
    if getattr(model, "supported_", None) is False:
        return model.cut(1), search
    given = int(model.labels_.max()) + 1 if hasattr(model, "labels_") else None
    if given is not None and search:
        return model.labels_, search
    cuts = {*range(2, min(_MOST_CLUSTERS, len(model.linkage_matrix_)) + 1), given} - {None}
    widths = {k: average_silhouette(distances, model.cut(k)) for k in sorted(cuts)}
    best = max(widths, key=lambda k: widths[k]) if given is None else given
    if not search:
        search = [
            {"n_clusters": k, "silhouette": width, "chosen": k == best}
            for k, width in widths.items()
        ]
    return model.cut(best), search


def _search(model: Any) -> list[dict[str, Any]]:
    """Return what a method tried, a row for each candidate."""
    tried = getattr(model, "search_results_", {})
    return [
        {name: _plain(column[i]) for name, column in tried.items()}
        for i in range(len(next(iter(tried.values()), ())))
    ]


def _features(plan: Plan, model: Any, labels: NDArray[np.intp]) -> pd.DataFrame:
    """Return all that is known about each feature, in the order of the data."""
    p = plan.kept.size
    about = plan.table.feature_annotations.iloc[plan.kept]
    loadings = np.atleast_2d(
        getattr(model, "components_", getattr(model, "feature_weights_", np.empty((0, p))))
    )
    means, effect = _separation(plan, model, labels)
    columns: dict[str, Any] = {
        "position": np.arange(1, p + 1),
        "selected": model.get_support(),
        "effect_size": effect,
    }
    if hasattr(model, "feature_qvalues_"):
        columns["q_value"] = model.feature_qvalues_
        columns["associated"] = np.isin(np.arange(p), model.associated_features_)
    columns |= {f"loading_{k}": row for k, row in enumerate(loadings, start=1)}
    columns |= {f"mean_cluster_{k}": row for k, row in enumerate(means, start=1)}
    annotations = about.set_axis(_titles(about, reserved=["feature", *columns]), axis=1)
    found = pd.DataFrame(columns, index=pd.Index(plan.feature_names, name="feature", dtype=object))
    return pd.concat([annotations.set_axis(found.index, axis=0), found], axis=1)


def _separation(
    plan: Plan, model: Any, labels: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of the clusters, and the share of each feature's variance between them."""
    data = model.data_of_fit(plan.data)
    usual = np.delete(np.arange(len(labels)), getattr(model, "outlier_samples_", []))
    blocks = data.select_samples(usual).map_blocks(partial(_separated, labels=labels[usual]))
    means, effects = zip(*blocks, strict=True)
    return np.concatenate(means, axis=1), np.concatenate(effects)


def _separated(
    block: Any, _: int, __: Any, *, labels: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same of a block of features."""
    X = to_host(block)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cluster without a value has no mean
        groups = [X[labels == k] for k in range(labels.max() + 1)]
        means = np.array([np.nanmean(group, axis=0, dtype=np.float64) for group in groups])
        centre = np.nanmean(X, axis=0, dtype=np.float64)
    counts = np.array([np.sum(~np.isnan(group), axis=0) for group in groups])
    between = np.nansum(counts * (means - centre) ** 2, axis=0)
    total = np.zeros(X.shape[1])
    for row in X:  # a row at a time: the data may be large
        total += np.nan_to_num((row - centre) ** 2)
    varies = (total > 0) & (len(groups) > 1)  # one cluster separates nothing
    effect = np.divide(between, total, out=np.full(X.shape[1], np.nan), where=varies)
    return means, np.minimum(effect, 1.0)


def _samples(
    plan: Plan, model: Any, labels: NDArray[np.intp], *, distances: NDArray[np.float64]
) -> pd.DataFrame:
    order = Tree(linkage_matrix=model.linkage_matrix_).leaf_order
    columns: dict[str, Any] = {
        "cluster": labels + 1,
        "leaf": np.argsort(order) + 1,
        "silhouette": silhouette_widths(distances, labels),
    }
    if hasattr(model, "outlier_samples_"):
        columns["outlying"] = np.isin(np.arange(labels.size), model.outlier_samples_)
    annotations = plan.table.sample_annotations
    # "outlying" is a column of robust fits only, but means the same wherever tables are read.
    reserved = dict.fromkeys(["sample", *columns, "outlying"])
    titles = _titles(annotations, reserved=list(reserved))
    found = pd.DataFrame(
        columns, index=pd.Index(plan.table.sample_names, name="sample", dtype=object)
    )
    renamed = annotations.set_axis(titles, axis=1).set_axis(found.index, axis=0)
    return pd.concat([found, renamed], axis=1)


def _titles(annotations: pd.DataFrame, *, reserved: list[str]) -> list[str]:
    """Return titles of annotations; those that our own columns have are changed."""
    titles = [*reserved, *map(str, annotations.columns)]
    return unique(titles, "annotation")[len(reserved) :]


def _markers(plan: Plan, model: Any, labels: NDArray[np.intp]) -> pd.DataFrame:
    """Return what marks clusters and splits: features by name, clusters counted from one."""
    # The clusters of a method with a rule for their number need not be a cut of the tree.
    k = None if hasattr(model, "labels_") else int(labels.max()) + 1
    found = model.markers(plan.data, k=k)
    for side in ("inside", "outside"):
        found[side] = [
            ", ".join(str(int(cluster) + 1) for cluster in text.split(", ")) for text in found[side]
        ]
    names = plan.feature_names[found["feature"].to_numpy(dtype=np.intp)]
    return found.assign(feature=names).drop(columns="name")


def _kinds(frame: pd.DataFrame, *, skip: int) -> list[dict[str, str]]:
    return [
        {"name": str(name), "kind": _KINDS.get(frame[name].dtype.kind, "text")}
        for name in frame.columns[skip:]
    ]


def _about(
    plan: Plan,
    model: Any,
    labels: NDArray[np.intp],
    *,
    search: list[dict[str, Any]],
    said: tuple[str, ...],
) -> dict[str, Any]:
    n_clusters = int(labels.max()) + 1
    associated = getattr(model, "associated_features_", None)
    outlying = getattr(model, "outlier_samples_", ())
    tests = getattr(model, "split_tests_", {})
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "command": plan.command,
        "work": plan.work,
        "data": about_data(plan),
        "preprocessing": [asdict(step) for step in plan.log],
        "method": plan.method,
        "parameters": {name: _plain(v) for name, v in plan.parameters.items()},
        "chosen": {
            "n_features": int(model.n_features_selected_),
            "rank": _plain(getattr(model, "rank_", None)),
            "n_clusters": n_clusters,
        },
        "cluster_sizes": np.bincount(labels, minlength=n_clusters).tolist(),
        "supported": getattr(model, "supported_", None),
        "n_associated": None if associated is None else len(associated),
        "outliers": [str(plan.table.sample_names[i]) for i in outlying],
        "scores": _scores(plan, model, labels),
        "warnings": list(said),
        "search": search,
        "splits": [
            {name: _plain(column[i]) for name, column in tests.items()}
            for i in range(len(tests.get("node", ())))
        ],
        "versions": versions(),
    }


def about_data(plan: Plan) -> dict[str, Any]:
    """Say which data were clustered."""
    table = plan.table
    read = table.data if table.data.in_memory else plan.matrix
    return {
        "source": table.source,
        "reading": table.reading,
        "n_samples": int(table.X.shape[0]),
        "n_features": int(table.X.shape[1]),
        "n_missing": plan.n_missing,
        "fingerprint": read.fingerprint(),
        "notes": [*table.notes, *late_notes(plan)],
    }


def versions() -> dict[str, str]:
    """Say with which versions of what a result was made."""
    return {p: version(p) for p in _PACKAGES} | {"python": platform.python_version()}


def known_classes(plan: Plan) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return which samples have a known class, and those classes."""
    if plan.truth is None:
        return np.zeros(len(plan.table.sample_names), dtype=bool), np.array([])
    classes = plan.table.sample_annotations[plan.truth]
    known = classes.notna().to_numpy()
    return known, classes[known].astype(str).to_numpy()


def _scores(plan: Plan, model: Any, labels: NDArray[np.intp]) -> dict[str, Any] | None:
    """Compare with the true classes, where they are known."""
    known, classes = known_classes(plan)
    if not known.any():
        return None
    n_classes = len(set(classes))
    at_classes = model.cut(min(n_classes, len(labels)))[known]
    return {
        "truth": plan.truth,
        "n_samples": int(known.sum()),
        "n_classes": n_classes,
        "cer": classification_error_rate(classes, labels[known]),
        "purity": purity(classes, labels[known]),
        "cer_at_n_classes": classification_error_rate(classes, at_classes),
    }


def about_comparison(
    plan: Plan, comparison: Comparison, *, n_clusters: int | None
) -> dict[str, Any]:
    """Say what was compared, and all that is needed to draw it again."""
    scores = whole_counts(comparison.scores).reset_index()
    annotations = plan.table.sample_annotations
    classes = {} if plan.truth is None else {plan.truth: annotations[plan.truth].tolist()}
    return {
        "format": COMPARISON_FORMAT,
        "format_version": COMPARISON_VERSION,
        "command": plan.command,
        "data": about_data(plan),
        "preprocessing": [asdict(step) for step in plan.log],
        "samples": [str(name) for name in plan.table.sample_names],
        "truth": plan.truth,
        "annotations": {n: [_plain(v) for v in values] for n, values in classes.items()},
        "n_clusters": n_clusters,
        "notes": notes_on(comparison, plan),
        "scores": [
            {name: None if pd.isna(value) else _plain(value) for name, value in row.items()}
            for row in scores.to_dict("records")
        ],
        "methods": {
            name: {
                "linkage": model.linkage_matrix_.tolist(),
                "search": _search(model),
                "outliers": [int(i) for i in getattr(model, "outlier_samples_", ())],
            }
            for name, model in comparison.models.items()
        },
        "versions": versions(),
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if hasattr(value, "tolist"):  # of numpy: an array gives a list, a scalar a number
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value
