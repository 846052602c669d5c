"""Studies of the assignment of new samples, on simulated and on real data.

The samples are divided into folds. The estimator is fitted to the samples outside of a fold, and
predicts the clusters of the samples in the fold. They are compared with the clusters that a fit to
all samples finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mrshc.metrics import adjusted_rand_index
from mrshc.study.config import Folders, Study
from mrshc.study.designs_and_methods import (
    check_names,
    draw_dataset,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.kinds.many_real_datasets import NUMBER_OF_CLASSES, load_dataset
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failure_note, markdown_table, mean_and_error


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task (source, draw, method) for each data set and method.

    The sources are the designs, with several draws each, followed by the real data sets. Raise
    StudyError if the config is invalid.
    """
    check_names(study, "design", "set", "method")
    designs, sets = study.entries("design"), study.entries("set")
    draws = [(d, draw) for d in range(len(designs)) for draw in range(study.replicates)]
    draws += [(len(designs) + s, 0) for s in range(len(sets))]
    return [(*source, m) for source in draws for m in range(len(study.entries("method")))]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that identify a task in the table of results."""
    source, draw, method = task
    return {
        "data": [*study.entries("design"), *study.entries("set")][source]["name"],
        "method": study.entries("method")[method]["name"],
        "draw": draw,
        "seed": study.option("seed") + draw,
    }


def run_task(study: Study, task: Task, folders: Folders) -> list[Row]:
    """Return one row, in a list, with the agreement of predicted and fitted clusters.

    The columns are the number of clusters of all samples, and three shares of equal labels:
    `share_fit`, of `predict` and `labels_` on the data of the fit; `share_folds`, of the clusters
    without a fold and the clusters of all samples, on the samples outside of the fold; and
    `share_new`, of the predicted clusters of the samples in the fold and the clusters of all
    samples. `ari_fit`, `ari_folds` and `ari_new` are the corresponding adjusted Rand indices.
    """
    row = identity(study, task)
    X, n_classes = _load(study, task, folders)
    method = dict(study.entries("method")[task[2]])
    if method.get("n_clusters") == NUMBER_OF_CLASSES:
        method["n_clusters"] = n_classes
    n_features = method.get("n_features_to_select")
    if isinstance(n_features, int):
        method["n_features_to_select"] = min(n_features, X.shape[1])
    with ignore_unsupported_clusters():
        model = make_estimator(study, method, row["seed"]).fit(X)
        labels = model.labels_
        row |= {"n_samples": len(X), "n_clusters": int(labels.max()) + 1}
        row |= _agreement("fit", model.predict(X), labels)
        # The number of clusters is that of all samples, since numbers of clusters that differ
        # between the fits say nothing about the rule of prediction.
        method["n_clusters"] = row["n_clusters"]
        estimator = make_estimator(study, method, row["seed"])
        row |= _score_folds(estimator, X, labels, n_folds=study.option("n_folds"), seed=row["seed"])
    return [row]


def _load(study: Study, task: Task, folders: Folders) -> tuple[NDArray[Any], int]:
    """Return the data of a task and the number of their classes."""
    designs = study.entries("design")
    source, seed = task[0], identity(study, task)["seed"]
    if source < len(designs):
        data = draw_dataset(study, designs[source], seed)
        return data.X, int(data.labels.max()) + 1
    X, y = load_dataset(study, study.entries("set")[source - len(designs)], folders)
    return X, np.unique(y).size


def _score_folds(
    estimator: Any, X: NDArray[Any], labels: NDArray[np.intp], *, n_folds: int, seed: int
) -> Row:
    """Return the agreement of clusters without a fold, and of predictions, with `labels`."""
    folds = np.random.default_rng(seed).permutation(len(X)) % n_folds
    predicted = np.empty_like(labels)
    of_folds: list[Row] = []
    for fold in range(n_folds):
        is_new = folds == fold
        model = estimator.fit(X[~is_new])
        # Clusters are numbered differently in each fit. The samples of the fit tell which clusters
        # correspond to each other.
        numbers = match_clusters(model.labels_, labels[~is_new])
        predicted[is_new] = numbers[model.predict(X[is_new])]
        of_folds.append(_agreement("folds", numbers[model.labels_], labels[~is_new]))
    means = pd.DataFrame(of_folds).mean().to_dict()
    return {**means, **_agreement("new", predicted, labels)}


def match_clusters(labels: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return, for each cluster of `labels`, the cluster of `others` that corresponds to it.

    The clusters are matched one to one such that as many samples as possible have equal labels. A
    cluster without a counterpart is -1.
    """
    counts = np.zeros((labels.max() + 1, others.max() + 1), dtype=np.intp)
    np.add.at(counts, (labels, others), 1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    numbers = np.full(len(counts), -1, dtype=np.intp)
    numbers[rows] = columns
    return numbers


def _agreement(name: str, found: NDArray[np.intp], expected: NDArray[np.intp]) -> Row:
    """Return the share of equal labels and the adjusted Rand index, with `name` in their titles."""
    return {
        f"share_{name}": float(np.mean(found == expected)),
        f"ari_{name}": adjusted_rand_index(expected, found),
    }


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return the results as a Markdown table with one row for each data set and method."""
    headings = [
        *("data", "method", "clusters", "`predict` and `labels_`"),
        *("clusters without a fold", "new samples", "ARI of new samples"),
    ]
    sources = [*study.entries("design"), *study.entries("set")]
    rows = []
    for source in (entry["name"] for entry in sources):
        for method in (entry["name"] for entry in study.entries("method")):
            of_cell = results[(results["data"] == source) & (results["method"] == method)]
            if of_cell.empty or of_cell["share_new"].isna().all():
                continue
            shares = ("share_fit", "share_folds", "share_new", "ari_new")
            n_clusters = of_cell["n_clusters"].mean()
            cells = [_format_cell(of_cell[name]) for name in shares]
            rows.append([source, method, f"{n_clusters:.3g}", *cells])
    return markdown_table(headings, rows) + failure_note(results)


def _format_cell(values: pd.Series) -> str:
    """Return a mean with its standard error; a value without an error if there is only one."""
    mean, error = mean_and_error(values)
    shown = f"{round(mean, 12):.3f}"
    return shown if np.isnan(error) or error < 1e-12 else f"{shown} ({error:.3f})"
