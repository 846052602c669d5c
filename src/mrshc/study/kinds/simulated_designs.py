"""Simulated designs, clustered by all methods of a study: many draws, means and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.comparison import score
from mrshc.datasets import SimulatedData
from mrshc.metrics import classification_error_rate, feature_precision, feature_recall
from mrshc.study.config import Folders, Study
from mrshc.study.designs_and_methods import (
    check_names,
    estimator_of,
    imputed,
    simulated,
    unsupported_clusters_allowed,
)
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import brief_table, check_columns, design_tables


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return every (design, draw, method), draw by draw: early results speak for all designs."""
    check_names(study, "design", "method")
    check_columns(study)
    designs, methods = range(len(study.entries("design"))), range(len(study.entries("method")))
    return [(d, draw, m) for draw in range(study.replicates) for d in designs for m in methods]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that say which row a task makes."""
    design, draw, method = task
    return {
        "design": study.entries("design")[design]["name"],
        "method": study.entries("method")[method]["name"],
        "draw": draw,
        "seed": study.option("seed") + draw,
    }


def run_task(study: Study, task: Task, _folders: Folders) -> list[Row]:
    """Return the scores of one method on one draw."""
    row = identity(study, task)
    method = study.entries("method")[task[2]]
    data = simulated(study, study.entries("design")[task[0]], row["seed"])
    # Pure noise has no truth to be right about: what is found in it is counted.
    known = data.support.any()
    with unsupported_clusters_allowed():
        X = imputed(study, method, data.X)
        model = estimator_of(study, method, row["seed"]).fit(X)
        row |= score(
            model,
            truth=data.labels if known else None,
            support=data.support if known else None,
            n_clusters=data.labels.max() + 1,
        )
    row |= {"n_clusters": getattr(model, "n_clusters_", None)}
    if data.outlying:
        row |= _without(data, model)
    if hasattr(model, "outlier_samples_"):
        row |= _flagged(data, model.outlier_samples_)
    if hasattr(model, "supported_"):
        row |= _associated(data, model)
    return [row]


def _without(data: SimulatedData, model: Any) -> Row:
    """Return the error on the samples that were left as they are."""
    rest = np.delete(np.arange(data.labels.size), data.outlying)
    labels = model.cut(data.labels.max() + 1)
    return {"cer_others": classification_error_rate(data.labels[rest], labels[rest])}


def _flagged(data: SimulatedData, flagged: NDArray[np.intp]) -> Row:
    """Return the share of the outlying samples that were found, and of the others that were."""
    hits = np.isin(data.outlying, flagged)
    others = data.labels.size - len(data.outlying)
    return {
        "found_outliers": hits.mean() if hits.size else None,
        "false_alarms": (flagged.size - hits.sum()) / others,
    }


def _associated(data: SimulatedData, model: Any) -> Row:
    """Return how well the associated features, rather than those of the tree, meet the truth."""
    found = np.isin(np.arange(data.support.size), model.associated_features_)
    row: Row = {"supported": model.supported_, "n_features": int(found.sum())}
    if data.support.any():
        row |= {
            "recall": feature_recall(data.support, found),
            "precision": feature_precision(data.support, found),
        }
    return row


def render(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the tables as Markdown."""
    check_columns(study)
    return design_tables(results, references, columns=study.option("columns"))


def brief(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the first design alone, for a front page."""
    return brief_table(results, references, columns=study.option("columns"))
