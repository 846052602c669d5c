"""Many real data sets: every method on each, and how it does on average.

The adjusted Rand index of the tree cut at the number of classes, and of the clusters that a method
finds by itself. Methods without a rule for the number of clusters are cut where the average
silhouette is best.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mrshc.core.trees.silhouette import average_silhouette
from mrshc.preprocessing import dudoit2002, prepare
from mrshc.study.config import Folders, Study, StudyError, lacks_data
from mrshc.study.designs_and_methods import check_names, estimator_of, unsupported_clusters_allowed
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failures, markdown_table

# As many clusters as a reader can tell apart.
_MOST_CLUSTERS = 10


def tasks(study: Study, folders: Folders) -> list[Task]:
    """Return every (data set, method)."""
    check_names(study, "set", "method")
    if study.replicates != 1:
        raise StudyError(f"{study.name} has real data: there is 1 draw, not {study.replicates}.")
    names = {method["name"] for method in study.entries("method")}
    if unknown := sorted(set(study.option("against")) - names):
        raise StudyError(f"{study.name}.toml compares with methods it does not have: {unknown}.")
    for entry in study.entries("set"):
        _file(study, entry, folders)
    n_sets, n_methods = len(study.entries("set")), len(names)
    return [(s, m) for s in range(n_sets) for m in range(n_methods)]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that say which row a task makes."""
    entry, method = study.entries("set")[task[0]], study.entries("method")[task[1]]
    return {
        "set": entry["name"],
        "study": entry.get("study", entry["name"]),
        "method": method["name"],
    }


def run_task(study: Study, task: Task, folders: Folders) -> list[Row]:
    """Return how well one method finds the classes of one data set."""
    X, y = _load(study, study.entries("set")[task[0]], folders)
    method = dict(study.entries("method")[task[1]])
    if method.get("n_features_to_select") == "all":
        method["n_features_to_select"] = X.shape[1]
    wanted = method.get("n_features_to_select")
    if isinstance(wanted, int):  # a filter that lets more through than there are lets all through
        method["n_features_to_select"] = min(wanted, X.shape[1])
    with unsupported_clusters_allowed():
        model = estimator_of(study, method, study.option("seed")).fit(X)
    # A class of one sample cannot be found or missed.
    classes, counts = np.unique(y, return_counts=True)
    scored = np.isin(y, classes[counts > 1])
    n_classes = int(np.sum(counts > 1))
    labels = model.labels_ if hasattr(model, "labels_") else _best_cut(model, X)
    return [
        identity(study, task)
        | {
            "n_samples": X.shape[0],
            "n_classes": n_classes,
            "ari": adjusted_rand_score(y[scored], model.cut(n_classes)[scored]),
            "ari_found": adjusted_rand_score(y[scored], labels[scored]),
            "n_clusters": int(labels.max()) + 1,
            "n_features": model.n_features_selected_,
            "supported": getattr(model, "supported_", None),
        }
    ]


def _best_cut(model: Any, X: NDArray[Any]) -> NDArray[np.intp]:
    distances = model.sample_distances(X)
    cuts = [model.cut(k) for k in range(2, min(_MOST_CLUSTERS, len(X) - 1) + 1)]
    return max(cuts, key=lambda labels: average_silhouette(distances, labels))


def _load(
    study: Study, entry: dict[str, Any], folders: Folders
) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.load(_file(study, entry, folders), allow_pickle=False) as content:
        X, y = content["X"].astype(np.float64), content["y"]
        if drop := entry.get("drop_samples"):
            keep = ~np.isin(content["sample_names"], drop)
            X, y = X[keep], y[keep]
    if entry.get("raw_intensities"):
        X = prepare(X, dudoit2002()).X
    return X, y


def _file(study: Study, entry: dict[str, Any], folders: Folders) -> Path:
    path = None if folders.data is None else folders.data / f"{entry['name']}.npz"
    if path is None or not path.exists():
        raise lacks_data(study, f"{entry['name']}.npz")
    return path


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return the mean over data sets for each method, and paired differences."""
    done = results.dropna(subset=["ari"])
    ari, found = (done.pivot(index="set", columns="method", values=v) for v in ("ari", "ari_found"))
    study_of = done.drop_duplicates("set").set_index("set")["study"]
    by_study = ari.groupby(study_of).mean()
    against = study.option("against")
    headings = [
        *("method", "ARI at the number of classes", "mean over studies", "ARI of its clusters"),
        *(f"against {name}" for name in against),
        *("features", "clusters"),
    ]
    rows = []
    for method in (m["name"] for m in study.entries("method")):
        of_method = done[done["method"] == method]
        rows.append(
            [
                method,
                _mean(ari[method]),
                f"{by_study[method].mean():.3f}",
                _mean(found[method]),
                *("" if name == method else _paired(ari[method] - ari[name]) for name in against),
                f"{of_method['n_features'].mean():,.0f}",
                f"{of_method['n_clusters'].mean():.1f}",
            ]
        )
    intro = f"**{len(ari)} data sets of {len(by_study)} studies**\n\n"
    return intro + markdown_table(headings, rows) + "\n" + _each_set(study, ari) + failures(results)


def _each_set(study: Study, ari: pd.DataFrame) -> str:
    """Return a table of some methods on each data set."""
    shown = study.option("shown")
    rows = [
        [name, *(f"{ari.loc[name, method]:.2f}" for method in shown)]
        for name in (entry["name"] for entry in study.entries("set"))
        if name in ari.index
    ]
    return markdown_table(["ARI at the number of classes", *shown], rows)


def _mean(values: pd.Series) -> str:
    return f"{values.mean():.3f} ({values.sem():.3f})"


def _paired(differences: pd.Series) -> str:
    return f"{differences.mean():+.3f} ({differences.sem():.3f})"
