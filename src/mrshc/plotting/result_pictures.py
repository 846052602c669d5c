"""Registry of the plots that are written to the folder of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mrshc.methods import METHODS, describe_method
from mrshc.plotting.bar_plots import loadings, markers, silhouettes
from mrshc.plotting.branch_marks import result_support, result_tests, significance_note
from mrshc.plotting.consensus_plot import consensus_matrix
from mrshc.plotting.heatmap_plot import heatmap
from mrshc.plotting.search_plot import search_curves
from mrshc.plotting.tree_plots import dendrogram, gap_tests

# Largest number of rows (features) of a heat map. At a height of 8.5 inches and 150 dots per inch,
# each of 1000 rows is little more than one pixel high. More rows could not be distinguished.
_MAX_HEATMAP_ROWS = 1000
# Each feature is tested with a tree that was built without it. The test is not free of bias all the
# same, because the selected features were chosen together (docs/guide/markers.md).
MARKERS_CAVEAT = (
    "The clusters and the selected features were found in the same data: the q-values of markers "
    "are scores that rank features, and are not evidence for the clusters."
)
_MARKERS_TITLE = (
    "Markers: features that differ between a cluster and all other samples (q-value at most 0.05)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A plot that is written to the folder of each result to which it applies.

    Parameters
    ----------
    name : str
        Name of the file, without its suffix.
    heading : str
        Short name of the plot in lists of plots.
    explanation : str
        One sentence that describes the content of the plot.
    draw : callable
        Function that takes a :class:`mrshc.io.result.Result`, draws the plot, and returns a
        matplotlib Axes or Figure. If `has_size` is True, the function also takes the keyword
        `size`.
    applies : callable, default=always True
        Function that takes a result and returns whether the plot can be drawn for this result.
    formats : tuple of str, default=("png",)
        File formats, given as suffixes without the dot, if the user chooses none. One file is
        written for each format.
    has_size : bool, default=False
        Whether the user may choose the width and the height of the plot.
    """

    name: str
    heading: str
    explanation: str
    draw: Callable[..., Any]
    applies: Callable[[Any], bool] = lambda _: True
    formats: tuple[str, ...] = ("png",)
    has_size: bool = False

    def draw_in_size(self, result: Any, size: tuple[float, float] | None) -> Any:
        """Draw the plot with a width and a height in inches, if it has a size that can be chosen.

        None stands for the size that suits the content.
        """
        return self.draw(result, size=size) if self.has_size else self.draw(result)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files, one for each format."""
        return self.files_in()

    def files_in(self, formats: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the names of the files in the given formats; None stands for `formats`."""
        return tuple(f"{self.name}.{ending}" for ending in formats or self.formats)


# Maps names to registered plots, in the order in which the plots are drawn and listed.
PICTURES: dict[str, Picture] = {}


def register(picture: Picture) -> Picture:
    """Add a plot to the registry, and return the plot."""
    if picture.name in PICTURES:
        raise ValueError(
            f"A picture named {picture.name!r} is already registered. Choose another name."
        )
    PICTURES[picture.name] = picture
    return picture


def result_title(result: Any) -> str:
    """Return a title with the method and the numbers of clusters and features of a result."""
    name = describe_method(result.about["method"], result.about["parameters"]).label
    clusters = "1 cluster" if result.n_clusters_ == 1 else f"{result.n_clusters_} clusters"
    return (
        f"{name}: {clusters} on {result.n_features_selected_:,} of "
        f"{len(result.features):,} features"
    )


def clusters_note(result: Any) -> str:
    """Return a note if the clusters of a result are not supported or not significant.

    The note is empty if they are, if they were not tested, or if there is only one cluster.
    """
    note = significance_note(
        result.linkage_matrix_, result.labels_, significance=result_tests(result)
    )
    return "; ".join(filter(None, [_support_note(result), note]))


def _support_note(result: Any) -> str:
    is_unsupported = result.about["supported"] is False and result.n_clusters_ > 1
    return "clusters not supported by held-out features" if is_unsupported else ""


def _with_note(title: str, note: str) -> str:
    return f"{title}; {note}" if note else title


def features_for_heatmap(result: Any) -> pd.DataFrame:
    """Return the values of the selected features that a heat map shows."""
    selected: pd.DataFrame = result.selected
    if selected.shape[1] <= _MAX_HEATMAP_ROWS:
        return selected
    # The table of features lists the selected features first, in decreasing order of effect size.
    best = set(result.features.index[:_MAX_HEATMAP_ROWS])
    return selected[[name for name in selected.columns if name in best]]


