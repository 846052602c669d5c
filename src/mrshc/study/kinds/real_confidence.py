"""Studies of significance and stability on real data with known classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mrshc.estimators import branch_significance, stability
from mrshc.metrics import adjusted_rand_index
from mrshc.study.config import Folders, Study
from mrshc.study.designs_and_methods import (
    check_names,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.kinds.many_real_datasets import load_dataset
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import markdown_table

# A feature that is selected in at least this share of the subsamples is counted as stable.
_STABLE_FREQUENCY = 0.8


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task for each data set and method; raise StudyError if the config is invalid."""
    check_names(study, "set", "method")
    sets, methods = range(len(study.entries("set"))), range(len(study.entries("method")))
    return [(s, m) for s in sets for m in methods]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that identify a task in the table of results."""
    return {
        "set": study.entries("set")[task[0]]["name"],
        "method": study.entries("method")[task[1]]["name"],
    }


def run_task(study: Study, task: Task, folders: Folders) -> list[Row]:
    """Return one row, in a list, with the significant and the stable clusters of a data set."""
    X, y = load_dataset(study, study.entries("set")[task[0]], folders)
    seed = study.option("seed")
    with ignore_unsupported_clusters():
        model = make_estimator(study, study.entries("method")[task[1]], seed).fit(X)
        tested = branch_significance(
            model, X, n_simulations=study.option("n_simulations"), random_state=seed, n_jobs=1
        )
        stable = stability(
            model, X, n_resamples=study.option("n_resamples"), random_state=seed, n_jobs=1
        )
    jaccard = stable.cluster_jaccard[~np.isnan(stable.cluster_jaccard)]
    row = identity(study, task) | {
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_classes": np.unique(y).size,
        "n_clusters": int(model.labels_.max()) + 1,
        "ari": adjusted_rand_index(y, model.labels_),
        "n_significant": int(tested.labels.max()) + 1,
        "ari_significant": adjusted_rand_index(y, tested.labels),
        "root_p_value": tested.p_value[0] if tested.p_value.size else None,
        "n_tested": tested.node.size,
        "n_simulated": int(tested.n_simulations.sum()),
        "n_selected": model.n_features_selected_,
        "n_stable": int((stable.feature_frequency >= _STABLE_FREQUENCY).sum()),
    }
    if jaccard.size:
        row |= {"jaccard_min": jaccard.min(), "jaccard_max": jaccard.max()}
    return [row]


def render(_study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return the results as a Markdown table with one row for each data set and method."""
    headings = [
        *("set", "method", "samples", "classes"),
        *("clusters", "ARI", "Jaccard indices"),
        *("significant clusters", "ARI of these", "p of the first split"),
        *("features", "in 80 % of the subsamples"),
    ]
    rows = [
        [
            *(row["set"], row["method"], str(row["n_samples"]), str(row["n_classes"])),
            *(str(row["n_clusters"]), f"{row['ari']:.2f}", _format_range(row)),
            *(str(row["n_significant"]), f"{row['ari_significant']:.2f}"),
            _format_p_value(row["root_p_value"]),
            *(str(row["n_selected"]), str(row["n_stable"])),
        ]
        for row in results.to_dict("records")
    ]
    return markdown_table(headings, rows)


def _format_range(row: dict[Any, Any]) -> str:
    """Return the smallest and the largest Jaccard index of the clusters."""
    if pd.isna(row.get("jaccard_min")):
        return ""  # there is only one cluster
    return f"{row['jaccard_min']:.2f} to {row['jaccard_max']:.2f}"


def _format_p_value(p_value: Any) -> str:
    if pd.isna(p_value):
        return ""  # no node has enough samples
    # A fitted distribution says little about smaller probabilities.
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.4f}"
