"""Pictures are written to files, and figures that are too small are reported in one sentence."""

import warnings

import pytest
from matplotlib.figure import Figure

from mrshc.app.picture_writing import SmallFigureWarning, draw_and_write, warn_of_small_figures


def draw(width):
    ax = Figure(figsize=(width, width), layout="constrained").subplots()
    ax.set_ylabel("a label\n" * 8)
    return ax


def test_a_figure_that_is_too_small_is_written_all_the_same(tmp_path):
    assert draw_and_write(lambda: draw(6.0), [tmp_path / "large.svg"])
    assert not draw_and_write(lambda: draw(1.0), [tmp_path / "small.svg"])
    assert (tmp_path / "small.svg").exists()


def test_other_warnings_are_passed_on(tmp_path):
    def draw_with_warning():
        warnings.warn("another reason", UserWarning, stacklevel=1)
        return draw(6.0)

    with pytest.warns(UserWarning, match="another reason"):
        draw_and_write(draw_with_warning, [tmp_path / "x.svg"])


def test_small_figures_are_named():
    warn_of_small_figures([], (2.0, 1.5))
    with pytest.warns(SmallFigureWarning, match=r"of 2 by 1.5 inches .* text of: a, b\. Choose"):
        warn_of_small_figures(["a", "b"], (2.0, 1.5))
