from types import SimpleNamespace

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mrshc import HighVarianceHC, stability
from mrshc.plotting import CLUSTER_PALETTE, consensus_matrix, dendrogram_lines

X = np.random.default_rng(0).normal(size=(24, 3)) + 9.0 * (np.arange(24) % 2)[:, None]
MODEL = HighVarianceHC(3, linkage="ward", n_clusters=2).fit(X)
STABILITY = stability(MODEL, X, n_resamples=5, random_state=0)
ORDER = dendrogram_lines(MODEL.linkage_matrix_).order


def test_samples_are_in_the_order_of_the_leaves():
    names = [f"sample {i}" for i in range(24)]
    ax = consensus_matrix(MODEL, STABILITY, names=names, title="Consensus")
    shown = ax.images[0].get_array().filled(np.nan)
    np.testing.assert_array_equal(shown, STABILITY.consensus[np.ix_(ORDER, ORDER)])
    expected = [names[i] for i in ORDER]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == expected
    assert [tick.get_text() for tick in ax.get_yticklabels()] == expected
    assert ax.get_title(loc="left") == "Consensus"


def test_clusters_have_borders_and_strips_in_their_colours():
    ax = consensus_matrix(MODEL, STABILITY)
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    borders = [(box.get_xy(), box.get_width()) for box in boxes if not box.get_fill()]
    assert borders == [((-0.5, -0.5), 12), ((11.5, 11.5), 12)]
    strips = [to_hex(box.get_facecolor()).upper() for box in boxes if box.get_fill()]
    assert strips == [CLUSTER_PALETTE[0]] * 2 + [CLUSTER_PALETTE[1]] * 2
    assert [text.get_text() for text in ax.texts] == ["cluster 1", "cluster 2"]


def test_pairs_without_a_value_are_grey_and_explained():
    consensus = STABILITY.consensus.copy()
    consensus[ORDER[0], ORDER[5]] = np.nan
    ax = consensus_matrix(MODEL, consensus)
    image = ax.images[0]
    assert to_hex(image.to_rgba(image.get_array())[0, 5]) == "#8c8c8c"
    assert "grey: no subsample contains both samples" in ax.get_xlabel()
    full = np.nan_to_num(STABILITY.consensus)
    assert "grey" not in consensus_matrix(MODEL, full).get_xlabel()


def test_the_colour_bar_tells_its_meaning():
    figure = consensus_matrix(MODEL, STABILITY).figure
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert "share of subsamples with both samples in one cluster" in labels


def test_a_tree_without_clusters_and_given_axes():
    ax = Figure().subplots()
    tree = SimpleNamespace(linkage_matrix_=MODEL.linkage_matrix_)
    assert consensus_matrix(tree, STABILITY, ax=ax) is ax
    assert not ax.patches
    assert ax.get_xlabel().startswith("24 samples in the order of the tree")
