"""Dendrograms of several clustering methods in one figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_model, check_names, check_size
from mrshc.plotting.fitted_names import resolve_sample_names
from mrshc.plotting.tree_plots import dendrogram

# Width and height of a panel, in inches. Four panels fit on one page.
_WIDTH, _HEIGHT = 10.0, 2.6
# Additional height of a panel, in inches, if names are written below the leaves.
_NAMES_HEIGHT = 0.4


def dendrograms(
    models: Mapping[str, Any],
    *,
    annotations: Any = None,
    titles: Sequence[str] | None = None,
    names: Iterable[Any] | None = None,
    colours: Any = None,
    max_height: float | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw the trees of several methods one below the other.

    Branches are not coloured by cluster. The clusters differ between methods, so a common legend
    could not describe them.

    Parameters
    ----------
    models : mapping of str to fitted estimator
        Maps the name of each method to a fitted estimator. Clusterers without a tree, such as those
        of scikit-learn, are left out.
    annotations : mapping, DataFrame or None, default=None
        Annotations of the samples, as in :func:`dendrogram`. One legend describes the bars of all
        trees.
    titles : sequence of str or None, default=None
        Title of each tree. If None, a title consists of the name of the method, the number of
        features and, if the estimator has the attribute `rank_`, the rank.
    names : iterable of length n_samples or None, default=None
        Names of the samples. If None, the names are the index of the fitted DataFrame; without an
        index, no names are written. A Series is aligned by its index.
    colours : mapping or None, default=None
        Colours of annotations by their names, as in :func:`dendrogram`.
    max_height : float or None, default=None
        Common upper end of the scales of heights, as in :func:`dendrogram`. If None, each scale
        ends at the root of its tree.
    size : (float, float) or None, default=None
        Width and height of the figure in inches. If None, the height depends on the
        number of methods.

    Returns
    -------
    figure : matplotlib Figure
        Figure with one panel for each method; notebooks show the figure as a picture.

    Raises
    ------
    ValueError
        If `models` is not a mapping from names to fitted estimators, if none of them has a tree, or
        if another argument is not valid.
    TypeError
        If `annotations` is neither a mapping nor a DataFrame.

    See Also
    --------
    dendrogram : Draw one tree.

    Examples
    --------
    >>> from mrshc import HighVarianceHC
    >>> from mrshc.plotting import dendrograms
    >>> X = [[0, 0], [0, 1], [9, 0], [9, 1]]
    >>> models = {"one": HighVarianceHC(1).fit(X), "both": HighVarianceHC(2).fit(X)}
    >>> [ax.get_title(loc="left") for ax in dendrograms(models).axes]
    ['one: 1 feature', 'both: 2 features']
    """
    models = _models_with_tree(models)
    titles = _panel_titles(models, titles)
    check_names("names", names)
    size = check_size(size)
    # An iterator is converted to a list, since it would be exhausted after the first panel. A
    # Series is not converted, because its index is needed.
    samples = names if names is None or hasattr(names, "iloc") else list(names)
    has_names = [resolve_sample_names(model, samples) is not None for model in models.values()]
    height = _HEIGHT + _NAMES_HEIGHT * any(has_names)
    figure = figure_parts.new_figure(_WIDTH, height * len(models), size=size)
    panels = np.atleast_1d(figure.subplots(len(models)))
    for panel, model, title, is_named in zip(
        panels, models.values(), titles, has_names, strict=True
    ):
        dendrogram(
            model,
            annotations=annotations,
            names=samples,
            colour_branches=False,
            title=title,
            colours=colours,
            max_height=max_height,
            ax=panel,
        )
        if not is_named:
            panel.set_xticks([])
        # All panels have the same annotation bars, so only the legend of the first panel is kept.
        if panel is not panels[0] and panel.get_legend() is not None:
            panel.get_legend().remove()
    return figure


def _models_with_tree(models: Any) -> dict[str, Any]:
    """Return the models that have a tree.

    Raise ValueError if `models` is not a mapping from names to fitted estimators, or if none of
    them has a tree.
    """
    # A model with labels but without a tree is a fitted clusterer of another kind. A model with
    # neither is not fitted, which is a mistake.
    drawn = {
        name: model
        for name, model in (models.items() if isinstance(models, Mapping) else ())
        if hasattr(model, "linkage_matrix_") or not hasattr(model, "labels_")
    }
    if not drawn:
        got = f"a {type(models).__name__}"
        if isinstance(models, Mapping):
            got = "only models without a tree" if models else "an empty mapping"
        raise ValueError(
            f"models must map names to fitted estimators, at least one, got {got}. Pass models of "
            "a comparison, or {'name': model}."
        )
    for model in drawn.values():
        check_model(model, "linkage_matrix_")
    return drawn


def _panel_titles(models: Mapping[str, Any], titles: Any) -> Sequence[Any]:
    """Return the title of each panel: `titles`, or default titles if `titles` is None.

    Raise ValueError if the number of titles differs from the number of models.
    """
    if titles is None:
        return [_default_title(*item) for item in models.items()]
    is_list = isinstance(titles, Iterable) and not isinstance(titles, str)
    listed = list(titles) if is_list else []
    if len(listed) != len(models):
        got = len(listed) if is_list else repr(titles)
        raise ValueError(
            f"titles must hold one title for each of the {len(models)} models, got {got}. Pass a "
            "list of titles, or None."
        )
    return listed


def _default_title(name: str, model: Any) -> str:
    """Return a title with the name of a method, its number of features and, if any, its rank."""
    rank = f", rank {model.rank_}" if hasattr(model, "rank_") else ""
    n_features = model.n_features_selected_
    noun = "feature" if n_features == 1 else "features"
    return f"{name}: {n_features:,} {noun}{rank}"
