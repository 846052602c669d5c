"""Results as Markdown tables, beside the figures of others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mrshc.study.config import Study, StudyError

# Column of the results: heading, digits.
QUANTITIES = {
    "cer": ("CER", 3),
    "recall": ("recall", 3),
    "precision": ("precision", 3),
    "n_features": ("q", 1),
    "n_clusters": ("clusters", 2),
    "claimed": ("structure claimed", 2),
    "cer_others": ("CER of the others", 3),
    "found_outliers": ("outliers found", 2),
    "false_alarms": ("false alarms", 4),
}


def check_columns(study: Study) -> None:
    """Refuse a config that wants to show what is not measured."""
    columns = study.option("columns")
    if not isinstance(columns, list) or not set(columns) <= set(QUANTITIES):
        known = ", ".join(QUANTITIES)
        raise StudyError(
            f"{study.name}.toml: columns must be a list out of {known}, got {columns}."
        )


def failures(results: pd.DataFrame) -> str:
    """Return a line that counts what failed; nothing where nothing did."""
    failed = results["error"].dropna().tolist() if "error" in results else []
    return f"\n{len(failed)} failed, the first with: {failed[0]}\n" if failed else ""


def design_tables(results: pd.DataFrame, references: pd.DataFrame, *, columns: list[str]) -> str:
    """Return one table for each design: every method, ours after what others found."""
    results, references = _complete(results), _complete(references)
    headings = ["method", "source", *(QUANTITIES[column][0] for column in columns)]
    parts = []
    for design, of_design in results.groupby("design", sort=False):
        rows = []
        for method, of_method in of_design.groupby("method", sort=False):
            known = references.query("design == @design and method == @method")
            for reference in known.to_dict("records"):
                cells = [_cell(reference[q], reference[f"{q}_se"], q) for q in columns]
                draws = reference.get("draws", np.nan)
                counted = "" if np.isnan(draws) else f", {draws:.0f} draws"
                rows.append([str(method), reference["source"] + counted, *cells])
            cells = [_cell(*mean_and_error(of_method[q]), q) for q in columns]
            rows.append([f"**{method}**", "**mrshc**", *cells])
            failed = of_method["error"].notna().sum() if "error" in of_method else 0
            if failed:
                rows.append(["", f"{failed} draws failed", *[""] * len(columns)])
        title = f"**{design}**, {of_design['draw'].nunique()} draws\n\n"
        parts.append(title + markdown_table(headings, rows))
    return "\n".join(parts)


def brief_table(results: pd.DataFrame, references: pd.DataFrame, *, columns: list[str]) -> str:
    """Return the first design alone, a row for each method, ours beside the paper's."""
    results, references = _complete(results), _complete(references)
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
            row.append(_cell(*mean_and_error(of_method[q]), q))
            row.append(_cell(paper[q].get(method, np.nan), np.nan, q))
        rows.append(row)
    return markdown_table(headings, rows)


def _complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with every quantity and its error; NaN where it says nothing of one."""
    wanted = [name for q in QUANTITIES for name in (q, f"{q}_se")]
    table = table.reindex(columns=table.columns.union(wanted, sort=False))
    # Only methods that choose their number of clusters can claim that there is a structure.
    found = table["n_clusters"]
    return table.assign(claimed=(found > 1).where(found.notna()))


def markdown_table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Return the mean over draws and its Monte Carlo error; NaN where there is none."""
    observed = values.dropna()
    if observed.empty:
        return np.nan, np.nan
    return float(observed.mean()), float(observed.sem()) if len(observed) > 1 else np.nan


def _cell(mean: float, error: float, quantity: str) -> str:
    digits = QUANTITIES[quantity][1]
    if np.isnan(mean):
        return ""
    shown = f"{mean:.{digits}f}"
    # A quantity that is the same in every draw has no error but that of rounding.
    return shown if np.isnan(error) or error < 1e-12 else f"{shown} ({error:.{digits}f})"
