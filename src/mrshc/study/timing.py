"""Computing times: every method on the same draws, one after the other."""

from __future__ import annotations

import time
import warnings
from typing import Any

import pandas as pd

from mrshc import datasets
from mrshc.estimators import UnsupportedClustersWarning
from mrshc.study.config import Folders, Study
from mrshc.study.simulation import estimator_of
from mrshc.study.tables import markdown_table


def tasks(_study: Study, _replicates: int) -> list[tuple[int, ...]]:
    """Return one task: nothing may run beside a fit that is timed."""
    return [(0,)]


def run_task(study: Study, _task: tuple[int, ...], _folders: Folders) -> list[dict[str, Any]]:
    """Return the seconds of every fit. The first of each method, which may compile, is left out."""
    rows = []
    for design in study.option("design"):
        make = getattr(datasets, design["make"])
        for method in study.option("method"):
            for draw in range(-1, study.replicates):
                seed = study.option("seed") + max(draw, 0)
                X, estimator = make(seed).X, estimator_of(_without_references(method), seed)
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UnsupportedClustersWarning)
                    estimator.fit(X)
                seconds = time.perf_counter() - started
                names = {"design": design["name"], "method": method["name"]}
                if draw >= 0:
                    rows.append(names | {"draw": draw, "seconds": seconds})
    return rows


def _without_references(method: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in method.items() if k not in ("paper", "in_r")}


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return median seconds beside those of the paper and of R."""
    medians = results.groupby(["design", "method"])["seconds"].median()
    headings = ["seconds"]
    rows = [[method["name"]] for method in study.option("method")]
    for k, design in enumerate(study.option("design")):
        headings += [f"{design['name']}: paper", "R, measured", "mrshc"]
        for row, method in zip(rows, study.option("method"), strict=True):
            ours = medians[design["name"], method["name"]]
            row += [f"{method['paper'][k]:.3f}", f"{method['in_r'][k]:.3f}", f"{ours:.3f}"]
    return markdown_table(headings, rows)
