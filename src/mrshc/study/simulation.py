"""Simulated designs, clustered by all methods of a study: many draws, means and their errors."""

from __future__ import annotations

import pandas as pd

from mrshc.comparison import score
from mrshc.study.catalog import (
    check_names,
    estimator_of,
    simulated,
    unsupported_clusters_allowed,
)
from mrshc.study.config import Folders, Study
from mrshc.study.journal import Row, Task
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
    data = simulated(study, study.entries("design")[task[0]], row["seed"])
    # Pure noise has no truth to be right about: what is found in it is counted.
    known = data.support.any()
    with unsupported_clusters_allowed():
        model = estimator_of(study, study.entries("method")[task[2]], row["seed"]).fit(data.X)
        row |= score(
            model,
            truth=data.labels if known else None,
            support=data.support if known else None,
            n_clusters=data.labels.max() + 1,
        )
    return [row | {"n_clusters": getattr(model, "n_clusters_", None)}]


def render(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the tables as Markdown."""
    check_columns(study)
    return design_tables(results, references, columns=study.option("columns"))


def brief(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the first design alone, for a front page."""
    return brief_table(results, references, columns=study.option("columns"))
