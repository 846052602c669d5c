"""Studies of several methods on simulated data: scores for each draw, and means over draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.comparison import score_model
from mrshc.datasets import SimulatedData
from mrshc.metrics import classification_error_rate, feature_precision, feature_recall
from mrshc.study.config import Folders, Study
from mrshc.study.designs_and_methods import (
    check_names,
    draw_dataset,
    ignore_unsupported_clusters,
    impute_for_method,
    make_estimator,
)
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import brief_table, check_columns, design_tables


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task for each design, draw (simulated data set) and method, ordered by draw.

    Raise StudyError if the config is invalid.
    """
    check_names(study, "design", "method")
    check_columns(study)
    # The tasks are ordered by draw, so that the first results of a long study cover all designs and
    # methods.
    designs, methods = range(len(study.entries("design"))), range(len(study.entries("method")))
    return [(d, draw, m) for draw in range(study.replicates) for d in designs for m in methods]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that identify a task in the table of results."""
    design, draw, method = task
    return {
        "design": study.entries("design")[design]["name"],
        "method": study.entries("method")[method]["name"],
        "draw": draw,
        "seed": study.option("seed") + draw,
    }


def run_task(study: Study, task: Task, _folders: Folders) -> list[Row]:
    """Return one row, in a list, with the scores of one method on one simulated data set."""
    row = identity(study, task)
    method = study.entries("method")[task[2]]
    data = draw_dataset(study, study.entries("design")[task[0]], row["seed"])
    # Without informative features, there are no true clusters, so only the number of clusters is of
    # interest.
    has_truth = data.support.any()
    with ignore_unsupported_clusters():
        X = impute_for_method(study, method, data.X)
        model = make_estimator(study, method, row["seed"]).fit(X)
        row |= score_model(
            model,
            truth=data.labels if has_truth else None,
            support=data.support if has_truth else None,
            n_clusters=data.labels.max() + 1,
        )
    # `n_clusters` is the number of clusters that the method chose, whereas the scores are those of
    # the tree cut into the true number of clusters.
    row |= {"n_clusters": getattr(model, "n_clusters_", None)}
    if has_truth and hasattr(model, "labels_"):
        row |= {"cer_found": classification_error_rate(data.labels, model.labels_)}
    if data.outlying:
        row |= _score_other_samples(data, model)
    if hasattr(model, "outlier_samples_"):
        row |= _score_outlier_detection(data, model.outlier_samples_)
    if hasattr(model, "supported_"):
        row |= _score_associated_features(data, model)
    return [row]


def _score_other_samples(data: SimulatedData, model: Any) -> Row:
    """Return the classification error rate among the samples that are not outlying."""
    # Outlying samples do not belong to any cluster, so their labels are arbitrary.
    rest = np.delete(np.arange(data.labels.size), data.outlying)
    labels = model.cut(data.labels.max() + 1)
    return {"cer_others": classification_error_rate(data.labels[rest], labels[rest])}


def _score_outlier_detection(data: SimulatedData, flagged: NDArray[np.intp]) -> Row:
    """Return the proportions of outlying samples and of other samples that were flagged.

    `flagged` contains the positions of the samples that the method identified as outlying.
    """
    hits = np.isin(data.outlying, flagged)
    # The first proportion is None if there are no outlying samples.
    others = data.labels.size - len(data.outlying)
    return {
        "found_outliers": hits.mean() if hits.size else None,
        "false_alarms": (flagged.size - hits.sum()) / others,
    }


def _score_associated_features(data: SimulatedData, model: Any) -> Row:
    """Return scores of the features that are associated with the clusters.

    The returned entries state whether the data support the clusters, and contain the number, recall
    and precision of the associated features. These values replace the scores of the features on
    which the tree is built, since a refinement is meant to find all features that differ between
    the clusters.
    """
    associated = np.isin(np.arange(data.support.size), model.associated_features_)
    row: Row = {"supported": model.supported_, "n_features": int(associated.sum())}
    if data.support.any():
        row |= {
            "recall": feature_recall(data.support, associated),
            "precision": feature_precision(data.support, associated),
        }
    return row


def render(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the results as Markdown, with one table for each design."""
    # The columns are checked again, since the config may have been changed after the study was run.
    check_columns(study)
    return design_tables(results, references, columns=study.option("columns"))


def render_brief(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return a Markdown table for the first simulation design in `results`."""
    return brief_table(results, references, columns=study.option("columns"))
