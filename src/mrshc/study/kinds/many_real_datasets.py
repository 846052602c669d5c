"""Many real data sets: agreement of each method with the known classes.

Agreement is measured by the adjusted Rand index. The index is computed for two partitions: the cut
of the tree into as many clusters as there are classes, and the clusters that the method chooses
itself. For methods without a rule for the number of clusters, the cut with the largest average
silhouette is used as the second partition. A method without a tree is fitted with the number of
classes, and has only the first partition.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mrshc.core.trees import silhouette_widths
from mrshc.preprocessing import chain, prepare
from mrshc.preprocessing.chains import PRESETS
from mrshc.study.config import Folders, Study, StudyError, missing_data_error
from mrshc.study.designs_and_methods import (
    check_names,
    ignore_unsupported_clusters,
    impute_for_method,
    make_estimator,
)
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failure_note, markdown_table

# Value of `n_clusters` in a config that stands for the number of classes, which methods without a
# tree need.
NUMBER_OF_CLASSES = "number of classes"
# Largest number of clusters of the cuts whose average silhouettes are compared, as on the command
# line.
_MAX_CLUSTERS = 10


def tasks(study: Study, folders: Folders) -> list[Task]:
    """Return one task (data set, method) for each pair of a data set and a method.

    Raise StudyError if the config is invalid or a data set is missing.
    """
    check_names(study, "set", "method")
    # The data are not simulated, and the fits have a fixed seed, so all replicates would be equal.
    if study.replicates != 1:
        raise StudyError(f"{study.name} has real data: there is 1 draw, not {study.replicates}.")
    names = {method["name"] for method in study.entries("method")}
    if unknown := sorted(set(study.option("against")) - names):
        raise StudyError(f"{study.name}.toml compares with methods it does not have: {unknown}.")
    sets = {entry["name"] for entry in study.entries("set")}
    left_out = {name for method in study.entries("method") for name in method.get("leave_out", ())}
    if unknown := sorted(left_out - sets):
        raise StudyError(
            f"{study.name}.toml leaves out data sets that it does not have: {unknown}."
        )
    for entry in study.entries("set"):
        _data_file(study, entry, folders)  # raises StudyError if the file is missing
    return [
        (s, m)
        for s, entry in enumerate(study.entries("set"))
        for m, method in enumerate(study.entries("method"))
        if entry["name"] not in method.get("leave_out", ())
    ]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that identify a task in the table of results."""
    entry, method = study.entries("set")[task[0]], study.entries("method")[task[1]]
    return {
        "set": entry["name"],
        "study": entry.get("study", entry["name"]),
        "method": method["name"],
    }


def run_task(study: Study, task: Task, folders: Folders) -> list[Row]:
    """Return one row, in a list, with the adjusted Rand indices of one method on one data set."""
    X, y = load_dataset(study, study.entries("set")[task[0]], folders)
    # A class with only one sample is not a group that a method could find, so this sample is not
    # scored.
    classes, counts = np.unique(y, return_counts=True)
    scored = np.isin(y, classes[counts > 1])
    n_classes = int(np.sum(counts > 1))
    method = dict(study.entries("method")[task[1]])
    if method.get("n_clusters") == NUMBER_OF_CLASSES:
        method["n_clusters"] = n_classes
    if method.get("n_features_to_select") == "all":
        method["n_features_to_select"] = X.shape[1]
    # If a data set has fewer features than the method is to select, all features are selected.
    n_features = method.get("n_features_to_select")
    if isinstance(n_features, int):
        method["n_features_to_select"] = min(n_features, X.shape[1])
    with ignore_unsupported_clusters():
        X = impute_for_method(study, method, X)
        model = make_estimator(study, method, study.option("seed")).fit(X)
    has_tree = hasattr(model, "cut")
    cut = model.cut(n_classes) if has_tree else model.labels_
    row = identity(study, task) | {
        "n_samples": X.shape[0],
        "n_classes": n_classes,
        "ari": adjusted_rand_score(y[scored], cut[scored]),
        "n_features": model.n_features_selected_,
        "supported": getattr(model, "supported_", None),
    }
    if has_tree:
        labels = model.labels_ if hasattr(model, "labels_") else _best_cut(model, X)
        row["ari_found"] = adjusted_rand_score(y[scored], labels[scored])
        row["n_clusters"] = int(labels.max()) + 1
    return [row]


def _best_cut(model: Any, X: NDArray[Any]) -> NDArray[np.intp]:
    """Return the labels of the cut, into 2 to 10 clusters, with the largest average silhouette."""
    distances = model.sample_distances(X)
    # There must be fewer clusters than samples, since the silhouette needs a cluster with at least
    # two samples.
    cuts = [model.cut(k) for k in range(2, min(_MAX_CLUSTERS, len(X) - 1) + 1)]
    return max(cuts, key=lambda labels: silhouette_widths(distances, labels).mean())


