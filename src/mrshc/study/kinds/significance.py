"""Studies of the significance of branches: error rates on data without clusters, and power.

A design is simulated as in other studies, or drawn from a Gaussian distribution with the covariance
of a real data set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.trees import Tree
from mrshc.datasets import SimulatedData
from mrshc.estimators import branch_significance
from mrshc.estimators.confidence import BranchSignificance
from mrshc.metrics import adjusted_rand_index
from mrshc.study.config import Folders, Study, missing_data_error
from mrshc.study.designs_and_methods import (
    check_names,
    draw_dataset,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.kinds.simulated_designs import identity, render
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import check_columns

__all__ = ["identity", "render", "run_task", "tasks"]

# Size of the data that are drawn with the covariance of a real data set: that of the simulations of
# the paper.
_N_SAMPLES, _N_FEATURES = 60, 500


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task for each design, draw (simulated data set) and method.

    The item `share` of a design or a method limits the number of its draws to a share of
    `replicates`. The tasks are ordered such that the shares of the finished draws are equal in a
    study that is interrupted. Raise StudyError if the config is invalid.
    """
    check_names(study, "design")
    check_names(study, "method")
    check_columns(study)
    designs, methods = study.entries("design"), study.entries("method")
    for design in designs:
        if "covariance_of" not in design:
            draw_dataset(study, design, study.option("seed"))
    shares: dict[Task, float] = {}
    for d, design in enumerate(designs):
        for m, method in enumerate(methods):
            share = min(entry.get("share", 1.0) for entry in (design, method))
            n_draws = max(1, round(share * study.replicates))
            shares |= {(d, draw, m): draw / n_draws for draw in range(n_draws)}
    return sorted(shares, key=shares.__getitem__)


def run_task(study: Study, task: Task, folders: Folders) -> list[Row]:
    """Return one row, in a list, with the significant splits of one method on one data set."""
    row = identity(study, task)
    design, method = study.entries("design")[task[0]], study.entries("method")[task[2]]
    if "covariance_of" in design:
        data = _draw_with_real_covariance(study, design["covariance_of"], folders, row["seed"])
    else:
        data = draw_dataset(study, design, row["seed"])
    with ignore_unsupported_clusters():
        model = make_estimator(study, method, row["seed"]).fit(data.X)
        result = branch_significance(
            model,
            data.X,
            n_simulations=study.option("n_simulations"),
            random_state=row["seed"],
            n_jobs=1,  # the tasks of a study are run in parallel
        )
    return [row | _score(Tree(model.linkage_matrix_), result, data)]


def _score(tree: Tree, result: BranchSignificance, data: SimulatedData) -> Row:
    """Return the numbers of significant splits that separate groups, and that divide a group."""
    nodes = result.node[result.significant] + tree.n_samples
    separates = np.array([_separates_groups(tree, int(node), data.labels) for node in nodes])
    n_true = data.labels.max()  # a tree separates k groups by k - 1 splits
    row: Row = {
        # The first tested node is the root unless small branches are left out.
        "root_p_value": result.p_value[0] if result.p_value.size else None,
        "first_split": bool(result.significant[:1].any()),
        "true_splits": int(separates.sum()),
        "false_split": bool((~separates.astype(bool)).any()),
        "n_simulated": int(result.n_simulations.sum()),
    }
    if n_true > 0:
        row |= {
            "all_splits": bool(separates.sum() >= n_true),
            "ari": adjusted_rand_index(data.labels, result.labels),
        }
    return row


def _separates_groups(tree: Tree, node: int, labels: NDArray[np.intp]) -> bool:
    """Return whether both branches of a node contain most samples of some true group.

    Otherwise the split divides a single group, except for some samples of other groups.
    """
    counts = np.array(
        [
            np.bincount(labels[tree.members(child)], minlength=labels.max() + 1)
            for child in tree.children(node)
        ]
    )
    is_below = counts.sum(axis=0) > np.bincount(labels) / 2
    return bool(np.unique(counts[:, is_below].argmax(axis=0)).size == 2)


def _draw_with_real_covariance(
    study: Study, name: Any, folders: Folders, seed: int
) -> SimulatedData:
    """Return Gaussian data with the covariance of the most variable features of a real data set."""
    path = Path() if folders.data is None else folders.data / f"{name}.npz"
    if not path.is_file():
        raise missing_data_error(study, f"{name}.npz")
    with np.load(path, allow_pickle=False) as content:
        values = content["X"].astype(np.float64)
    centred = values - np.nanmean(values, axis=0)
    centred[np.isnan(centred)] = 0.0
    widest = np.sort(np.argsort(-centred.var(axis=0), kind="stable")[:_N_FEATURES])
    weights = np.random.RandomState(seed).normal(size=(_N_SAMPLES, len(values)))
    X = weights @ centred[:, widest] / np.sqrt(len(values) - 1)
    return SimulatedData(
        X=X,
        labels=np.zeros(_N_SAMPLES, dtype=np.intp),
        support=np.zeros(widest.size, dtype=bool),
        sample_names=tuple(f"S{i + 1}" for i in range(_N_SAMPLES)),
        feature_names=tuple(f"V{j + 1}" for j in widest),
    )