def _loadings_title(result: Any) -> str | None:
    """Return a title for the plot of loadings, or None if they are those of all features chosen."""
    return "Sparse components of the start set" if result.about["supported"] else None


# Silhouette widths and markers compare clusters, so they are defined only if there are several.
def _has_clusters(result: Any) -> bool:
    return bool(result.n_clusters_ > 1)


def _draw_dendrogram(result: Any, *, size: tuple[float, float] | None = None) -> Any:
    return dendrogram(
        result,
        annotations=result.annotations_to_plot,
        names=list(result.samples.index),
        # The function adds the note on significance.
        title=_with_note(result_title(result), _support_note(result)),
        significance=result_tests(result),
        stability=result_support(result),
        size=size,
    )


def _draw_heatmap(result: Any, *, size: tuple[float, float] | None = None) -> Any:
    values = features_for_heatmap(result)
    n_shown = values.shape[1]
    rows = f", {n_shown:,} shown" if n_shown < result.n_features_selected_ else ""
    return heatmap(
        result,
        values,
        annotations=result.annotations_to_plot,
        names=list(result.samples.index),
        title=_with_note(result_title(result) + rows, clusters_note(result)),
        size=size,
    )


def _draw_silhouettes(result: Any, *, size: tuple[float, float] | None = None) -> Any:
    widths = result.samples["silhouette"].to_numpy()
    method = METHODS[result.about["method"]]
    heading = f"Silhouette widths: how compact the clusters are in {method.distance_features}"
    title = f"{_with_note(heading, clusters_note(result))}\n{method.silhouette_caveat}"
    names = list(result.samples.index)
    return silhouettes(widths, result.labels_, names=names, title=title, size=size)


def _draw_markers(result: Any) -> Any:
    title = f"{_with_note(_MARKERS_TITLE, clusters_note(result))}\n{MARKERS_CAVEAT}"
    return markers(result, title=title)


def _draw_consensus(result: Any, *, size: tuple[float, float] | None = None) -> Any:
    n_resamples = result.about["stability"]["n_resamples"]
    title = f"Consensus of {n_resamples} random subsamples"
    return consensus_matrix(
        result,
        result.consensus,
        names=list(result.samples.index),
        title=_with_note(title, clusters_note(result)),
        size=size,
    )


def _draw_search(result: Any, *, size: tuple[float, float] | None = None) -> Any:
    return search_curves(result, size=size)


def _draw_loadings(result: Any) -> Any:
    return loadings(result, title=_loadings_title(result))


register(
    Picture(
        name="dendrogram",
        heading="Tree",
        explanation="The tree of the samples, with clusters in colours and annotations as bars.",
        draw=_draw_dendrogram,
        formats=("svg", "png"),
        has_size=True,
    )
)
register(
    Picture(
        name="heatmap",
        heading="Heat map",
        explanation="The values of the selected features, with trees of samples and features.",
        draw=_draw_heatmap,
        has_size=True,
    )
)
register(
    Picture(
        name="search",
        heading="Search",
        explanation="The candidates of the search with their scores, and the chosen one.",
        draw=_draw_search,
        has_size=True,
    )
)
register(
    Picture(
        name="silhouettes",
        heading="Silhouettes",
        explanation="The silhouette width of each sample in the selected features.",
        draw=_draw_silhouettes,
        applies=_has_clusters,
        has_size=True,
    )
)
register(
    Picture(
        name="markers",
        heading="Markers",
        explanation="The features that differ most between each cluster and all other samples.",
        draw=_draw_markers,
        applies=_has_clusters,
    )
)
register(
    Picture(
        name="consensus",
        heading="Consensus",
        explanation="How often each pair of samples is in the same cluster of random subsamples.",
        draw=_draw_consensus,
        applies=lambda result: result.consensus is not None,
        has_size=True,
    )
)
register(
    Picture(
        name="splits",
        heading="Split tests",
        explanation="The gap test of each tested node of the tree, and which splits were made.",
        draw=gap_tests,
        applies=lambda result: bool(result.about["splits"]),
        has_size=True,
    )
)
register(
    Picture(
        name="loadings",
        heading="Loadings",
        explanation="The features with the largest loadings or weights.",
        draw=_draw_loadings,
        applies=lambda result: bool(result.loadings.shape[1]),
    )
)
