"""Studies of markers: how many features are reported that do not differ between true groups."""

from __future__ import annotations

import pandas as pd

from mrshc.study.config import Folders, Study
from mrshc.study.designs_and_methods import (
    check_names,
    draw_dataset,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.kinds.simulated_designs import identity
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import check_columns, design_tables

__all__ = ["identity", "render", "run_task", "tasks"]


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task for each design, draw (simulated data set) and method, ordered by draw.

    Raise StudyError if the config is invalid.
    """
    check_names(study, "design", "method")
    check_columns(study)
    designs, methods = range(len(study.entries("design"))), range(len(study.entries("method")))
    return [(d, draw, m) for draw in range(study.replicates) for d in designs for m in methods]


def run_task(study: Study, task: Task, _folders: Folders) -> list[Row]:
    """Return one row, in a list, with the numbers of all markers and of false markers.

    A marker is a feature with a q-value of at most 0.05 in any comparison. It is false if it is not
    an informative feature.
    """
    row = identity(study, task)
    data = draw_dataset(study, study.entries("design")[task[0]], row["seed"])
    with ignore_unsupported_clusters():
        model = make_estimator(study, study.entries("method")[task[2]], row["seed"]).fit(data.X)
        markers = model.markers(data.X, alpha=study.option("alpha"))
    features = markers["feature"].unique()
    false = features[~data.support[features]]
    return [
        row
        | {
            "n_markers": features.size,
            "n_false_markers": false.size,
            "any_false_marker": bool(false.size),
            "supported": model.supported_,
        }
    ]


def render(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the results as Markdown, with one table for each design."""
    check_columns(study)
    return design_tables(results, references, columns=study.option("columns"))
