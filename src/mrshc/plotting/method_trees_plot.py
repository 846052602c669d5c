"""Trees of several methods in one picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mrshc.plotting.arguments import check_model, check_names
from mrshc.plotting.tree_plots import dendrogram

_WIDTH, _HEIGHT = 10.0, 2.6  # of a panel, in inches
_NAMES_HEIGHT = 0.4


def dendrograms(
    models: Mapping[str, Any],
    *,
    annotations: Any = None,
    titles: Sequence[str] | None = None,
    names: Iterable[Any] | None = None,
) -> Figure:
    """Draw the trees of several methods below each other.

    Parameters
    ----------
    models : mapping
        Fitted estimators by name.
    annotations : mapping, DataFrame or None
        As in :func:`dendrogram`; one legend serves all trees.
    titles : sequence of str or None
        Headings of the trees; by default the name, the number of features and the rank.
    names : iterable or None
        Names of the samples; they are left out by default.

    Returns
    -------
    Figure
    """
    _check_models(models)
    titles = _panel_titles(models, titles)
    check_names("names", names)
    samples = names if names is None or hasattr(names, "iloc") else list(names)
    height = _HEIGHT + (0.0 if samples is None else _NAMES_HEIGHT)
    figure = Figure(figsize=(_WIDTH, height * len(models)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(models)))
    for panel, model, title in zip(panels, models.values(), titles, strict=True):
        # Clusters differ between the panels, so that no legend could serve them all.
        dendrogram(
            model,
            annotations=annotations,
            names=samples,
            colour_branches=False,
            title=title,
            ax=panel,
        )
        if samples is None:
            panel.set_xticks([])
        if panel is not panels[0] and panel.get_legend() is not None:
            panel.get_legend().remove()
    return figure


def _check_models(models: Any) -> None:
    if not isinstance(models, Mapping) or not models:
        raise ValueError(
            "models must map names to fitted estimators, at least one, got "
            f"{'none' if isinstance(models, Mapping) else f'a {type(models).__name__}'}. Give "
            "models of a comparison, or {'name': model}."
        )
    for model in models.values():
        check_model(model, "linkage_matrix_")


def _panel_titles(models: Mapping[str, Any], titles: Any) -> Sequence[Any]:
    if titles is None:
        return [_default_title(*item) for item in models.items()]
    is_list = isinstance(titles, Iterable) and not isinstance(titles, str)
    listed = list(titles) if is_list else []
    if len(listed) != len(models):
        got = len(listed) if is_list else repr(titles)
        raise ValueError(
            f"titles must hold one heading for each of the {len(models)} models, got {got}. Give a "
            "list of them, or None."
        )
    return listed


def _default_title(name: str, model: Any) -> str:
    rank = f", rank {model.rank_}" if hasattr(model, "rank_") else ""
    return f"{name}: {model.n_features_selected_:,} features{rank}"
