"""What users may add is one class or one entry, registered once: everything else follows."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from mrshc import HighVarianceHC, compare, methods
from mrshc.app import fit, make_plan
from mrshc.app.output_folder import write_outputs
from mrshc.io import load_result
from mrshc.methods import METHODS, VARIANTS, Method
from mrshc.plotting import result_pictures
from mrshc.plotting.result_pictures import PICTURES, Picture
from mrshc.report import write_report

pytestmark = pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")


@pytest.fixture
def toy_method():
    class ToyClusterer(HighVarianceHC):
        """Two features of highest variance."""

        n_features_to_select = 2

        def __init__(self, *, n_clusters=2, linkage="complete", metric="sqeuclidean"):
            self.n_clusters = n_clusters
            self.linkage = linkage
            self.metric = metric

    entry = Method(
        key="toy",
        label="Toy",
        name="Toy clustering",
        summary="two features of highest variance",
        load=lambda: ToyClusterer,
    )
    yield methods.register(entry)
    del METHODS["toy"]


@pytest.fixture
def toy_picture():
    def draw(result):
        from mrshc.plotting import figure_parts

        ax = figure_parts.new_figure(3.0, 2.0).subplots()
        ax.bar(range(result.n_clusters_), result.about["cluster_sizes"])
        return ax

    entry = Picture(
        name="sizes",
        heading="Sizes",
        explanation="The sizes of the clusters.",
        draw=draw,
        applies=lambda result: result.n_clusters_ > 1,
        formats=("png", "svg"),
    )
    yield result_pictures.register(entry)
    del PICTURES["sizes"]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(name="X")
def two_clusters():
    X = np.random.default_rng(0).normal(size=(20, 12))
    X[:10, :6] += 5
    return X


@pytest.fixture
def table(X, tmp_path):
    frame = pd.DataFrame(X, [f"s{i}" for i in range(20)], [f"g{j}" for j in range(12)])
    frame.to_csv(tmp_path / "table.csv")
    return tmp_path / "table.csv"


def unwrapped(text):
    """Return a help text without the frames and line breaks of its panels."""
    return " ".join(text.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())


# Methods ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("toy_method")
def test_a_registered_method_is_compared(X):
    comparison = compare(X, truth=np.arange(20) < 10, random_state=0)
    names = ["AssociationHC", "HMV 500, Ward", "MrSHC", "SHC", "HC", "HC-HMV", "Toy"]
    assert list(comparison.scores.index) == names
    assert comparison.scores.loc["Toy", "n_features"] == 2


@pytest.fixture
def method_without_a_tree():
    entry = Method(
        key="k-means",
        label="k-means",
        name="k-means clustering",
        summary="two clusters by k-means",
        load=lambda: KMeans,
        fixed={"n_clusters": 2},
    )
    yield methods.register(entry)
    del VARIANTS["k-means"]


@pytest.mark.usefixtures("method_without_a_tree")
def test_a_method_without_a_tree_has_scores_but_no_tree_in_a_comparison(main, table, tmp_path):
    classes = pd.DataFrame({"sample": [f"s{i}" for i in range(20)], "class": [*"ab"] * 10})
    classes.to_csv(tmp_path / "classes.csv", index=False)
    known = ("--samples", tmp_path / "classes.csv", "--truth", "class")
    code, said, error = main("compare", table, "-q", "2", *known, "--out", tmp_path / "out")
    assert code == 0, error
    assert "k-means: two clusters by k-means" in unwrapped(main("compare", "--help")[1])
    assert "k-means" not in unwrapped(main("cluster", "--help")[1])
    assert "k-means" in said
    scores = pd.read_csv(tmp_path / "out" / "scores.csv", index_col="method")
    assert scores.loc["k-means", ["n_features", "rank"]].isna().all()
    assert scores.loc["k-means", ["cer", "ari", "purity"]].notna().all()
    assert scores.loc["k-means", "cluster_sizes"] == "10, 10"
    about = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert "k-means" not in about["methods"]
    page = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "Comparison of 7 methods" in page
    assert "Methods without a tree are scored by their own clusters" in page
    assert "Tree of 20 samples by k-means" not in page
    assert "Tree of 20 samples by MrSHC" in page


@pytest.mark.usefixtures("toy_method")
def test_the_command_line_takes_a_registered_method(main, table, tmp_path):
    code, said, _ = main("cluster", "--help")
    assert code == 0
    assert "mrshc|shc|hc|hmv|cosa|toy" in said
    assert "two features of highest variance" in unwrapped(said)
    assert "Toy: two features" in unwrapped(main("compare", "--help")[1])
    given = ("--jobs", "1", "--out", tmp_path / "out")
    code, _, error = main("cluster", table, "--method", "toy", *given)
    assert code == 0, error
    result = load_result(tmp_path / "out")
    assert result.about["method"] == "toy"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Toy clustering of" in page
    given = ("-q", "2,4", "--jobs", "1", "--out", tmp_path / "compared")
    code, said, error = main("compare", table, *given)
    assert code == 0, error
    assert "Toy" in said
    scores = pd.read_csv(tmp_path / "compared" / "scores.csv", index_col="method")
    assert scores.loc["Toy", "n_features"] == 2


@pytest.mark.usefixtures("toy_method")
def test_refusals_list_registered_methods():
    with pytest.raises(
        ValueError, match="must be one of association, mrshc, shc, hc, hmv, cosa, toy, got 'kmeans'"
    ):
        make_plan(None, method="kmeans")


def test_a_method_needs_a_unique_key_and_a_unique_label():
    with pytest.raises(ValueError, match="must have a unique key and a unique label"):
        methods.register(replace(METHODS["hc"], key="other"))
    assert "other" not in METHODS


# Pictures -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("drawn", "toy_picture")
def test_a_registered_picture_is_in_the_folder_of_a_result(main, table, tmp_path):
    given = ("--paper", "-q", "3", "--rank", "1", "--jobs", "1", "--out", tmp_path / "out")
    for replaced in ((), ("--overwrite",)):  # the second run knows its files
        code, _, error = main("cluster", table, *given, *replaced)
        assert code == 0, error
        assert (tmp_path / "out" / "sizes.png").stat().st_size > 0
        assert (tmp_path / "out" / "sizes.svg").stat().st_size > 0


@pytest.mark.usefixtures("drawn", "toy_picture")
def test_a_picture_that_does_not_apply_is_left_out(drawn, tmp_path):
    from tiny import tiny_table

    drawn("dendrogram")
    write_outputs(fit(make_plan(tiny_table(), method="hc", parameters={"n_clusters": 1})), tmp_path)
    assert not (tmp_path / "sizes.png").exists()
    assert (tmp_path / "dendrogram.svg").exists()


def test_a_picture_needs_a_name_of_its_own():
    with pytest.raises(ValueError, match="A picture named 'heatmap' is already registered"):
        result_pictures.register(replace(PICTURES["heatmap"], heading="Another"))
    assert PICTURES["heatmap"].heading == "Heat map"
