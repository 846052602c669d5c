"""Studies of one real data set: errors of several methods, and figures of their trees.

Errors are counted as a reader would count them in a dendrogram. A cut shows a class if more than
half of the samples of the class are in clusters where this class is the most frequent one. The tree
is cut into the smallest number of clusters that shows all classes. A sample that does not belong to
the most frequent class of its cluster is counted as an error. If no cut into at most 10 clusters
shows all classes, the tree mixes the classes. Errors are then counted at the cut into as many
clusters as there are classes.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.impute import KNNImputer
from sklearn.metrics.cluster import contingency_matrix

from mrshc.comparison import MethodFailedWarning, compare
from mrshc.plotting import dendrograms, write_picture
from mrshc.study.config import Folders, Study, StudyError, missing_data_error
from mrshc.study.designs_and_methods import (
    check_names,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failure_note, markdown_table

# Largest number of clusters of a cut that may show the classes. With more clusters, even a tree
# that mixes the classes could show them, in many small clusters of one class each.
_MAX_CUT = 10


def tasks(study: Study, folders: Folders) -> list[Task]:
    """Return a list with one task, which runs all methods.

    There is only one task because a figure shows the trees of several methods. Raise StudyError if
    the config is invalid or the data set is missing.
    """
    check_names(study, "method")
    if study.replicates != 1:
        raise StudyError(f"{study.name} is one data set: there is 1 draw, not {study.replicates}.")
    names = {method["name"] for method in study.entries("method")}
    referenced: list[str] = []
    for figure in study.entries("figure"):
        if not {"suffix", "methods"} <= set(figure):
            raise StudyError(f"{study.name}.toml must give every figure a suffix and methods.")
        referenced += figure["methods"]
    referenced += [m["as_many_as"] for m in study.entries("method") if "as_many_as" in m]
    if unknown := sorted(set(referenced) - names):
        raise StudyError(f"{study.name}.toml refers to methods it does not have: {unknown}.")
    _data_file(study, folders)  # raises StudyError if the file is missing
    return [(0,)]


def identity(_study: Study, _task: Task) -> Row:
    """Return the column that identifies the task in the table of results if the task fails.

    The method is "all", since one task runs all methods.
    """
    return {"method": "all"}


def run_task(study: Study, _task: Task, folders: Folders) -> list[Row]:
    """Fit all methods, write the figures, and return a row of results for each method."""
    X, y = _load_dataset(study, folders)
    methods = {m["name"]: _estimator_or_factory(study, m) for m in study.entries("method")}
    with ignore_unsupported_clusters(), warnings.catch_warnings():
        # A warning about a failed method is not needed, since the row of the method contains the
        # error.
        warnings.simplefilter("ignore", MethodFailedWarning)
        result = compare(X, methods=methods, truth=y)
    for figure in study.entries("figure"):
        models = {name: result.models[name] for name in figure["methods"] if name in result.models}
        path = folders.out / f"{study.name}{figure['suffix']}.png"
        if models:
            # A picture with 110 dots per inch is legible on a page, and its file is small enough to
            # be committed.
            write_picture(dendrograms(models, annotations={"class": y}), path, dpi=110)
    rows = []
    for name, scores in result.scores.to_dict("index").items():
        if name not in result.models:
            rows.append({"method": name, "error": scores["error"]})
            continue
        k, errors, is_shown = errors_in_dendrogram(result.models[name], y)
        row = {"method": name, "cut": k, "errors": errors, "mixed": not is_shown}
        rows.append(row | {key: value for key, value in scores.items() if key != "error"})
    return rows


def _load_dataset(study: Study, folders: Folders) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the data matrix, with samples in rows, and an array of the classes of the samples."""
    # Pickled objects are not loaded, since unpickling an untrusted file could run any code.
    with np.load(_data_file(study, folders), allow_pickle=False) as content:
        X, y = content["X"], content["y"]
        if drop := study.options.get("drop_samples"):
            keep = ~np.isin(content["sample_names"], drop)
            X, y = X[keep], y[keep]
    if neighbors := study.options.get("impute_neighbors"):
        # As is usual for microarrays, a missing value is estimated from genes with similar values.
        # The matrix is transposed, since KNNImputer searches for neighbours among the rows.
        X = KNNImputer(n_neighbors=neighbors).fit_transform(X.T).T
    return X, y


