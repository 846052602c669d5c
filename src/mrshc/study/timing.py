"""Computing times: every method on the same draws, one after the other."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd

from mrshc.study.catalog import (
    check_names,
    estimator_of,
    simulated,
    unsupported_clusters_allowed,
)
from mrshc.study.config import Folders, Study
from mrshc.study.tables import failures, markdown_table

# Nothing may run beside a fit that is timed.
ONE_AT_A_TIME = True

# Entries of a method that hold the times of others.
_SOURCES = ("paper", "in_r")

Task = tuple[int, ...]
Row = dict[str, Any]


def tasks(study: Study) -> list[Task]:
    """Return every (design, method)."""
    check_names(study)
    designs, methods = range(len(study.option("design"))), range(len(study.option("method")))
    return [(d, m) for d in designs for m in methods]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that say which rows a task makes."""
    design, method = task
    return {
        "design": study.option("design")[design]["name"],
        "method": study.option("method")[method]["name"],
    }


def run_task(study: Study, task: Task, _folders: Folders) -> list[Row]:
    """Return the seconds of one method on every draw, after a first fit, which may compile."""
    design, method = study.option("design")[task[0]], study.option("method")[task[1]]
    rows = []
    for draw in range(-1, study.replicates):
        seed = study.option("seed") + max(draw, 0)
        X, estimator = simulated(study, design, seed).X, estimator_of(study, method, seed)
        started = time.perf_counter()
        with unsupported_clusters_allowed():
            estimator.fit(X)
        seconds = time.perf_counter() - started
        if draw >= 0:
            rows.append(identity(study, task) | {"draw": draw, "seconds": seconds})
    return rows


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return median seconds beside those of the paper and of R."""
    groups = results.dropna(subset=["seconds"]).groupby(["design", "method"])["seconds"]
    median, low, high = groups.median(), groups.min(), groups.max()
    headings = ["seconds"]
    rows = [[method["name"]] for method in study.option("method")]
    for k, design in enumerate(study.option("design")):
        headings += [f"{design['name']}: paper", "R, measured", "mrshc (smallest to largest)"]
        for row, method in zip(rows, study.option("method"), strict=True):
            it = design["name"], method["name"]
            row += [f"{method[source][k]:.3f}" if source in method else "" for source in _SOURCES]
            row.append(
                f"{median[it]:.3f} ({low[it]:.3f} to {high[it]:.3f})" if it in median else ""
            )
    return markdown_table(headings, rows) + failures(results)
