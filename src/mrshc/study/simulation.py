"""One draw of a simulated design, clustered by all methods of a study."""

from __future__ import annotations

import warnings
from typing import Any

import mrshc
from mrshc import datasets
from mrshc.comparison import compare
from mrshc.study.config import Study

Row = dict[str, Any]


def tasks(study: Study, replicates: int) -> list[tuple[int, int]]:
    """Return every (design, draw), draw by draw, so that early results speak for all designs."""
    return [(design, draw) for draw in range(replicates) for design in range(len(study.designs))]


def run_task(study: Study, design: int, draw: int) -> list[Row]:
    """Return the scores of every method on one draw; a method that fails has its error instead."""
    options = dict(study.designs[design])
    name = options.pop("name")
    make = getattr(datasets, options.pop("make"))
    seed = study.seed + draw
    data = make(seed, **options)
    rows = []
    for method in study.methods:
        row: Row = {"design": name, "method": method["name"], "draw": draw, "seed": seed}
        try:
            # Draws without supported clusters are counted, not warned of.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mrshc.UnsupportedClustersWarning)
                result = compare(
                    data.X,
                    methods={"it": _estimator(method, seed)},
                    truth=data.labels,
                    support=data.support,
                    n_clusters=study.n_clusters,
                )
            row |= result.scores.iloc[0].to_dict()
            row["n_clusters"] = getattr(result.models["it"], "n_clusters_", None)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        rows.append(row)
    return rows


def _estimator(method: dict[str, Any], seed: int) -> Any:
    options = {k: v for k, v in method.items() if k not in ("name", "estimator")}
    estimator = getattr(mrshc, method["estimator"])(**options)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    return estimator
