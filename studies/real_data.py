"""Studies of many real data sets with known classes: one row for each set and method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mrshc.core.trees import silhouette_widths
from mrshc.estimators import branch_significance, stability
from mrshc.metrics import adjusted_rand_index
from studies.designs import Row, adapt, fit, impute, load_data
from studies.tables import failure_note, markdown_table

Task = tuple[int, int]  # set, method
# Largest number of clusters of the cuts whose average silhouettes are compared.
_MAX_CLUSTERS = 10
# A feature that is selected in at least this share of the subsamples is counted as stable.
_STABLE_FREQUENCY = 0.8


class Agreement:
    """Adjusted Rand index of the classes with a cut and with the method's own clusters.

    The tree is cut into as many clusters as there are classes. A method without a rule for the
    number of clusters has the cut of largest average silhouette as its own, one without a tree is
    fitted with the number of classes and has none.
    """

    def tasks(self, config: dict[str, Any]) -> list[Task]:
        """Return the tasks."""
        return [
            (s, m)
            for s, entry in enumerate(config["set"])
            for m, method in enumerate(config["method"])
            if entry["name"] not in method.get("leave_out", ())
        ]

    def identity(self, config: dict[str, Any], task: Task) -> Row:
        """Return the columns that identify a row."""
        entry, method = config["set"][task[0]], config["method"][task[1]]
        study = entry.get("study", entry["name"])
        return {"set": entry["name"], "study": study, "method": method["name"]}

    def run(self, config: dict[str, Any], task: Task, data: Path | None, _: Path) -> list[Row]:
        """Return the row of a task."""
        X, y = load_data(config["set"][task[0]], data)
        # A class of one sample is not a group that a method could find.
        classes, counts = np.unique(y, return_counts=True)
        scored, n_classes = np.isin(y, classes[counts > 1]), int((counts > 1).sum())
        method = adapt(config["method"][task[1]], n_classes, X.shape[1])
        X = impute(method, X)
        model = fit(method, X, config["seed"])
        has_tree = hasattr(model, "cut")
        cut = model.cut(n_classes) if has_tree else model.labels_
        row = self.identity(config, task) | {
            "n_samples": X.shape[0],
            "n_classes": n_classes,
            "ari": adjusted_rand_index(y[scored], cut[scored]),
            "n_features": model.n_features_selected_,
            "supported": getattr(model, "supported_", None),
        }
        if has_tree:
            labels = model.labels_ if hasattr(model, "labels_") else _best_cut(model, X)
            row["ari_found"] = adjusted_rand_index(y[scored], labels[scored])
            row["n_clusters"] = int(labels.max()) + 1
        return [row]

    def render(self, config: dict[str, Any], results: pd.DataFrame, _: Any) -> str:
        """Return the results as Markdown."""
        return render_agreement(config, results)


class Confidence:
    """Significance and stability."""

    def tasks(self, config: dict[str, Any]) -> list[Task]:
        """Return the tasks."""
        return [(s, m) for s in range(len(config["set"])) for m in range(len(config["method"]))]

    def identity(self, config: dict[str, Any], task: Task) -> Row:
        """Return the columns that identify a row."""
        names = config["set"][task[0]]["name"], config["method"][task[1]]["name"]
        return dict(zip(("set", "method"), names, strict=True))

    def run(self, config: dict[str, Any], task: Task, data: Path | None, _: Path) -> list[Row]:
        """Return the row of a task."""
        X, y = load_data(config["set"][task[0]], data)
        options = {"random_state": config["seed"], "n_jobs": 1}
        model = fit(config["method"][task[1]], X, config["seed"])
        tested = branch_significance(model, X, n_simulations=config["n_simulations"], **options)
        stable = stability(model, X, n_resamples=config["n_resamples"], **options)
        jaccard = stable.cluster_jaccard[~np.isnan(stable.cluster_jaccard)]
        row = self.identity(config, task) | {
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

    def render(self, _: Any, results: pd.DataFrame, __: Any) -> str:
        """Return the results as Markdown."""
        return render_confidence(results)


def _best_cut(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the labels of the cut, into 2 to 10 clusters, with the largest average silhouette."""
    distances = model.sample_distances(X)
    cuts = [model.cut(k) for k in range(2, min(_MAX_CLUSTERS, len(X) - 1) + 1)]
    return max(cuts, key=lambda labels: silhouette_widths(distances, labels).mean())


