"""Real data sets: all methods of a study on one of them, their trees in one figure.

Errors are counted as one counts them in a dendrogram. A cut shows a class if more than half of its
samples lie in clusters where it is the majority. The tree is cut where all classes first show; a
sample outside the majority class of its cluster is an error. A tree in which no early cut shows all
classes mixes them, and is cut into as many clusters as there are classes.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.impute import KNNImputer
from sklearn.metrics.cluster import contingency_matrix

import mrshc
from mrshc.comparison import compare
from mrshc.plotting import dendrogram
from mrshc.study.config import Folders, Study, StudyError
from mrshc.study.simulation import estimator_of
from mrshc.study.tables import markdown_table

# A reader looks no deeper than this for a class in a dendrogram.
_DEEPEST_CUT = 10


def tasks(_study: Study, _replicates: int) -> list[tuple[int, ...]]:
    """Return the one task there is: the data set."""
    return [(0,)]


def run_task(study: Study, _task: tuple[int, ...], folders: Folders) -> list[dict[str, Any]]:
    """Fit all methods, draw the figures, return what each method found."""
    X, y = _load(study, folders)
    seed = study.option("seed")
    methods = {m["name"]: _method(m, seed) for m in study.option("method")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
        result = compare(X, methods=methods, truth=y)
    for figure in study.option("figure"):
        models = {name: result.models[name] for name in figure["methods"]}
        path = folders.out / f"{study.name}{figure['suffix']}.png"
        _draw(models, y).savefig(path, dpi=110)
    rows = []
    for name, model in result.models.items():
        k, errors, shown = errors_in_dendrogram(model, y)
        row = {"method": name, "cut": k, "errors": errors, "mixed": not shown}
        rows.append(row | result.scores.to_dict("index")[name])
    return rows


def _load(study: Study, folders: Folders) -> tuple[NDArray[Any], NDArray[Any]]:
    file = study.option("file")
    if folders.data is None or not (folders.data / file).exists():
        raise StudyError(
            f"{study.name} needs the data set {file}, which is not part of this project. Say in "
            "which folder it lies with --data."
        )
    with np.load(folders.data / file, allow_pickle=False) as content:
        X, y = content["X"], content["y"]
        if drop := study.options.get("drop_samples"):
            keep = ~np.isin(content["sample_names"], drop)
            X, y = X[keep], y[keep]
    if neighbors := study.options.get("impute_neighbors"):
        # Neighbours among genes: each gene borrows from the genes most like it.
        X = KNNImputer(n_neighbors=neighbors).fit_transform(X.T).T
    return X, y


def _method(method: dict[str, Any], seed: int) -> Any:
    """Return an estimator, or a function that makes one with as many features as another has."""
    if "as_many_as" not in method:
        return estimator_of(method, seed)

    def follow(fitted: Any) -> Any:
        options = {k: v for k, v in method.items() if k != "as_many_as"}
        q = fitted[method["as_many_as"]].n_features_selected_
        return estimator_of(options | {"n_features_to_select": q}, seed)

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


def _draw(models: dict[str, Any], y: NDArray[Any]) -> Figure:
    figure = Figure(figsize=(10, 2.6 * len(models)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(models)))
    for panel, (name, model) in zip(panels, models.items(), strict=True):
        rank = f", rank {model.rank_}" if hasattr(model, "rank_") else ""
        title = f"{name}: {model.n_features_selected_} features{rank}"
        dendrogram(model, classes=y, title=title, ax=panel)
        panel.set_xticks([])
        if panel is not panels[0]:
            panel.get_legend().remove()
    return figure


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return a table of what each method found, and what the paper says of it."""
    paper = {entry["method"]: entry["says"] for entry in study.options.get("paper", [])}
    rows = [
        [
            row.method,
            str(row.n_features),
            "" if np.isnan(row.rank) else str(int(row.rank)),
            f"mixed ({row.errors})" if row.mixed else f"{row.errors}",
            str(row.cut),
            f"{row.cer:.3f}",
            paper.get(row.method, ""),
        ]
        for row in results.itertuples()
    ]
    headings = ["method", "q", "rank", "errors", "at cut", "CER at number of classes", "paper"]
    pictures = [f"![{study.title}]({study.name}{f['suffix']}.png)" for f in study.option("figure")]
    return markdown_table(headings, rows) + "\n" + "\n\n".join(pictures) + "\n"