def _data_file(study: Study, folders: Folders) -> Path:
    """Return the path of the file of the data set; raise StudyError if the file is missing."""
    file = study.option("file")
    if folders.data is None or not (folders.data / file).exists():
        raise missing_data_error(study, file)
    return folders.data / file


def _estimator_or_factory(study: Study, method: dict[str, Any]) -> Any:
    """Return an estimator, or a function that returns an estimator, given the fitted models.

    A function is returned if the method has an item `as_many_as`, which names another method. The
    estimator then selects as many features as the fitted model of the other method.
    """
    seed = study.option("seed")
    if "as_many_as" not in method:
        return make_estimator(study, method, seed)

    def make_with_same_number(fitted: Any) -> Any:
        q = fitted[method["as_many_as"]].n_features_selected_
        return make_estimator(study, method, seed, n_features_to_select=q)

    return make_with_same_number


def errors_in_dendrogram(model: Any, y: NDArray[Any]) -> tuple[int, int, bool]:
    """Return the number of clusters at which errors are counted, and the number of errors.

    A cut shows a class if more than half of the samples of the class are in clusters where this
    class is the most frequent one. The tree is cut into the smallest number of clusters, up to 10,
    that shows all classes. If there is no such cut, the tree is cut into as many clusters as there
    are classes.

    Parameters
    ----------
    model : estimator
        A fitted estimator with a method `cut`.
    y : ndarray of shape (n_samples,)
        Classes of the samples.

    Returns
    -------
    n_clusters : int
        Number of clusters into which the tree is cut.
    n_errors : int
        Number of samples that do not belong to the most frequent class of their cluster.
    is_shown : bool
        Whether the cut shows all classes.
    """
    n_classes = len(np.unique(y))
    # With fewer clusters than classes, not every class can be the most frequent one in a cluster.
    for k in range(n_classes, _MAX_CUT + 1):
        counts = contingency_matrix(y, model.cut(k))
        if _are_all_classes_shown(counts):
            return k, _count_errors(counts), True
    return n_classes, _count_errors(contingency_matrix(y, model.cut(n_classes))), False


def _are_all_classes_shown(counts: NDArray[Any]) -> bool:
    """Return whether a cut shows all classes, as defined in the module docstring.

    `counts` has shape (n_classes, n_clusters) and contains the number of samples of each class in
    each cluster.
    """
    own = counts == counts.max(axis=0)
    own &= own.sum(axis=0) == 1  # with a tie, no class is the most frequent one
    return bool(np.all(2 * (counts * own).sum(axis=1) > counts.sum(axis=1)))


def _count_errors(counts: NDArray[Any]) -> int:
    """Return the number of samples that do not belong to the most frequent class of their cluster.

    `counts` has shape (n_classes, n_clusters) and contains the number of samples of each class in
    each cluster.
    """
    return int(counts.sum() - counts.max(axis=0).sum())


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return Markdown: a table of results, with the findings of the paper, and the figures."""
    paper = {entry["method"]: entry["says"] for entry in study.options.get("paper", [])}
    rows = []
    for row in results.to_dict("records"):
        cells = [""] * 5 if pd.isna(row["cut"]) else _format_row(row)
        rows.append([row["method"], *cells, paper.get(row["method"], "")])
    headings = ["method", "q", "rank", "errors", "at cut", "CER at number of classes", "paper"]
    pictures = [f"![{study.title}]({study.name}{f['suffix']}.png)" for f in study.entries("figure")]
    figures = "\n" + "\n\n".join(pictures) + "\n"
    return markdown_table(headings, rows) + figures + failure_note(results)


def _format_row(row: Row) -> list[str]:
    """Return the number of features, rank, errors, cut and classification error rate as text."""
    errors = int(row["errors"])
    return [
        str(int(row["n_features"])),
        "" if pd.isna(row["rank"]) else str(int(row["rank"])),
        f"mixed ({errors})" if row["mixed"] else str(errors),
        str(int(row["cut"])),
        f"{row['cer']:.3f}",
    ]
