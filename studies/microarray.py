"""A real data set of the paper: errors of several methods, and figures of their trees.

Errors are counted as a reader would count them in a dendrogram. A cut shows a class if more than
half of its samples are in clusters where it is the most frequent class. The tree is cut into the
smallest number of clusters, up to 10, that shows all classes; samples that are not of the most
frequent class of their cluster are errors. If there is no such cut, the tree mixes the classes, and
errors are counted at as many clusters as there are classes.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics.cluster import contingency_matrix

from mrshc import UnsupportedClustersWarning
from mrshc.comparison import MethodFailedWarning, compare
from mrshc.plotting import dendrograms, write_picture
from studies.designs import Row, load_data, make_estimator
from studies.tables import failure_note, markdown_table

# With more clusters, even a tree that mixes the classes could show them, in many small clusters.
_MAX_CUT = 10


def tasks(_: Any) -> list[tuple[int]]:
    """Return one task for all methods, since a figure shows the trees of several."""
    return [(0,)]


def identity(_: Any, __: Any) -> Row:
    """Return the columns of the row if the task fails."""
    return {"method": "all"}


def run(config: dict[str, Any], _: Any, data: Path | None, out: Path) -> list[Row]:
    """Fit all methods, write the figures, and return a row for each method."""
    X, y = load_data(config | {"name": Path(config["file"]).stem}, data)
    seed, methods = config["seed"], {}
    for method in config["method"]:
        if other := method.get("as_many_as"):  # as many features as another method has selected
            methods[method["name"]] = lambda fitted, method=method, other=other: make_estimator(
                method, seed, n_features_to_select=fitted[other].n_features_selected_
            )
        else:
            methods[method["name"]] = make_estimator(method, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsupportedClustersWarning)
        warnings.simplefilter("ignore", MethodFailedWarning)  # the row has the error
        result = compare(X, methods=methods, truth=y)
    for figure in config["figure"]:
        models = {name: result.models[name] for name in figure["methods"] if name in result.models}
        path = out / f"{config['name']}{figure['suffix']}.png"
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


def errors_in_dendrogram(model: Any, y: np.ndarray) -> tuple[int, int, bool]:
    """Return at how many clusters errors are counted, how many there are, and if all are shown."""
    n_classes = len(np.unique(y))
    # With fewer clusters than classes, not every class can be the most frequent one in a cluster.
    for k in range(n_classes, _MAX_CUT + 1):
        counts = contingency_matrix(y, model.cut(k))
        if _are_all_classes_shown(counts):
            return k, _count_errors(counts), True
    return n_classes, _count_errors(contingency_matrix(y, model.cut(n_classes))), False


def _are_all_classes_shown(counts: np.ndarray) -> bool:
    """Return whether a cut shows all classes, given counts (n_classes, n_clusters)."""
    own = counts == counts.max(axis=0)
    own &= own.sum(axis=0) == 1  # with a tie, no class is the most frequent one
    return bool(np.all(2 * (counts * own).sum(axis=1) > counts.sum(axis=1)))


def _count_errors(counts: np.ndarray) -> int:
    """Return the number of samples that are not of the most frequent class of their cluster."""
    return int(counts.sum() - counts.max(axis=0).sum())


def render(config: dict[str, Any], results: pd.DataFrame, _: Any) -> str:
    """Return Markdown: a table of results, with the findings of the paper, and the figures."""
    paper = {entry["method"]: entry["says"] for entry in config.get("paper", [])}
    rows = []
    for row in results.to_dict("records"):
        cells = [""] * 5 if pd.isna(row["cut"]) else _format_row(row)
        rows.append([row["method"], *cells, paper.get(row["method"], "")])
    headings = ["method", "q", "rank", "errors", "at cut", "CER at number of classes", "paper"]
    pictures = [
        f"![{config['title']}]({config['name']}{f['suffix']}.png)" for f in config["figure"]
    ]
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
