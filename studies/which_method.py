"""Summarise the methods in the committed studies, for the page docs/which-method.md.

    python studies/which_method.py

Replaces the table in the page, and the pictures docs/images/which-method*.png. The time of each
method is measured by `python benchmarks/bench.py methods`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from publish import ROOT, replace_section

from mrshc import compare
from mrshc.datasets import make_simulation_2
from mrshc.plotting import PALETTE, dendrograms, write_picture
from mrshc.study.tables import markdown_table, mean_and_error
from mrshc.utils.atomic_files import write_text

STUDIES = ROOT / "studies"
PAGE = ROOT / "docs" / "which-method.md"
IMAGES = ROOT / "docs" / "images"


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """A method, and its names in the studies; None if a study does not contain it."""

    label: str
    simulated: str | None = None  # in table1 and table2
    simulated_by_association: str | None = None  # in the study association
    real: str | None = None  # in realworld


METHODS = (
    Summarised(
        label="MrSHC, association, Ward",
        simulated_by_association="MrSHC, ward linkage, association",
        real="MrSHC, ward linkage, association",
    ),
    Summarised(label="HMV 500, Ward", real="HMV 500, ward linkage"),
    Summarised(label="MrSHC", simulated="MrSHC, q unknown", real="MrSHC"),
    Summarised(label="SHC", simulated="SHC, q unknown"),
    Summarised(label="SHC-SSL", simulated="SHC-SSL, q unknown", real="SHC-SSL"),
    Summarised(label="SHC-SSL, Ward", real="SHC-SSL, ward linkage"),
    Summarised(
        label="sparse K-means, K known",
        simulated="sparse K-means, K known, q unknown",
        real="sparse K-means, K known",
    ),
    Summarised(label="COSA", simulated="COSA, average linkage", real="COSA, average linkage"),
    Summarised(label="HC", simulated="HC"),
)
# Study and design in table1 or table2, and the same design in the study association.
SIMULATIONS = {
    "Simulation I": ("table1", "Simulation I, mu = 1", "Simulation I"),
    "Simulation II": ("table2", "Simulation II, all features sd 1", "Simulation II, sd 1"),
}


def summarise(studies: Path = STUDIES) -> pd.DataFrame:
    """Return means and standard errors of each method, with one row for each method.

    The columns are pairs of a data set ("Simulation I", "Simulation II" or "real") and a quantity,
    such as "cer" or "cer_error".
    """
    association, real = (
        pd.read_csv(studies / f"{name}.csv") for name in ("association", "realworld")
    )
    rows = {}
    for method in METHODS:
        row: dict[tuple[str, str], float] = {}
        for label, (study, design, design_by_association) in SIMULATIONS.items():
            results, name = pd.read_csv(studies / f"{study}.csv"), method.simulated
            if method.simulated_by_association is not None:
                results, name = association, method.simulated_by_association
                design = design_by_association
            draws = results[(results["design"] == design) & (results["method"] == name)]
            for quantity in ("cer", "recall", "precision", "n_features"):
                row[label, quantity], row[label, f"{quantity}_error"] = mean_and_error(
                    draws[quantity]
                )
        sets = real[real["method"] == method.real]
        for quantity in ("ari", "ari_found", "n_features"):
            row["real", quantity], row["real", f"{quantity}_error"] = mean_and_error(sets[quantity])
        rows[method.label] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def render_table(summary: pd.DataFrame) -> str:
    """Return the summary as a Markdown table."""
    headings = ["method"]
    for label in SIMULATIONS:
        headings += [f"{label}: CER", "recall", "precision"]
    headings += ["real data: ARI at the number of classes", "ARI of its clusters", "features"]
    rows = []
    for method, values in summary.iterrows():
        row = [str(method)]
        for label in SIMULATIONS:
            row.append(_format(values[label, "cer"], values[label, "cer_error"]))
            row += [_format(values[label, q]) for q in ("recall", "precision")]
        row += [
            _format(values["real", q], values["real", f"{q}_error"]) for q in ("ari", "ari_found")
        ]
        n_features = values["real", "n_features"]
        row.append("" if np.isnan(n_features) else f"{n_features:,.0f}")
        rows.append(row)
    return markdown_table(headings, rows)


def _format(mean: float, error: float = np.nan) -> str:
    """Return a mean as text, with its standard error in parentheses if it is not NaN."""
    if np.isnan(mean):
        return ""
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ({error:.3f})"


def draw_summary(summary: pd.DataFrame, path: Path) -> None:
    """Write a picture of the agreement with the true classes, with a panel for each data set."""
    panels = {
        "Simulation I": ("cer", "classification error rate\n(smaller is better)"),
        "Simulation II": ("cer", "classification error rate\n(smaller is better)"),
        "real": ("ari", "adjusted Rand index\n(larger is better)"),
    }
    figure = Figure(figsize=(11, 4), layout="constrained")
    positions = np.arange(len(summary))[::-1]  # the first method is at the top
    for ax, (label, (quantity, meaning)) in zip(
        figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True
    ):
        means, errors = summary[label, quantity], summary[label, f"{quantity}_error"]
        ax.barh(positions, means, color=PALETTE[0], height=0.6)
        ax.errorbar(means, positions, xerr=errors, fmt="none", ecolor="black", capsize=2)
        for position, mean in zip(positions, means, strict=True):
            if np.isnan(mean):
                ax.text(0.0, position, " not in this study", va="center", fontsize=8, color="grey")
        ax.set_title("42 real data sets" if label == "real" else label, fontsize=11)
        ax.set_xlabel(meaning)
        ax.set_xlim(left=0)
        ax.set_yticks(positions, list(summary.index))
        ax.spines[["top", "right"]].set_visible(False)
    write_picture(figure, path, dpi=150)


def draw_trees(path: Path) -> None:
    """Write a picture of the trees of the methods for one draw of Simulation II."""
    data = make_simulation_2(1, mu=1.3, informative_sd=1.0)
    keys = ["mrshc-association", "hmv-500-ward", "mrshc", "shc", "shc-ssl", "cosa"]
    comparison = compare(data.X, methods=keys, random_state=0)
    classes = {"true cluster": data.labels + 1}
    write_picture(dendrograms(comparison.models, annotations=classes), path, dpi=150)


def update_page() -> None:
    """Replace the table of the page and its pictures."""
    summary = summarise()
    text = PAGE.read_text(encoding="utf-8")
    write_text(PAGE, replace_section(text, "which method", render_table(summary)))
    draw_summary(summary, IMAGES / "which-method.png")
    draw_trees(IMAGES / "which-method-trees.png")


if __name__ == "__main__":
    update_page()
