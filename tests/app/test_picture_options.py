"""The options --format and --figure-size determine the files of the pictures and their size."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from mrshc.app import output_folder
from mrshc.app.cli.picture_options import PictureOptions
from mrshc.errors import UserError
from mrshc.plotting.result_pictures import PICTURES

OPTIONS = ("--method", "hmv", "--n-features", "3", "--n-clusters", "2", "--quiet")

pytestmark = pytest.mark.usefixtures("coarse_pictures")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(10, 14)).round(3)).add_prefix("g")
    frame.index = [f"s{i}" for i in range(10)]
    frame.iloc[:5, :4] += 5.0
    frame.to_csv(tmp_path / "t.csv", index_label="sample")
    return tmp_path / "t.csv"


def pictures(folder):
    return {file.name for file in folder.iterdir() if file.suffix in (".png", ".svg", ".pdf")}


def test_formats_are_those_of_each_picture_unless_some_are_chosen(main, drawn, table, tmp_path):
    drawn("dendrogram")
    drawn("silhouettes")
    out = tmp_path / "out"
    assert main("cluster", table, "--out", out, *OPTIONS)[0] == 0
    default = {"dendrogram.svg", "dendrogram.png", "silhouettes.png"}
    assert pictures(out) == default
    chosen = ("--format", "PDF, svg,svg")
    assert main("cluster", table, "--out", out, *OPTIONS, *chosen, "--overwrite")[0] == 0
    expected = {f"{name}.{ending}" for name in PICTURES for ending in ("pdf", "svg")}
    assert pictures(out) == expected, "files of the earlier run are replaced"
    assert (out / "silhouettes.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("text", ["gif", "png,tiff", "", ",", "png;svg"])
def test_other_formats_are_refused_before_anything_is_read(main, tmp_path, text):
    file = tmp_path / "empty.csv"
    file.touch()
    for command in ("cluster", "compare"):
        out = tmp_path / "out"
        code, _, printed = main(command, file, "--out", out, "--format", text)
        assert code == 2
        assert "--format must be one of png, svg, pdf, or several" in " ".join(printed.split())
        assert not out.exists()


def size_of(svg):
    """Return the width and the height of an SVG file in inches."""
    root = ElementTree.parse(svg).getroot()
    return tuple(float(root.get(side).removesuffix("pt")) / 72 for side in ("width", "height"))


def test_pictures_have_the_size_that_was_chosen(main, drawn, table, tmp_path):
    drawn("dendrogram")
    drawn("markers")
    out = tmp_path / "out"
    options = ("--format", "svg", "--figure-size", "6.5X4")
    assert main("cluster", table, "--out", out, *OPTIONS, *options) == (0, "", "")
    assert size_of(out / "dendrogram.svg") == (6.5, 4)
    assert size_of(out / "markers.svg") != (6.5, 4), "its size follows from its panels"


@pytest.mark.parametrize("text", ["7", "7x", "x5", "7x5x3", "0.5x4", "7x101", "nanx4", "a4", ""])
def test_other_sizes_are_refused(text):
    with pytest.raises(UserError, match=f"--figure-size must be a width and .* got {text!r}"):
        PictureOptions(figure_size=text).to_settings()


@pytest.mark.slow
def test_a_comparison_has_its_picture_in_the_formats_and_the_size(main, drawn, table, tmp_path):
    drawn("dendrograms")
    out = tmp_path / "out"
    options = ("--methods", "hc,cosa", "--quiet", "--figure-size", "5x6")
    assert main("compare", table, "--out", out, *options, "--format", "svg")[0] == 0
    assert pictures(out) == {"dendrograms.svg"}
    assert size_of(out / "dendrograms.svg") == (5, 6)


def test_files_in_every_format_are_known_as_outputs():
    known = output_folder.output_file_names()
    assert {"dendrogram.pdf", "markers.svg", "dendrograms.pdf"} <= known
