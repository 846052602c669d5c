"""Simulated designs, clustered by all methods of a study: many draws, means and their errors."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

import mrshc
from mrshc import datasets
from mrshc.comparison import compare
from mrshc.study.config import Folders, Study
from mrshc.study.tables import brief_table, design_tables

Row = dict[str, Any]


def tasks(study: Study, replicates: int) -> list[tuple[int, ...]]:
    """Return every (design, draw), draw by draw, so that early results speak for all designs."""
    designs = range(len(study.option("design")))
    return [(design, draw) for draw in range(replicates) for design in designs]


def run_task(study: Study, task: tuple[int, ...], _folders: Folders) -> list[Row]:
    """Return the scores of every method on one draw; a method that fails has its error instead."""
    design, draw = task
    options = dict(study.option("design")[design])
    name = options.pop("name")
    make = getattr(datasets, options.pop("make"))
    seed = study.option("seed") + draw
    data = make(seed, **options)
    # Pure noise has no truth to be right about: what is found in it is counted.
    truth, support = (data.labels, data.support) if data.support.any() else (None, None)
    rows = []
    for method in study.option("method"):
        row: Row = {"design": name, "method": method["name"], "draw": draw, "seed": seed}
        try:
            # Draws without supported clusters are counted, not warned of.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
                result = compare(
                    data.X,
                    methods={"it": estimator_of(method, seed)},
                    truth=truth,
                    support=support,
                )
            row |= result.scores.to_dict("index")["it"]
            row["n_clusters"] = getattr(result.models["it"], "n_clusters_", None)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        rows.append(row)
    return rows


def estimator_of(method: dict[str, Any], seed: int) -> Any:
    """Return the unfitted estimator that a config describes."""
    options = {k: v for k, v in method.items() if k not in ("name", "estimator")}
    estimator = getattr(mrshc, method["estimator"])(**options)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator


def render(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the tables as Markdown."""
    return design_tables(results, references, columns=study.option("columns"))


def brief(study: Study, results: pd.DataFrame, references: pd.DataFrame) -> str:
    """Return the first design alone, for a front page."""
    return brief_table(results, references, columns=study.option("columns"))