def render_agreement(config: dict[str, Any], results: pd.DataFrame) -> str:
    """Return the results as two Markdown tables.

    The first table has one row for each method. It contains means over data sets and paired
    differences from other methods. The second table contains the adjusted Rand index for each data
    set.
    """
    done = results.dropna(subset=["ari"])
    ari, ari_found = (
        done.pivot(index="set", columns="method", values=v) for v in ("ari", "ari_found")
    )
    # Data sets of one publication (the column "study") may share samples. The mean over
    # publications gives each publication the same weight.
    study_of = done.drop_duplicates("set").set_index("set")["study"]
    by_study = ari.groupby(study_of).mean()
    against = config["against"]
    headings = [
        *("method", "ARI at the number of classes", "mean over studies", "ARI of its clusters"),
        *(f"against {name}" for name in against),
        *("features", "clusters"),
    ]
    rows = []
    for method in (m["name"] for m in config["method"]):
        of_method = done[done["method"] == method]
        rows.append(
            [
                method + _format_n_datasets(of_method["set"].nunique(), n_all=len(ari)),
                _format_mean(ari[method]),
                f"{by_study[method].mean():.3f}",
                _format_mean(ari_found[method]),
                *(
                    "" if name == method else _format_difference(ari[method] - ari[name])
                    for name in against
                ),
                f"{of_method['n_features'].mean():,.0f}",
                _format_n_clusters(of_method["n_clusters"]),
            ]
        )
    intro = f"**{len(ari)} data sets of {len(by_study)} studies**\n\n"
    parts = [
        intro + markdown_table(headings, rows),
        _leave_one_study_out(ari, ari_found, study_of),
        _table_by_dataset(config, ari) + failure_note(results),
    ]
    return "\n".join(parts)


def _leave_one_study_out(ari: pd.DataFrame, ari_found: pd.DataFrame, study_of: pd.Series) -> str:
    """Return a Markdown table of the agreement if the method is chosen on other studies.

    For the data sets of each study, the method is used that has the largest mean index over the
    data sets of all other studies. The parameters have a row for each data set; `ari` and
    `ari_found` have a column for each method.
    """
    rows = []
    for quantity, values in (
        ("ARI at the number of classes", ari),
        ("ARI of its clusters", ari_found),
    ):
        # The choice is among the methods that have a value for every data set.
        complete = values.dropna(how="all").dropna(axis="columns")
        groups = study_of[complete.index]
        chosen = {
            name: complete[groups != name].mean().idxmax()
            for name in groups.unique()
            if (groups != name).any() and not complete.empty
        }
        if not chosen:  # a single study, or no method with all values
            continue
        reached = pd.Series(
            {name: complete.loc[name, chosen[groups[name]]] for name in complete.index}
        )
        counts = pd.Series(chosen).value_counts()
        methods = ", ".join(f"{method} ({count})" for method, count in counts.items())
        rows.append([quantity, _format_mean(reached), methods])
    headings = ["method chosen by", "on the study left out", "methods (number of studies)"]
    return markdown_table(headings, rows) if rows else ""


def _table_by_dataset(config: dict[str, Any], ari: pd.DataFrame) -> str:
    """Return a Markdown table with a row for each data set and a column for each shown method.

    The methods are listed in the entry `shown` of the config.
    """
    shown = config["shown"]
    rows = [
        [name, *(f"{ari.loc[name, method]:.2f}" for method in shown)]
        for name in (entry["name"] for entry in config["set"])
        # A data set on which every method failed has no row.
        if name in ari.index
    ]
    return markdown_table(["ARI at the number of classes", *shown], rows)


def _format_n_datasets(n: int, *, n_all: int) -> str:
    """Return a note if a method has results for n of all data sets only; otherwise no text."""
    return "" if n == n_all else f" ({n} data sets)"


def _format_n_clusters(values: pd.Series) -> str:
    """Return the mean number of clusters as text, which is empty if there are no values."""
    return "" if values.isna().all() else f"{values.mean():.1f}"


def _format_mean(values: pd.Series) -> str:
    """Return the mean of `values` as text, with its standard error in parentheses.

    The text is empty if there are no values.
    """
    return "" if values.isna().all() else f"{values.mean():.3f} ({values.sem():.3f})"


def _format_difference(differences: pd.Series) -> str:
    """Return the mean of paired differences as text, with its sign and its standard error."""
    return f"{differences.mean():+.3f} ({differences.sem():.3f})"


def render_confidence(results: pd.DataFrame) -> str:
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
