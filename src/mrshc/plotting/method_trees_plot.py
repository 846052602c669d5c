"""Dendrograms of several clustering methods in one figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from mrshc.core.trees import Tree, check_linkage
from mrshc.plotting import figure_parts
from mrshc.plotting.arguments import check_model, check_names, check_size
from mrshc.plotting.colours import (
    AnnotationBar,
    annotation_bars,
    cluster_colours,
    cluster_legend_entries,
    outlier_bars,
)
from mrshc.plotting.dendrogram_layout import (
    estimate_text_width,
    fitting_labels,
    shortened_names,
)
from mrshc.plotting.fitted_names import resolve_sample_names
from mrshc.plotting.picture_files import own_style
from mrshc.plotting.tree_plots import dendrogram, tree_legend_sections
from mrshc.shell.sample_alignment import sample_names
from mrshc.validation import check_integer

# Height of a panel without the names of the samples, in inches. Four panels fit on one page.
_HEIGHT = 2.6
# Smallest and largest width of the leaves of a tree, and width of one leaf, in inches. The width of
# a leaf is sufficient for a rotated name of six points.
_MIN_WIDTH, _MAX_WIDTH, _INCHES_PER_LEAF = 7.2, 13.0, 0.105
# Clusters of different trees are not the same, although they have the same numbers.
_CLUSTERS_TITLE = "clusters of each tree,\nfrom left to right"
# Attributes of a model that the drawing of its tree uses.
_TREE_ATTRIBUTES = (
    *("linkage_matrix_", "labels_", "sample_names_in_", "outlier_samples_", "linkage", "metric"),
)


@own_style()
def dendrograms(
    models: Mapping[str, Any],
    *,
    annotations: Any = None,
    titles: Sequence[str] | None = None,
    names: Iterable[Any] | None = None,
    cut: int | None = None,
    palette: Any = None,
    colours: Any = None,
    max_height: float | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw the trees of several methods one below the other.

    Branches inside a cluster have the colour of the cluster. The clusters of each tree are numbered
    from left to right, so clusters of different trees that have the same colour need not consist of
    the same samples.

    Parameters
    ----------
    models : mapping of str to fitted estimator
        Maps the name of each method to a fitted estimator. Clusterers without a tree, such as those
        of scikit-learn, are left out.
    annotations : mapping, DataFrame, Series or None, default=None
        Annotations of the samples, as in :func:`dendrogram`. One legend describes the bars of all
        trees.
    titles : sequence of str or None, default=None
        Title of each tree. If None, a title consists of the name of the method, the number of
        features and, if the estimator has the attribute `rank_`, the rank.
    names : iterable of length n_samples or None, default=None
        Names of the samples. If None, the names are the index of the fitted DataFrame. A Series is
        aligned by its index. The names are written if all of them fit below the leaves.
    cut : int or None, default=None
        Number of clusters into which all trees are cut. If None, the clusters are the attribute
        `labels_` of each model, and the branches of models without it are not coloured.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, as in :func:`cluster_colours`.
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
    trees = [_tree_at_cut(model, cut) for model in models.values()]
    shown = [resolve_sample_names(tree, samples) for tree in trees]
    # The annotations are the same for all trees, which have the same samples.
    known = sample_names(trees[0], names=shown[0])
    bars = annotation_bars(annotations, trees[0].n_leaves_, samples=known, colours=colours)
    sections = _legend_sections(trees, bars=bars, palette=palette)
    figure, panels = _create_panels(trees, shown, sections=sections, size=size)
    for panel, tree, title, listed in zip(panels, trees, titles, shown, strict=True):
        dendrogram(
            tree,
            annotations=annotations,
            names=samples,
            title=title,
            palette=palette,
            colours=colours,
            max_height=max_height,
            ax=panel,
        )
        _remove_unreadable_names(panel, listed)
        if panel.get_legend() is not None:
            panel.get_legend().remove()
    if sections:
        figure_parts.draw_legend(figure, sections, loc="outside right upper")
    return figure


def _tree_at_cut(model: Any, cut: int | None) -> SimpleNamespace:
    """Return the attributes of a model that `dendrogram` draws, with the clusters of a cut.

    If `cut` is None, the clusters are those of the model, if it has any. Raise ParameterError if
    the tree cannot be cut into this number of clusters.
    """
    shown = SimpleNamespace(
        **{name: getattr(model, name) for name in _TREE_ATTRIBUTES if hasattr(model, name)}
    )
    tree = Tree(linkage_matrix=check_linkage(model.linkage_matrix_))
    shown.n_leaves_ = tree.n_samples
    if cut is not None:
        advice = "A tree has no more clusters than samples."
        k = check_integer("cut", cut, low=1, high=tree.n_samples, advice=advice)
        shown.labels_ = tree.number_by_leaves(tree.cut(k))
    return shown


def _legend_sections(
    trees: Sequence[Any], *, bars: Sequence[AnnotationBar], palette: Any
) -> list[figure_parts.LegendSection]:
    """Return the sections of one legend for the annotations and clusters of all trees.

    The trees may have different numbers of clusters; the legend has the largest number.
    """
    of_outliers = [outlier_bars(tree, tree.n_leaves_) for tree in trees]
    outlying = next((found for found in of_outliers if found), ())
    sections = tree_legend_sections((*outlying, *bars), None)
    n_clusters = max(int(np.max(getattr(tree, "labels_", -1))) + 1 for tree in trees)
    # The palette is checked even if there are no clusters.
    entries = cluster_legend_entries(cluster_colours(n_clusters, palette=palette))
    if entries:
        sections.append(figure_parts.line_section(_CLUSTERS_TITLE, entries))
    return sections


def _create_panels(
    trees: Sequence[Any],
    names: Sequence[list[Any] | None],
    *,
    sections: Sequence[figure_parts.LegendSection],
    size: tuple[float, float] | None,
) -> tuple[Figure, Any]:
    """Return a new figure and its panels, with space for a legend and the names that fit."""
    width = float(np.clip(trees[0].n_leaves_ * _INCHES_PER_LEAF, _MIN_WIDTH, _MAX_WIDTH))
    written = [listed for listed in names if listed is not None and _fit_into(width, listed)]
    texts = [text for listed in written for text in shortened_names(listed)]
    # The names are rotated, so the height that they need is the width of the longest name.
    height = _HEIGHT + estimate_text_width(texts, size=figure_parts.SMALL_FONT)
    legend_width, legend_height = figure_parts.estimate_legend_size(sections)
    # The scale of heights takes one inch.
    figure = figure_parts.new_figure(
        width + 1.0 + legend_width, max(height * len(trees), legend_height), size=size
    )
    return figure, np.atleast_1d(figure.subplots(len(trees)))


def _fit_into(width: float, names: Sequence[Any]) -> bool:
    """Return whether all names can be written next to each other in a width in inches."""
    return fitting_labels(len(names), inches=width).step == 1


def _remove_unreadable_names(panel: Any, names: Sequence[Any] | None) -> None:
    """Remove the labels of the leaves if the samples have no names, or if not all names fit."""
    width = figure_parts.size_in_inches(panel)[0]
    if names is None or not _fit_into(width, names):
        panel.set_xticks([])
        panel.set_xlabel("")


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
