"""Short description of a fitted estimator, as text and as HTML for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from inspect import signature
from typing import Any

import numpy as np

_MAX_SIZES, _MAX_NAMES, _WIDTH = 12, 8, 80


@dataclass(frozen=True)
class ModelSummary:
    """Title and rows (label, text) of a description; notebooks show it as a table."""

    title: str
    rows: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.rows) + 2
        lines = textwrap.wrap(self.title, _WIDTH, subsequent_indent="  ")
        for label, text in self.rows:
            first, *others = textwrap.wrap(text, _WIDTH - width - 2) or [""]
            lines.append(f"  {label:<{width}}{first}")
            lines += [" " * (width + 2) + line for line in others]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        style = 'style="text-align: left; vertical-align: top"'
        rows = "".join(
            f"<tr><th {style}>{escape(label)}</th><td {style}>{escape(text)}</td></tr>"
            for label, text in self.rows
        )
        return f"<table><caption>{escape(self.title)}</caption><tbody>{rows}</tbody></table>"


def summarise_model(model: Any) -> ModelSummary:
    """Return the description of a fitted estimator."""
    defaults = {name: p.default for name, p in signature(type(model)).parameters.items()}
    changed = []
    for name, value in model.get_params(deep=False).items():
        text = repr(value)
        if text != repr(defaults[name]):
            is_short = len(text) <= _WIDTH // 2 and "\n" not in text
            changed.append(f"{name}={text if is_short else f'<{type(value).__name__}>'}")
    return ModelSummary(f"{type(model).__name__}({', '.join(changed)})", tuple(_rows(model)))


def _rows(model: Any) -> Iterator[tuple[str, str]]:
    labels, p = getattr(model, "labels_", None), model.n_features_in_
    n = model.n_leaves_ if hasattr(model, "n_leaves_") else len(model.labels_)
    yield "data", f"{n:,} samples, {p:,} features"
    if labels is None:
        yield "clusters", "none: the tree was not cut; set n_clusters, or use cut(k)"
    else:
        sizes = np.bincount(labels)
        more = f" and {sizes.size - _MAX_SIZES:,} more" if sizes.size > _MAX_SIZES else ""
        listed = f" (sizes {', '.join(f'{size:,}' for size in sizes[:_MAX_SIZES])}{more})"
        yield "clusters", f"{sizes.size:,}{listed if sizes.size > 1 else ''}"
    q = model.n_features_selected_
    yield "selected features", f"{q:,} of {p:,} ({q / p:.2%})"
    yield from _largest_features(model)
    if hasattr(model, "rank_"):
        yield "rank", f"{model.rank_}"
    n_candidates = len(getattr(model, "search_results_", {}).get("chosen", ()))
    if n_candidates > 1:
        yield "candidates compared", f"{n_candidates:,}"
    if hasattr(model, "supported_"):
        n_associated = len(model.associated_features_)
        yield (
            "held-out features",
            {
                None: "too few features or samples to decide whether they support the clusters",
                False: "do not support the clusters",
                True: f"support the clusters; {n_associated:,} are associated with them",
            }[model.supported_],
        )
    if len(outliers := getattr(model, "outlier_samples_", ())):
        yield "outlying samples", _names(outliers, getattr(model, "sample_names_in_", None))
    if getattr(model, "converged_", True) is False:
        yield "convergence", "not reached; the result may differ from the optimum"


def _largest_features(model: Any) -> Iterator[tuple[str, str]]:
    """Yield the features of the largest loadings or weights, if there are any."""
    noun = "loadings" if hasattr(model, "components_") else "weights"
    values = getattr(model, "components_", getattr(model, "feature_weights_", None))
    if values is None:
        return
    table = np.abs(np.atleast_2d(values))
    sizes = table.max(axis=0) if noun == "loadings" else table.mean(axis=0)
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    yield f"largest {noun}", _names(order, getattr(model, "_feature_names", None))


def _names(positions: Any, names: Any) -> str:
    shown = [str(i if names is None else names[i]) for i in np.asarray(positions).tolist()]
    # Control characters would change the terminal.
    shown = ["".join(c if c.isprintable() else "?" for c in name) for name in shown]
    more = len(shown) - _MAX_NAMES
    return ", ".join(shown[:_MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")
