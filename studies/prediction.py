"""The assignment of new samples, on simulated and on real data.

The samples are divided into folds. The estimator is fitted to the samples outside of a fold, and
predicts the clusters of the samples in the fold. They are compared with the clusters that a fit to
all samples finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from mrshc.metrics import adjusted_rand_index
from studies.designs import Row, adapt, draw_data, fit, load_data
from studies.tables import failure_note, markdown_table, mean_and_error

Task = tuple[int, int, int]  # design or, after the designs, set; draw; method


def tasks(config: dict[str, Any]) -> list[Task]:
    """Return the tasks: several draws of each design, then the real data sets."""
    n_designs = len(config["design"])
    draws = [(d, draw) for d in range(n_designs) for draw in range(config["replicates"])]
    draws += [(n_designs + s, 0) for s in range(len(config["set"]))]
    return [(*source, m) for source in draws for m in range(len(config["method"]))]


def identity(config: dict[str, Any], task: Task) -> Row:
    """Return the columns that identify a row."""
    source, draw, method = task
    return {
        "data": [*config["design"], *config["set"]][source]["name"],
        "method": config["method"][method]["name"],
        "draw": draw,
        "seed": config["seed"] + draw,
    }


def run(config: dict[str, Any], task: Task, data: Path | None, _: Path) -> list[Row]:
    """Return the row of a data set and a method, with shares of equal labels.

    `share_fit` is that of `predict` and `labels_` on the data of the fit; `share_folds` of the
    clusters without a fold and those of all samples; `share_new` of the predicted clusters of the
    samples in the folds and those of all samples. `ari_...` are adjusted Rand indices.
    """
    row, n_designs = identity(config, task), len(config["design"])
    seed = row["seed"]
    if task[0] < n_designs:
        drawn = draw_data(config["design"][task[0]], seed)
        X, n_classes = drawn.X, int(drawn.labels.max()) + 1
    else:
        X, y = load_data(config["set"][task[0] - n_designs], data)
        n_classes = np.unique(y).size
    method = adapt(config["method"][task[2]], n_classes, X.shape[1])
    model = fit(method, X, seed)
    labels = model.labels_
    row |= {"n_samples": len(X), "n_clusters": int(labels.max()) + 1}
    row |= _agreement("fit", model.predict(X), labels)
    # With the number of clusters of all samples: numbers that differ between the fits say nothing
    # about the rule of prediction.
    method["n_clusters"] = row["n_clusters"]
    return [row | _score_folds(method, X, labels, n_folds=config["n_folds"], seed=seed)]


def _score_folds(
    method: dict[str, Any], X: np.ndarray, labels: np.ndarray, *, n_folds: int, seed: int
) -> Row:
    """Return the agreement of clusters without a fold, and of predictions, with `labels`."""
    folds = np.random.default_rng(seed).permutation(len(X)) % n_folds
    predicted = np.empty_like(labels)
    of_folds: list[Row] = []
    for fold in range(n_folds):
        is_new = folds == fold
        model = fit(method, X[~is_new], seed)
        # Clusters are numbered differently in each fit. The samples of the fit tell which clusters
        # correspond to each other.
        numbers = match_clusters(model.labels_, labels[~is_new])
        predicted[is_new] = numbers[model.predict(X[is_new])]
        of_folds.append(_agreement("folds", numbers[model.labels_], labels[~is_new]))
    means = pd.DataFrame(of_folds).mean().to_dict()
    return {**means, **_agreement("new", predicted, labels)}


def match_clusters(labels: np.ndarray, others: np.ndarray) -> np.ndarray:
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


def _agreement(name: str, found: np.ndarray, expected: np.ndarray) -> Row:
    """Return the share of equal labels and the adjusted Rand index, with `name` in their titles."""
    return {
        f"share_{name}": float(np.mean(found == expected)),
        f"ari_{name}": adjusted_rand_index(expected, found),
    }


def render(config: dict[str, Any], results: pd.DataFrame, _: Any) -> str:
    """Return the results as a Markdown table with one row for each data set and method."""
    headings = [
        *("data", "method", "clusters", "`predict` and `labels_`"),
        *("clusters without a fold", "new samples", "ARI of new samples"),
    ]
    sources = [*config["design"], *config["set"]]
    rows = []
    for source in (entry["name"] for entry in sources):
        for method in (entry["name"] for entry in config["method"]):
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
