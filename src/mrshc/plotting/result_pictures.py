"""The pictures of a result folder: one registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mrshc.methods import METHODS
from mrshc.plotting.bar_plots import loadings, markers, silhouettes
from mrshc.plotting.heatmap_plot import heatmap
from mrshc.plotting.search_plot import search_curves
from mrshc.plotting.tree_plots import dendrogram, gap_tests

# Features in a heat map that a reader can still take in.
_MOST_ROWS = 1000
_MARKERS_TITLE = "What marks each cluster: its samples against all others (q-values up to 0.05)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that is written for each result to which it applies.

    Parameters
    ----------
    name : str
        Name of the file, without its ending.
    heading : str
        A few words for lists of pictures.
    explanation : str
        One sentence on what the picture shows.
    draw : callable
        Takes a :class:`mrshc.io.result.Result`, returns matplotlib's Axes or Figure.
    applies : callable
        Takes a result and returns whether the picture can be drawn of it; by default it can.
    formats : tuple of str
        Endings of the files.
    """

    name: str
    heading: str
    explanation: str
    draw: Callable[[Any], Any]
    applies: Callable[[Any], bool] = lambda _: True
    formats: tuple[str, ...] = ("png",)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its files."""
        return tuple(f"{self.name}.{ending}" for ending in self.formats)


# By name, in the order in which they are drawn.
PICTURES: dict[str, Picture] = {}


def register(picture: Picture) -> Picture:
    """Register a picture under its name.

    Parameters
    ----------
    picture : Picture
        Its name differs from that of every registered picture.

    Returns
    -------
    picture : Picture
        The same picture.

    Examples
    --------
    >>> from mrshc.plotting.result_pictures import PICTURES
    >>> PICTURES["dendrogram"].files
    ('dendrogram.svg', 'dendrogram.png')
    """
    if picture.name in PICTURES:
        raise ValueError(
            f"There is a picture {picture.name!r} already. Give the new picture another name."
        )
    PICTURES[picture.name] = picture
    return picture


def result_title(result: Any) -> str:
    """Return a title for pictures of a result."""
    name = METHODS[result.about["method"]].label
    clusters = "1 cluster" if result.n_clusters_ == 1 else f"{result.n_clusters_} clusters"
    return (
        f"{name}: {clusters} on {result.n_features_selected_:,} of "
        f"{len(result.features):,} features"
    )


def features_shown(result: Any) -> pd.DataFrame:
    """Return the values of the selected features, at most so many that a heat map can show them."""
    selected: pd.DataFrame = result.selected
    if selected.shape[1] <= _MOST_ROWS:
        return selected
    best = set(result.features.index[:_MOST_ROWS])  # selected ones come first, by their effect
    return selected[[name for name in selected.columns if name in best]]


def _search_title(result: Any) -> str | None:
    """Return a title for what refining has not changed; None if it changed nothing."""
    return "The search, before the features were refined" if result.about["supported"] else None


def _has_clusters(result: Any) -> bool:
    return bool(result.n_clusters_ > 1)


def _draw_dendrogram(result: Any) -> Any:
    return dendrogram(
        result,
        annotations=result.shown_annotations,
        names=list(result.samples.index),
        title=result_title(result),
    )


def _draw_heatmap(result: Any) -> Any:
    values = features_shown(result)
    n_shown = values.shape[1]
    rows = f", {n_shown:,} shown" if n_shown < result.n_features_selected_ else ""
    return heatmap(
        result,
        values,
        annotations=result.shown_annotations,
        names=list(result.samples.index),
        title=result_title(result) + rows,
    )


def _draw_silhouettes(result: Any) -> Any:
    widths = result.samples["silhouette"].to_numpy()
    return silhouettes(widths, result.labels_, names=list(result.samples.index))


def _draw_loadings(result: Any) -> Any:
    return loadings(
        result.loadings.to_numpy().T,
        list(result.features.index),
        title=_search_title(result),
    )


register(
    Picture(
        name="dendrogram",
        heading="Tree",
        explanation="The tree of the samples, with clusters in colours and annotations as bars.",
        draw=_draw_dendrogram,
        formats=("svg", "png"),
    )
)
register(
    Picture(
        name="heatmap",
        heading="Heat map",
        explanation="The values of the selected features, ordered by the trees of both sides.",
        draw=_draw_heatmap,
    )
)
register(
    Picture(
        name="search",
        heading="Search",
        explanation="The candidates of the search, and why one of them was chosen.",
        draw=lambda result: search_curves(result, title=_search_title(result)),
    )
)
register(
    Picture(
        name="silhouettes",
        heading="Silhouettes",
        explanation="How well each sample fits its cluster.",
        draw=_draw_silhouettes,
        applies=_has_clusters,
    )
)
register(
    Picture(
        name="markers",
        heading="Markers",
        explanation="The features that differ most between each cluster and all other samples.",
        draw=lambda result: markers(result.markers, result.n_clusters_, title=_MARKERS_TITLE),
        applies=_has_clusters,
    )
)
register(
    Picture(
        name="splits",
        heading="Splits",
        explanation="The gap test of each node of the tree, and which splits were made.",
        draw=lambda result: gap_tests(result),
        applies=lambda result: bool(result.about["splits"]),
    )
)
register(
    Picture(
        name="loadings",
        heading="Loadings",
        explanation="The largest loadings of each sparse component, or the largest weights.",
        draw=_draw_loadings,
        applies=lambda result: bool(result.loadings.shape[1]),
    )
)
