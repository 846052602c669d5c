import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import dendrogram as scipy_dendrogram

from mrshc import HighVarianceHC
from mrshc.datasets import make_section2_example
from mrshc.plotting import PALETTE, dendrogram, dendrogram_lines

DATA = make_section2_example(0)
MODEL = HighVarianceHC(4, linkage="average").fit(DATA.X)


def test_lines_are_those_of_scipy():
    lines = dendrogram_lines(MODEL.linkage_matrix_)
    expected = scipy_dendrogram(MODEL.linkage_matrix_, no_plot=True)
    np.testing.assert_array_equal(lines.order, expected["leaves"])
    forks = {tuple(np.round(f.ravel(), 9)) for f in lines.forks}
    theirs = {
        tuple(np.round(np.column_stack([(np.array(x) - 5) / 10, y]).ravel(), 9))
        for x, y in zip(expected["icoord"], expected["dcoord"], strict=True)
    }
    assert forks == theirs


def test_leaves_carry_their_names_and_the_colours_of_their_classes():
    classes = [f"class {label}" for label in DATA.labels]
    axes = dendrogram(MODEL, classes=classes, names=DATA.sample_names, title="Example")
    order = dendrogram_lines(MODEL.linkage_matrix_).order
    for tick, i in zip(axes.get_xticklabels(), order, strict=True):
        assert tick.get_text() == DATA.sample_names[i]
        assert tick.get_color() == PALETTE[DATA.labels[i]]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == [f"class {k}" for k in range(4)]
    assert axes.get_title(loc="left") == "Example"


def test_classes_are_taken_in_order_whatever_their_index():
    classes = pd.Series([f"class {label}" for label in DATA.labels], index=DATA.sample_names[::-1])
    axes = dendrogram(MODEL, classes=classes, class_title="group")
    order = dendrogram_lines(MODEL.linkage_matrix_).order
    colours = [tick.get_color() for tick in axes.get_xticklabels()]
    assert colours == [PALETTE[DATA.labels[i]] for i in order]
    assert axes.get_legend().get_title().get_text() == "group"


def test_too_few_names_are_refused():
    with pytest.raises(ValueError, match="names must hold one entry for each of the 20 samples"):
        dendrogram(MODEL, names=["a"])


def test_given_axes_are_used():
    axes = Figure().subplots()
    assert dendrogram(MODEL, ax=axes) is axes
    assert axes.get_legend() is None
