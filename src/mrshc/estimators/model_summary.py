"""Short description of a fitted estimator, as text and as HTML for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from inspect import signature
from typing import Any

import numpy as np

from mrshc.utils.text_cleaning import clean_text

# Largest number of clusters whose sizes are listed, and of features and samples that are named, so
# that a summary remains short.
_MAX_SIZES, _MAX_NAMES = 12, 8
# Width of the text, in characters, as in most terminals.
_TEXT_WIDTH = 80
# Style of the cells of the table in HTML. Notebooks align text in tables to the right by default.
_CELL_STYLE = "text-align: left; vertical-align: top"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """Short description of a fitted estimator; notebooks show it as a table.

    Attributes
    ----------
    title : str
        The estimator and the parameters that differ from their defaults.
    rows : tuple of (str, str)
        Label and text of each row.
    """

    title: str
    rows: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.rows) + 2
        lines = textwrap.wrap(self.title, _TEXT_WIDTH, subsequent_indent="  ")
        for label, text in self.rows:
            wrapped = textwrap.wrap(text, max(20, _TEXT_WIDTH - width - 2)) or [""]
            lines.append(f"  {label:<{width}}{wrapped[0]}")
            lines += [" " * (width + 2) + more for more in wrapped[1:]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the summary as an HTML table, for notebooks."""
        rows = "".join(
            f'<tr><th style="{_CELL_STYLE}">{escape(label)}</th>'
            f'<td style="{_CELL_STYLE}">{escape(text)}</td></tr>'
            for label, text in self.rows
        )
        return f"<table><caption>{escape(self.title)}</caption><tbody>{rows}</tbody></table>"


def summarise(model: Any) -> ModelSummary:
    """Return a summary of a fitted estimator."""
    return ModelSummary(title=_format_estimator(model), rows=tuple(_iterate_rows(model)))


def _format_estimator(model: Any) -> str:
    """Return the estimator as in Python, with the parameters that differ from their defaults."""
    defaults = {
        name: parameter.default for name, parameter in signature(type(model)).parameters.items()
    }
    changed = [
        f"{name}={_format_value(value)}"
        for name, value in model.get_params(deep=False).items()
        if not _are_equal(value, defaults[name])
    ]
    return f"{type(model).__name__}({', '.join(changed)})"


def _are_equal(value: Any, default: Any) -> bool:
    """Return whether two values are equal; arrays are never equal to a default."""
    return value is default or (
        type(value) is type(default) and np.ndim(value) == 0 and value == default
    )


def _format_value(value: Any) -> str:
    """Return a value as one line of text; long values are replaced by the name of their type."""
    text = repr(value)
    is_short = len(text) <= _TEXT_WIDTH // 2 and "\n" not in text
    return text if is_short else f"<{type(value).__name__}>"


def _iterate_rows(model: Any) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each row of a summary."""
    labels = getattr(model, "labels_", None)
    # Estimators without a tree always have clusters.
    n_samples = model.n_leaves_ if hasattr(model, "n_leaves_") else len(model.labels_)
    yield "data", f"{n_samples:,} samples, {model.n_features_in_:,} features"
    yield "clusters", _describe_clusters(labels)
    yield "selected features", _describe_features(model)
    if largest := _largest_features(model):
        yield largest
    if hasattr(model, "rank_"):
        yield "rank", f"{model.rank_}"
    candidates = len(getattr(model, "search_results_", {}).get("chosen", ()))
    if candidates > 1:
        yield "candidates compared", f"{candidates:,}"
    if hasattr(model, "supported_"):
        yield "held-out features", _describe_support(model)
    if len(outliers := getattr(model, "outlier_samples_", ())):
        yield "outlying samples", _list_names(outliers, getattr(model, "sample_names_in_", None))
    if getattr(model, "converged_", True) is False:
        yield "convergence", "not reached; the result may differ from the optimum"


def _describe_clusters(labels: Any) -> str:
    """Return the number of clusters and their sizes."""
    if labels is None:
        return "none: the tree was not cut; set n_clusters, or use cut(k)"
    sizes = np.bincount(labels)
    shown = ", ".join(f"{size:,}" for size in sizes[:_MAX_SIZES])
    more = f" and {sizes.size - _MAX_SIZES:,} more" if sizes.size > _MAX_SIZES else ""
    return f"{sizes.size:,} (sizes {shown}{more})" if sizes.size > 1 else "1"


def _describe_features(model: Any) -> str:
    """Return the number of selected features and their share of all features."""
    share = model.n_features_selected_ / model.n_features_in_
    return f"{model.n_features_selected_:,} of {model.n_features_in_:,} ({share:.2%})"


def _largest_features(model: Any) -> tuple[str, str] | None:
    """Return a row with the features of the largest loadings or weights; None if there are none."""
    values = getattr(model, "components_", getattr(model, "feature_weights_", None))
    if values is None:
        return None
    # COSA has one weight for each sample and feature, of which the mean over samples is shown.
    is_loading = hasattr(model, "components_")
    table = np.abs(np.atleast_2d(values))
    sizes = table.max(axis=0) if is_loading else table.mean(axis=0)
    order = np.argsort(-sizes, kind="stable")[: int(np.count_nonzero(sizes))]
    noun = "loadings" if is_loading else "weights"
    # A refinement replaces the features of the components, so the loadings are those before it.
    note = " (before the refinement)" if is_loading and getattr(model, "supported_", None) else ""
    names = _list_names(order, getattr(model, "feature_names_in_", None))
    return f"largest {noun}", names + note


def _list_names(positions: Any, names: Any) -> str:
    """Return the first few names at the given positions, and the number of the others."""
    shown = [
        clean_text(str(i if names is None else names[i])) for i in np.asarray(positions).tolist()
    ]
    n_others = len(shown) - _MAX_NAMES
    return ", ".join(shown[:_MAX_NAMES]) + (f" and {n_others:,} more" if n_others > 0 else "")


def _describe_support(model: Any) -> str:
    """Return whether features that were held out support the clusters."""
    if model.supported_ is None:
        return "too few features or samples to decide whether they support the clusters"
    if not model.supported_:
        return "do not support the clusters"
    n_associated = len(model.associated_features_)
    return f"support the clusters; {n_associated:,} features are associated with them"
