"""Texts and markers of drawn figures, for tests of plots."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg


def words_of(legend):
    return [text.get_text() for text in legend.get_texts() if text.get_text()]


def boxes_of(figure, texts):
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    return [text.get_window_extent(renderer) for text in texts if text.get_text()]


def overlaps(boxes):
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


def marks_of(ax):
    """Return the points of each kind of mark, by its label."""
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    return {line.get_label(): line.get_xydata().tolist() for line in lines}