def load_dataset(
    study: Study, entry: dict[str, Any], folders: Folders
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the data matrix, with samples in rows, and an array of the classes of the samples."""
    # Pickled objects are not loaded, since unpickling an untrusted file could run any code.
    with np.load(_data_file(study, entry, folders), allow_pickle=False) as content:
        X, y = content["X"].astype(np.float64), content["y"]
        if drop := entry.get("drop_samples"):
            keep = ~np.isin(content["sample_names"], drop)
            X, y = X[keep], y[keep]
    # Raw Affymetrix intensities are preprocessed as in Dudoit and others (2002). The other data
    # sets are already preprocessed.
    if entry.get("raw_intensities"):
        X = prepare(X, chain(**PRESETS["dudoit2002"])).X
    return X, y


def _data_file(study: Study, entry: dict[str, Any], folders: Folders) -> Path:
    """Return the path of the file of a data set; raise StudyError if the file is missing."""
    path = None if folders.data is None else folders.data / f"{entry['name']}.npz"
    if path is None or not path.exists():
        raise missing_data_error(study, f"{entry['name']}.npz")
    return path


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return the results as two Markdown tables.

    The first table has one row for each method. It contains means over data sets and paired
    differences from other methods. The second table contains the adjusted Rand index for each data
    set.
    """
    done = results.dropna(subset=["ari"])
    ari, ari_found = (
        done.pivot(index="set", columns="method", values=v) for v in ("ari", "ari_found")
    )
    # Data sets of one publication (the column "study") may share samples. The mean over
    # publications gives each publication the same weight.
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
                method + _format_n_datasets(of_method["set"].nunique(), n_all=len(ari)),
                _format_mean(ari[method]),
                f"{by_study[method].mean():.3f}",
                _format_mean(ari_found[method]),
                *(
                    "" if name == method else _format_difference(ari[method] - ari[name])
                    for name in against
                ),
                f"{of_method['n_features'].mean():,.0f}",
                _format_n_clusters(of_method["n_clusters"]),
            ]
        )
    intro = f"**{len(ari)} data sets of {len(by_study)} studies**\n\n"
    parts = [
        intro + markdown_table(headings, rows),
        _leave_one_study_out(ari, ari_found, study_of),
        _table_by_dataset(study, ari) + failure_note(results),
    ]
    return "\n".join(parts)


def _leave_one_study_out(ari: pd.DataFrame, ari_found: pd.DataFrame, study_of: pd.Series) -> str:
    """Return a Markdown table of the agreement if the method is chosen on other studies.

    For the data sets of each study, the method is used that has the largest mean index over the
    data sets of all other studies. The parameters have a row for each data set; `ari` and
    `ari_found` have a column for each method.
    """
    rows = []
    for quantity, values in (
        ("ARI at the number of classes", ari),
        ("ARI of its clusters", ari_found),
    ):
        # The choice is among the methods that have a value for every data set.
        complete = values.dropna(how="all").dropna(axis="columns")
        groups = study_of[complete.index]
        chosen = {
            name: complete[groups != name].mean().idxmax()
            for name in groups.unique()
            if (groups != name).any() and not complete.empty
        }
        if not chosen:  # a single study, or no method with all values
            continue
        reached = pd.Series(
            {name: complete.loc[name, chosen[groups[name]]] for name in complete.index}
        )
        counts = pd.Series(chosen).value_counts()
        methods = ", ".join(f"{method} ({count})" for method, count in counts.items())
        rows.append([quantity, _format_mean(reached), methods])
    headings = ["method chosen by", "on the study left out", "methods (number of studies)"]
    return markdown_table(headings, rows) if rows else ""


def _table_by_dataset(study: Study, ari: pd.DataFrame) -> str:
    """Return a Markdown table with a row for each data set and a column for each shown method.

    The methods are listed in the entry `shown` of the config.
    """
    shown = study.option("shown")
    rows = [
        [name, *(f"{ari.loc[name, method]:.2f}" for method in shown)]
        for name in (entry["name"] for entry in study.entries("set"))
        # A data set on which every method failed has no row.
        if name in ari.index
    ]
    return markdown_table(["ARI at the number of classes", *shown], rows)


def _format_n_datasets(n: int, *, n_all: int) -> str:
    """Return a note if a method has results for n of all data sets only; otherwise no text."""
    return "" if n == n_all else f" ({n} data sets)"


def _format_n_clusters(values: pd.Series) -> str:
    """Return the mean number of clusters as text, which is empty if there are no values."""
    return "" if values.isna().all() else f"{values.mean():.1f}"


def _format_mean(values: pd.Series) -> str:
    """Return the mean of `values` as text, with its standard error in parentheses.

    The text is empty if there are no values.
    """
    return "" if values.isna().all() else f"{values.mean():.3f} ({values.sem():.3f})"


def _format_difference(differences: pd.Series) -> str:
    """Return the mean of paired differences as text, with its sign and its standard error."""
    return f"{differences.mean():+.3f} ({differences.sem():.3f})"
