"""Plots of fitted estimators and of results.

Functions named after a plot, such as :func:`dendrogram` and :func:`heatmap`, draw the plot with
matplotlib and return axes or a figure, which notebooks show as a picture. :func:`write_picture`
writes axes or a figure to a file. The other functions compute the data of a plot without drawing,
so the data can be drawn with another plotting library. No function opens a window.
"""

from mrshc.optional_packages import require_packages

# The check comes first, so that its message is shown and not that of the failed import.
require_packages(["matplotlib", "pandas"], purpose="mrshc.plotting", extra="plot")

from mrshc.plotting.bar_plots import loadings, markers, silhouettes
from mrshc.plotting.branch_marks import BranchMark, branch_marks
from mrshc.plotting.colours import (
    CLUSTER_PALETTE,
    PALETTE,
    AnnotationBar,
    annotation_bars,
    cluster_colours,
    level_colours,
)
from mrshc.plotting.consensus_plot import consensus_matrix
from mrshc.plotting.dendrogram_layout import (
    DendrogramLines,
    clusters_of_merges,
    cut_height,
    dendrogram_lines,
    fitting_labels,
    free_places,
    shortened,
    shortened_names,
)
from mrshc.plotting.heatmap_data import feature_tree, standardised, usual_samples
from mrshc.plotting.heatmap_plot import heatmap
from mrshc.plotting.loading_order import largest_loadings
from mrshc.plotting.method_trees_plot import dendrograms
from mrshc.plotting.picture_files import write_picture
from mrshc.plotting.search_explanation import Curve, SearchStory, search_story
from mrshc.plotting.search_plot import search_curves
from mrshc.plotting.silhouette_layout import SilhouetteRows, silhouette_rows
from mrshc.plotting.split_verdicts import SplitMark, split_marks
from mrshc.plotting.strongest_markers import MarkerPanel, marker_panels
from mrshc.plotting.tree_plots import dendrogram, gap_tests

__all__ = [
    "CLUSTER_PALETTE",
    "PALETTE",
    "AnnotationBar",
    "BranchMark",
    "Curve",
    "DendrogramLines",
    "MarkerPanel",
    "SearchStory",
    "SilhouetteRows",
    "SplitMark",
    "annotation_bars",
    "branch_marks",
    "cluster_colours",
    "clusters_of_merges",
    "consensus_matrix",
    "cut_height",
    "dendrogram",
    "dendrogram_lines",
    "dendrograms",
    "feature_tree",
    "fitting_labels",
    "free_places",
    "gap_tests",
    "heatmap",
    "largest_loadings",
    "level_colours",
    "loadings",
    "marker_panels",
    "markers",
    "search_curves",
    "search_story",
    "shortened",
    "shortened_names",
    "silhouette_rows",
    "silhouettes",
    "split_marks",
    "standardised",
    "usual_samples",
    "write_picture",
]
