"""Computing times of several methods on the same simulated data sets."""

from __future__ import annotations

import time

import pandas as pd

from mrshc.study.config import Folders, Study, StudyError
from mrshc.study.designs_and_methods import (
    check_names,
    draw_dataset,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failure_note, markdown_table

# A fit that is timed must not share the computer with another fit.
ONE_AT_A_TIME = True

# Items of a method that contain times in seconds from the paper and from R.
_SOURCES = ("paper", "in_r")


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task for each design, method and draw (simulated data set).

    Raise StudyError if the config is invalid.
    """
    check_names(study, "design", "method")
    n_designs, n_methods = len(study.entries("design")), len(study.entries("method"))
    for method in study.entries("method"):
        for source in _SOURCES:
            if len(method.get(source, [None] * n_designs)) != n_designs:
                raise StudyError(
                    f"{study.name}.toml: {source} of {method['name']!r} must hold {n_designs} "
                    "numbers, one for each design."
                )
    draws = range(study.replicates)
    return [(d, m, draw) for d in range(n_designs) for m in range(n_methods) for draw in draws]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that identify a task in the table of results."""
    design, method, draw = task
    return {
        "design": study.entries("design")[design]["name"],
        "method": study.entries("method")[method]["name"],
        "draw": draw,
    }


def run_task(study: Study, task: Task, _folders: Folders) -> list[Row]:
    """Return one row, in a list, with the computing time of a method on a simulated data set."""
    design, method = study.entries("design")[task[0]], study.entries("method")[task[1]]
    seed = study.option("seed") + task[2]
    X = draw_dataset(study, design, seed).X
    # Only the time of the second fit is kept, since functions may be compiled during the first fit.
    for _ in range(2):
        estimator = make_estimator(study, method, seed)
        started = time.perf_counter()
        with ignore_unsupported_clusters():
            estimator.fit(X)
        seconds = time.perf_counter() - started
    return [identity(study, task) | {"seconds": seconds}]


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return a Markdown table of median times in seconds, with times from the paper and from R."""
    groups = results.dropna(subset=["seconds"]).groupby(["design", "method"])["seconds"]
    # Medians are shown, since other processes on the computer may slow down individual fits.
    median, low, high = groups.median(), groups.min(), groups.max()
    headings = ["seconds"]
    rows = [[method["name"]] for method in study.entries("method")]
    for k, design in enumerate(study.entries("design")):
        headings += [f"{design['name']}: paper", "R, recorded", "mrshc (smallest to largest)"]
        for row, method in zip(rows, study.entries("method"), strict=True):
            key = design["name"], method["name"]
            row += [f"{method[source][k]:g}" if source in method else "" for source in _SOURCES]
            row.append(
                f"{median[key]:.3f} ({low[key]:.3f} to {high[key]:.3f})" if key in median else ""
            )
    return markdown_table(headings, rows) + failure_note(results)
