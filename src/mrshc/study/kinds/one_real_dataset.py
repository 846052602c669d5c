"""Real data sets: all methods of a study on one of them, their trees in one figure.

Errors are counted as one counts them in a dendrogram. A cut shows a class if more than half of its
samples lie in clusters where it is the majority. The tree is cut where all classes first show; a
sample outside the majority class of its cluster is an error. A tree in which no early cut shows all
classes mixes them, and is cut into as many clusters as there are classes.
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
from mrshc.study.config import Folders, Study, StudyError, lacks_data
from mrshc.study.designs_and_methods import check_names, estimator_of, unsupported_clusters_allowed
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failures, markdown_table

# A reader looks no deeper than this for a class in a dendrogram.
_DEEPEST_CUT = 10


def tasks(study: Study, folders: Folders) -> list[Task]:
    """Return the one task there is: a figure needs the trees of several methods."""
    check_names(study, "method")
    if study.replicates != 1:
        raise StudyError(f"{study.name} is one data set: there is 1 draw, not {study.replicates}.")
    names = {method["name"] for method in study.entries("method")}
    asked: list[str] = []
    for figure in study.entries("figure"):
        if not {"suffix", "methods"} <= set(figure):
            raise StudyError(f"{study.name}.toml must give every figure a suffix and methods.")
        asked += figure["methods"]
    asked += [m["as_many_as"] for m in study.entries("method") if "as_many_as" in m]
    if unknown := sorted(set(asked) - names):
        raise StudyError(f"{study.name}.toml refers to methods it does not have: {unknown}.")
    _data_file(study, folders)
    return [(0,)]


def identity(_study: Study, _task: Task) -> Row:
    """Return what to call a task that failed as a whole."""
    return {"method": "all"}


def run_task(study: Study, _task: Task, folders: Folders) -> list[Row]:
    """Fit all methods, draw the figures, return what each method found."""
    X, y = _load(study, folders)
    methods = {m["name"]: _method(study, m) for m in study.entries("method")}
    with unsupported_clusters_allowed(), warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodFailedWarning)  # it becomes a row
        result = compare(X, methods=methods, truth=y)
    for figure in study.entries("figure"):
        models = {name: result.models[name] for name in figure["methods"] if name in result.models}
        path = folders.out / f"{study.name}{figure['suffix']}.png"
        if models:
            write_picture(dendrograms(models, annotations={"class": y}), path, dpi=110)
    rows = []
    for name, scores in result.scores.to_dict("index").items():
        if name not in result.models:
            rows.append({"method": name, "error": scores["error"]})
            continue
        k, errors, shown = errors_in_dendrogram(result.models[name], y)
        row = {"method": name, "cut": k, "errors": errors, "mixed": not shown}
        rows.append(row | {key: value for key, value in scores.items() if key != "error"})
    return rows


def _load(study: Study, folders: Folders) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.load(_data_file(study, folders), allow_pickle=False) as content:
        X, y = content["X"], content["y"]
        if drop := study.options.get("drop_samples"):
            keep = ~np.isin(content["sample_names"], drop)
            X, y = X[keep], y[keep]
    if neighbors := study.options.get("impute_neighbors"):
        # Neighbours among genes: each gene borrows from the genes most like it.
        X = KNNImputer(n_neighbors=neighbors).fit_transform(X.T).T
    return X, y


def _data_file(study: Study, folders: Folders) -> Path:
    file = study.option("file")
    if folders.data is None or not (folders.data / file).exists():
        raise lacks_data(study, file)
    return folders.data / file


def _method(study: Study, method: dict[str, Any]) -> Any:
    """Return an estimator, or a function that makes one with as many features as another has."""
    seed = study.option("seed")
    if "as_many_as" not in method:
        return estimator_of(study, method, seed)

    def follow(fitted: Any) -> Any:
        q = fitted[method["as_many_as"]].n_features_selected_
        return estimator_of(study, method, seed, n_features_to_select=q)

    return follow


def errors_in_dendrogram(model: Any, y: NDArray[Any]) -> tuple[int, int, bool]:
    """Return the cut, the samples in the wrong cluster there, and whether all classes show."""
    n_classes = len(np.unique(y))
    for k in range(n_classes, _DEEPEST_CUT + 1):
        counts = contingency_matrix(y, model.cut(k))
        if _all_show(counts):
            return k, _wrong(counts), True
    return n_classes, _wrong(contingency_matrix(y, model.cut(n_classes))), False


def _all_show(counts: NDArray[Any]) -> bool:
    """Tell whether a (classes, clusters) table has most of every class in clusters of its own."""
    own = counts == counts.max(axis=0)
    own &= own.sum(axis=0) == 1  # a tie is nobody's majority
    return bool(np.all(2 * (counts * own).sum(axis=1) > counts.sum(axis=1)))


def _wrong(counts: NDArray[Any]) -> int:
    return int(counts.sum() - counts.max(axis=0).sum())


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return a table of what each method found, and what the paper says of it."""
    paper = {entry["method"]: entry["says"] for entry in study.options.get("paper", [])}
    rows = []
    for row in results.to_dict("records"):
        cells = [""] * 5 if pd.isna(row["cut"]) else _found(row)
        rows.append([row["method"], *cells, paper.get(row["method"], "")])
    headings = ["method", "q", "rank", "errors", "at cut", "CER at number of classes", "paper"]
    pictures = [f"![{study.title}]({study.name}{f['suffix']}.png)" for f in study.entries("figure")]
    shown = "\n" + "\n\n".join(pictures) + "\n"
    return markdown_table(headings, rows) + shown + failures(results)


def _found(row: Row) -> list[str]:
    errors = int(row["errors"])
    return [
        str(int(row["n_features"])),
        "" if pd.isna(row["rank"]) else str(int(row["rank"])),
        f"mixed ({errors})" if row["mixed"] else str(errors),
        str(int(row["cut"])),
        f"{row['cer']:.3f}",
    ]
