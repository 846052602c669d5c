"""Markdown tables of results, with values from the paper and from R for comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Columns of the results, each with its heading and its number of decimals. The Monte Carlo error of
# 100 draws justifies about this many decimals.
QUANTITIES = {
    "cer": ("CER", 3),
    "ari": ("ARI", 3),
    "cer_found": ("CER of its clusters", 3),
    "recall": ("recall", 3),
    "precision": ("precision", 3),
    "n_features": ("q", 1),
    "n_clusters": ("clusters", 2),
    "claimed": ("structure claimed", 2),
    "cer_others": ("CER of the others", 3),
    "found_outliers": ("outliers found", 2),
    "false_alarms": ("false alarms", 4),
    "first_split": ("first split significant", 3),
    "true_splits": ("true splits", 2),
    "all_splits": ("all true splits", 2),
    "false_split": ("a group divided", 3),
    "n_markers": ("markers", 1),
    "n_false_markers": ("false markers", 1),
    "any_false_marker": ("draws with a false marker", 2),
    "jaccard_min": ("smallest Jaccard index", 2),
    "jaccard_mean": ("mean Jaccard index", 2),
    "frequency_informative": ("frequency of informative features", 2),
    "frequency_noise": ("frequency of noise features", 3),
}


def failure_note(results: pd.DataFrame) -> str:
    """Return a line with the number of failed rows and the first error, or no text."""
    failed = results["error"].dropna().tolist() if "error" in results else []
    return f"\n{len(failed)} failed, the first with: {failed[0]}\n" if failed else ""


def design_tables(results: pd.DataFrame, references: pd.DataFrame, *, columns: list[str]) -> str:
    """Return a Markdown table for each design, with values from the paper and from R."""
    results, references = _add_missing_columns(results), _add_missing_columns(references)
    headings = ["method", "source", *(QUANTITIES[column][0] for column in columns)]
    parts = []
    for design, of_design in results.groupby("design", sort=False):
        rows = []
        for method, of_method in of_design.groupby("method", sort=False):
            known = references.query("design == @design and method == @method")
            for reference in known.to_dict("records"):
                cells = [_format_cell(reference[q], reference[f"{q}_se"], q) for q in columns]
                draws = reference.get("draws", np.nan)
                n_draws = "" if np.isnan(draws) else f", {draws:.0f} draws"
                rows.append([str(method), reference["source"] + n_draws, *cells])
            cells = [_format_cell(*mean_and_error(of_method[q]), q) for q in columns]
            rows.append([f"**{method}**", "**mrshc**", *cells])
            # Failed draws are not included in the means, so their number is shown.
            failed = of_method["error"].notna().sum() if "error" in of_method else 0
            if failed:
                rows.append(["", f"{failed} draws failed", *[""] * len(columns)])
        title = f"**{design}**, {of_design['draw'].nunique()} draws\n\n"
        parts.append(title + markdown_table(headings, rows))
    return "\n".join(parts)


def brief_table(results: pd.DataFrame, references: pd.DataFrame, *, columns: list[str]) -> str:
    """Return a Markdown table of the first design: each method, with values of the paper."""
    results, references = _add_missing_columns(results), _add_missing_columns(references)
    results = results[results["design"] == results["design"].iloc[0]]
    shown = references["design"] == results["design"].iloc[0]
    paper = references[shown & (references["source"] == "paper")].set_index("method")
    headings = ["method"]
    for column in columns:
        headings += [QUANTITIES[column][0], "paper"]
    rows = []
    for method, of_method in results.groupby("method", sort=False):
        row = [str(method)]
        for q in columns:
            row.append(_format_cell(*mean_and_error(of_method[q]), q))
            # The paper reports no standard errors.
            row.append(_format_cell(paper[q].get(method, np.nan), np.nan, q))
        rows.append(row)
    return markdown_table(headings, rows)


def _add_missing_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns of all quantities and of their standard errors."""
    wanted = [name for q in QUANTITIES for name in (q, f"{q}_se")]
    table = table.reindex(columns=table.columns.union(wanted, sort=False))
    # Whether a method that chooses the number of clusters found more than one.
    n_clusters = table["n_clusters"]
    return table.assign(claimed=(n_clusters > 1).where(n_clusters.notna()))


def markdown_table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; `headings` and `rows` contain the text of its cells."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Return the mean over draws and its standard error; each is NaN if it is not defined."""
    observed = values.dropna()
    if observed.empty:
        return np.nan, np.nan
    # The standard error is not defined for a single draw.
    return float(observed.mean()), float(observed.sem()) if len(observed) > 1 else np.nan


def _format_cell(mean: float, error: float, quantity: str) -> str:
    """Return a mean, with its standard error in parentheses unless that is zero; "" for NaN."""
    digits = QUANTITIES[quantity][1]
    if np.isnan(mean):
        return ""
    # A mean in the middle between two shown values may differ in its last bit with the version of
    # pandas.
    shown = f"{round(mean, 12):.{digits}f}"
    # If a quantity is the same in every draw, rounding may make its computed error slightly larger
    # than zero.
    return shown if np.isnan(error) or error < 1e-12 else f"{shown} ({error:.{digits}f})"
