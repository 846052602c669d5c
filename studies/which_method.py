"""Summarise the methods in the committed studies, for the page docs/guide/which-method.md.

    python -m studies.which_method

Replaces the table in the page, and the pictures docs/images/which-method*.png. The time of each
method is measured by `python benchmarks/bench.py methods`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mrshc import compare
from mrshc.datasets import make_simulation_2
from mrshc.plotting import PALETTE, dendrograms, write_picture
from mrshc.shell.atomic_files import write_text
from studies.pages import ROOT, replace_section
from studies.tables import markdown_table, mean_and_error

STUDIES = ROOT / "studies"
PAGE = ROOT / "docs" / "guide" / "which-method.md"
IMAGES = ROOT / "docs" / "images"


@dataclass(frozen=True, kw_only=True)
class MethodInStudies:
    """A method, and its names in the studies; None if a study does not contain it."""

    label: str
    linkage: str
    in_tables: str | None = None  # in table1 and table2
    in_association_study: str | None = None  # in the study association
    real: str | None = None  # in realworld


METHODS = (
    MethodInStudies(
        label="AssociationHC",
        linkage="ward",
        in_association_study="MrSHC, ward linkage, association",
        real="MrSHC, ward linkage, association",
    ),
    MethodInStudies(label="HMV 500, Ward", linkage="ward", real="HMV 500, ward linkage"),
    MethodInStudies(label="MrSHC", linkage="complete", in_tables="MrSHC, q unknown", real="MrSHC"),
    MethodInStudies(label="SHC", linkage="complete", in_tables="SHC, q unknown"),
    MethodInStudies(
        label="SHC-SSL", linkage="complete", in_tables="SHC-SSL, q unknown", real="SHC-SSL"
    ),
    MethodInStudies(label="SHC-SSL, Ward", linkage="ward", real="SHC-SSL, ward linkage"),
    MethodInStudies(
        label="sparse K-means, K known",
        linkage="none",
        in_tables="sparse K-means, K known, q unknown",
        real="sparse K-means, K known",
    ),
    MethodInStudies(
        label="COSA",
        linkage="average",
        in_tables="COSA, average linkage",
        real="COSA, average linkage",
    ),
    MethodInStudies(label="HC", linkage="complete", in_tables="HC"),
    MethodInStudies(label="HC, Ward", linkage="ward", real="HC, ward linkage"),
)
# Method of the study realworld with which the others are compared.
COMPARED_WITH = "HMV 500, ward linkage"
# Study and design in table1 or table2, and the same design in the study association, which does not
# contain the third one.
SIMULATIONS = {
    "Simulation I": ("table1", "Simulation I, mu = 1", "Simulation I"),
    "Simulation II": ("table2", "Simulation II, all features sd 1", "Simulation II, sd 1"),
    "II, tight": ("table2", "Simulation II as printed, sd 0.1", None),
}


def summarise(studies: Path = STUDIES) -> pd.DataFrame:
    """Return means and standard errors of each method, with one row for each method.

    The columns are pairs of a data set (a key of `SIMULATIONS`, or "real") and a quantity, such as
    "cer" or "cer_error".
    """
    names = ("table1", "table2", "association", "realworld")
    tables = {name: pd.read_csv(studies / f"{name}.csv") for name in names}
    real = tables["realworld"].pivot(index="set", columns="method", values="ari")
    rows = {}
    for method in METHODS:
        row: dict[tuple[str, str], float] = {}
        for label, (study, design, design_by_association) in SIMULATIONS.items():
            results, name = tables[study], method.in_tables
            if method.in_association_study is not None:
                results, name = tables["association"], method.in_association_study
                design = design_by_association
            draws = results[(results["design"] == design) & (results["method"] == name)]
            for quantity in ("cer", "recall", "precision", "n_features"):
                row[label, quantity], row[label, f"{quantity}_error"] = mean_and_error(
                    draws[quantity]
                )
        sets = tables["realworld"].query("method == @method.real").set_index("set")
        # The data sets to which a method was not fitted are left out of its differences.
        sets["difference"] = sets["ari"] - real[COMPARED_WITH]
        row["real", "n_sets"] = len(sets)
        for quantity in ("ari", "ari_found", "difference", "n_features"):
            row["real", quantity], row["real", f"{quantity}_error"] = mean_and_error(sets[quantity])
        rows[method.label] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def render_table(summary: pd.DataFrame) -> str:
    """Return the summary as a Markdown table."""
    headings = ["method"]
    for label in SIMULATIONS:
        headings += [f"{label}: CER", "recall", "precision"]
    headings += ["real data: ARI at the number of classes", "difference from HMV 500, Ward"]
    headings += ["ARI of its clusters", "features", "linkage"]
    linkages = {method.label: method.linkage for method in METHODS}
    rows = []
    for method, values in summary.iterrows():
        n_sets = values["real", "n_sets"]
        is_partial = 0 < n_sets < summary["real", "n_sets"].max()
        row = [f"{method} ({n_sets:.0f} data sets)" if is_partial else str(method)]
        for label in SIMULATIONS:
            row.append(_format(values[label, "cer"], values[label, "cer_error"]))
            row += [_format(values[label, q]) for q in ("recall", "precision")]
        for q in ("ari", "difference", "ari_found"):
            row.append(_format(values["real", q], values["real", f"{q}_error"]))
        n_features = values["real", "n_features"]
        row.append("" if np.isnan(n_features) else f"{n_features:,.0f}")
        rows.append([*row, linkages[method]])
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
        "II, tight": ("cer", "classification error rate\n(smaller is better)"),
        "real": ("ari", "adjusted Rand index\n(larger is better)"),
    }
    titles = {"II, tight": "Simulation II, tight", "real": "42 real data sets"}
    figure = Figure(figsize=(13, 4), layout="constrained")
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
            elif mean < 0.02 * means.max():  # the bar is too short to be seen
                ax.text(0.0, position, f"   {mean:.3f}", va="center", fontsize=8)
        ax.set_title(titles.get(label, label), fontsize=11)
        ax.set_xlabel(meaning)
        ax.set_xlim(left=0)
        ax.set_yticks(positions, list(summary.index))
        ax.spines[["top", "right"]].set_visible(False)
    write_picture(figure, path, dpi=150)


def draw_trees(path: Path) -> None:
    """Write a picture of the trees of the methods for one draw of Simulation II."""
    data = make_simulation_2(1, mu=1.3, informative_sd=1.0)
    keys = ["association", "hmv-500-ward", "mrshc", "shc", "shc-ssl", "cosa"]
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
