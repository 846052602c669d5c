"""Studies of simulated data: one row for each design, draw and method."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mrshc.comparison import score_model
from mrshc.core.trees import Tree
from mrshc.datasets import SimulatedData
from mrshc.estimators import branch_significance, stability
from mrshc.metrics import (
    adjusted_rand_index,
    classification_error_rate,
    feature_precision,
    feature_recall,
)
from studies.designs import Row, data_file, draw_data, fit, impute
from studies.tables import design_tables, failure_note, markdown_table

Task = tuple[int, int, int]  # design, draw, method
# Size of data with the covariance of a real data set: that of the simulations of the paper.
_N_SAMPLES, _N_FEATURES = 60, 500


class Simulation:
    """A kind of study whose rows are made by `score(config, method, data, seed)`."""

    def __init__(self, score: Callable[..., Row]) -> None:
        self.score = score

    def tasks(self, config: dict[str, Any]) -> list[Task]:
        """Return the tasks; shares of finished draws are equal if the study is interrupted.

        `share` of a design or a method limits the number of its draws.
        """
        shares: dict[Task, float] = {}
        for d, design in enumerate(config["design"]):
            for m, method in enumerate(config["method"]):
                share = min(entry.get("share", 1.0) for entry in (design, method))
                n_draws = max(1, round(share * config["replicates"]))
                shares |= {(d, draw, m): draw / n_draws for draw in range(n_draws)}
        return sorted(shares, key=shares.__getitem__)

    def identity(self, config: dict[str, Any], task: Task) -> Row:
        """Return the columns that identify a row."""
        design, draw, method = task
        return {
            "design": config["design"][design]["name"],
            "method": config["method"][method]["name"],
            "draw": draw,
            "seed": config["seed"] + draw,
        }

    def run(self, config: dict[str, Any], task: Task, data: Path | None, _: Path) -> list[Row]:
        """Return the row of a task."""
        row = self.identity(config, task)
        design = config["design"][task[0]]
        if "covariance_of" in design:
            path = data_file(design["covariance_of"], data)
            drawn = _draw_with_real_covariance(path, row["seed"])
        else:
            drawn = draw_data(design, row["seed"])
        return [row | self.score(config, config["method"][task[2]], drawn, row["seed"])]

    def render(self, config: dict[str, Any], results: Any, references: Any) -> str:
        """Return one table for each design."""
        return design_tables(results, references, columns=config["columns"])


def score_clusters(_: Any, method: dict[str, Any], data: SimulatedData, seed: int) -> Row:
    """Return scores of the clusters and features that a method finds."""
    model = fit(method, impute(method, data.X), seed)
    # Without informative features, only the number of clusters is of interest.
    has_truth = data.support.any()
    row = score_model(
        model,
        truth=data.labels if has_truth else None,
        support=data.support if has_truth else None,
        n_clusters=data.labels.max() + 1,
    )
    # The method's own number of clusters; the scores are those of a cut into the true number.
    row |= {"n_clusters": getattr(model, "n_clusters_", None)}
    if has_truth and hasattr(model, "labels_"):
        row |= {"cer_found": classification_error_rate(data.labels, model.labels_)}
    if data.outlying:  # they belong to no cluster
        rest = np.delete(np.arange(data.labels.size), data.outlying)
        labels = model.cut(data.labels.max() + 1)
        row |= {"cer_others": classification_error_rate(data.labels[rest], labels[rest])}
    if hasattr(model, "outlier_samples_"):
        hits = np.isin(data.outlying, model.outlier_samples_)
        n_others = data.labels.size - len(data.outlying)
        row |= {
            "found_outliers": hits.mean() if hits.size else None,
            "false_alarms": (model.outlier_samples_.size - hits.sum()) / n_others,
        }
    if hasattr(model, "supported_"):
        # A tree has a limited number of features; all that differ between clusters are meant.
        associated = np.isin(np.arange(data.support.size), model.associated_features_)
        row |= {"supported": model.supported_, "n_features": int(associated.sum())}
        if has_truth:
            row |= {
                "recall": feature_recall(data.support, associated),
                "precision": feature_precision(data.support, associated),
            }
    return row


def score_stability(config: Any, method: dict[str, Any], data: SimulatedData, seed: int) -> Row:
    """Return the stability of clusters with the true number of clusters, or with more."""
    n_clusters = int(data.labels.max()) + 1 + method.get("extra_clusters", 0)
    model = fit(method, data.X, seed, n_clusters=n_clusters)
    n_resamples = config["n_resamples"]
    result = stability(model, data.X, n_resamples=n_resamples, random_state=seed, n_jobs=1)
    row = {
        "jaccard_min": result.cluster_jaccard.min(),
        "jaccard_mean": result.cluster_jaccard.mean(),
        "frequency_noise": result.feature_frequency[~data.support].mean(),
    }
    if data.support.any():
        row |= {"frequency_informative": result.feature_frequency[data.support].mean()}
    return row


def score_markers(config: Any, method: dict[str, Any], data: SimulatedData, seed: int) -> Row:
    """Return how many markers there are, and how many of them are not informative features."""
    model = fit(method, data.X, seed)
    features = model.markers(data.X, alpha=config["alpha"])["feature"].unique()
    n_false = features[~data.support[features]].size
    return {
        "n_markers": features.size,
        "n_false_markers": n_false,
        "any_false_marker": bool(n_false),
        "supported": model.supported_,
    }


def score_significance(config: Any, method: dict[str, Any], data: SimulatedData, seed: int) -> Row:
    """Return how many significant splits separate true groups, and whether one divides a group."""
    model = fit(method, data.X, seed)
    n_simulations = config["n_simulations"]
    result = branch_significance(
        model, data.X, n_simulations=n_simulations, random_state=seed, n_jobs=1
    )
    tree = Tree(model.linkage_matrix_)
    nodes = result.node[result.significant] + tree.n_samples
    separates = np.array([separates_groups(tree, int(node), data.labels) for node in nodes], bool)
    n_true = data.labels.max()  # a tree separates k groups by k - 1 splits
    row: Row = {
        # The first tested node is the root unless small branches are left out.
        "root_p_value": result.p_value[0] if result.p_value.size else None,
        "first_split": bool(result.significant[:1].any()),
        "true_splits": int(separates.sum()),
        "false_split": bool((~separates).any()),
        "n_simulated": int(result.n_simulations.sum()),
    }
    if n_true > 0:
        ari = adjusted_rand_index(data.labels, result.labels)
        row |= {"all_splits": bool(separates.sum() >= n_true), "ari": ari}
    return row


def separates_groups(tree: Tree, node: int, labels: np.ndarray) -> bool:
    """Return whether both branches of a node contain most samples of some true group."""
    branches = [labels[tree.members(child)] for child in tree.children(node)]
    counts = np.array([np.bincount(branch, minlength=labels.max() + 1) for branch in branches])
    is_below = counts.sum(axis=0) > np.bincount(labels) / 2
    return bool(np.unique(counts[:, is_below].argmax(axis=0)).size == 2)


def _draw_with_real_covariance(path: Path, seed: int) -> SimulatedData:
    """Return Gaussian data with the covariance of the most variable features of real data."""
    with np.load(path, allow_pickle=False) as content:
        values = content["X"].astype(np.float64)
    centred = values - np.nanmean(values, axis=0)
    centred[np.isnan(centred)] = 0.0
    widest = np.sort(np.argsort(-centred.var(axis=0), kind="stable")[:_N_FEATURES])
    weights = np.random.RandomState(seed).normal(size=(_N_SAMPLES, len(values)))
    return SimulatedData(
        X=weights @ centred[:, widest] / np.sqrt(len(values) - 1),
        labels=np.zeros(_N_SAMPLES, dtype=np.intp),
        support=np.zeros(widest.size, dtype=bool),
        sample_names=tuple(f"S{i + 1}" for i in range(_N_SAMPLES)),
        feature_names=tuple(f"V{j + 1}" for j in widest),
    )


class Timing(Simulation):
    """Computing times, with those from the paper and from R."""

    def identity(self, config: dict[str, Any], task: Task) -> Row:
        """Return the columns that identify a row."""
        row = super().identity(config, task)
        return {key: row[key] for key in ("design", "method", "draw")}

    def run(self, config: dict[str, Any], task: Task, data: Path | None, out: Path) -> list[Row]:
        """Return the row of a task."""
        seed = config["seed"] + task[1]
        drawn, method = draw_data(config["design"][task[0]], seed), config["method"][task[2]]
        return [self.identity(config, task) | self.score(config, method, drawn, seed)]

    def render(self, config: dict[str, Any], results: pd.DataFrame, references: Any) -> str:
        """Return a table of median times; other processes may slow down single fits."""
        groups = results.dropna(subset=["seconds"]).groupby(["design", "method"])["seconds"]
        median, low, high = groups.median(), groups.min(), groups.max()
        headings, rows = ["seconds"], [[method["name"]] for method in config["method"]]
        for k, design in enumerate(config["design"]):
            headings += [f"{design['name']}: paper", "R, recorded", "mrshc (smallest to largest)"]
            for row, method in zip(rows, config["method"], strict=True):
                key = design["name"], method["name"]
                row += [f"{method[s][k]:g}" if s in method else "" for s in ("paper", "in_r")]
                shown = ""
                if key in median:
                    shown = f"{median[key]:.3f} ({low[key]:.3f} to {high[key]:.3f})"
                row.append(shown)
        return markdown_table(headings, rows) + failure_note(results)


def measure_time(_: Any, method: dict[str, Any], data: SimulatedData, seed: int) -> Row:
    """Return the seconds of the second fit; functions may be compiled during the first."""
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        fit(method, data.X, seed)
        seconds = time.perf_counter() - started
    return {"seconds": seconds}
