"""Plots appear in a notebook: the example notebook is executed, and every cell has a picture."""

import inspect
import re
from base64 import b64decode
from pathlib import Path

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from nbclient import NotebookClient

from mrshc import HighVarianceHC, plotting

NOTEBOOK = Path(__file__).parents[2] / "examples" / "plots.ipynb"
# Functions that draw: their return annotation is a class of matplotlib.
DRAWING = [
    name
    for name in plotting.__all__
    if inspect.isfunction(function := getattr(plotting, name))
    and inspect.signature(function).return_annotation in ("Axes", "Figure")
]


def notebook():
    return nbformat.read(NOTEBOOK, 4)


def code_cells(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def test_the_notebook_calls_every_plotting_function():
    source = "\n".join(cell.source for cell in code_cells(notebook()))
    assert len(DRAWING) >= 9
    assert [name for name in DRAWING if f"pl.{name}(" not in source] == []


def test_the_notebook_is_stored_without_outputs():
    assert all(not cell.outputs and cell.execution_count is None for cell in code_cells(notebook()))


@pytest.mark.slow
def test_every_cell_of_the_notebook_shows_a_picture(tmp_path):
    book = notebook()
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=resources).execute()
    for cell in code_cells(book):
        shown = [output.get("data", {}) for output in cell.outputs]
        pictures = [b64decode(data["image/png"]) for data in shown if "image/png" in data]
        assert len(pictures) == 1, cell.source
        assert pictures[0].startswith(b"\x89PNG")
        # Warnings and errors would be further outputs.
        assert all(shown), cell.source
    first = code_cells(book)[0].outputs[0]["data"]
    assert "<table>" in first["text/html"], "the summary of the model"


X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
MODEL = HighVarianceHC(2, n_clusters=2).fit(X)


def png_size(content):
    return tuple(int.from_bytes(content[i : i + 4], "big") for i in (16, 20))


@pytest.mark.parametrize(
    "drawn", [plotting.dendrogram(MODEL), plotting.heatmap(MODEL, X)], ids=["axes", "figure"]
)
def test_axes_and_figures_give_their_picture_in_the_size_of_the_figure(drawn):
    content, about = drawn._repr_png_()
    figure = drawn.figure
    # A pixel of a browser is 1/96 inch; there are two pixels of the picture for each.
    expected = [round(inches * 96) for inches in figure.get_size_inches()]
    assert [about["width"], about["height"]] == expected
    np.testing.assert_allclose(png_size(content), [2 * side for side in expected], atol=2)
    assert drawn._repr_png_()[0] == content, "showing a figure does not change it"


def test_axes_of_the_caller_are_returned_as_they_are():
    ax = Figure().subplots()
    assert plotting.dendrogram(MODEL, ax=ax) is ax
    assert not hasattr(ax, "_repr_png_")


def test_other_projections_can_be_added_to_a_figure():
    figure = plotting.dendrogram(MODEL).figure
    assert figure.add_subplot(projection="polar").name == "polar"


def test_estimators_keep_their_diagram_in_notebooks():
    assert re.search("sk-global|sk-top-container", MODEL._repr_html_())
