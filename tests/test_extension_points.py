"""What users may add is one class or one entry, registered once: everything else follows."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from mrshc.core.selection import Decision, SearchStory, SelectionRule
from mrshc.core.selection.candidates import Candidate, evaluate_cuts
from sklearn.cluster import KMeans

from mrshc import HighVarianceHC, MrSHC, compare, methods
from mrshc.app import fit, make_plan
from mrshc.app.output_folder import write_outputs
from mrshc.core import selection
from mrshc.io import load_result
from mrshc.io.result import write_result
from mrshc.methods import METHODS, VARIANTS, Method
from mrshc.plotting import result_pictures, search_curves
from mrshc.plotting.result_pictures import PICTURES, Picture
from mrshc.plotting.search_explanation import chosen_row, describe_choice, make_curve
from mrshc.report import write_report
from tiny import tiny_result

pytestmark = pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")


class ToyRule(SelectionRule):
    """Two clusters; the tree that separates most held-out features by a standard deviation."""

    name = "toy"
    summary = "by the number of other features that two clusters separate."
    description = "A rule for tests."
    columns = ("n_separated",)
    cut_scores = ("height",)

    def n_cuts(self, *, n_clusters, n_samples):
        return 2

    def task(self, matrix, features, settings):
        return partial(toy_evaluation, matrix.columns(features.indices), settings.gap)

    def score_together(self, matrix, sets, evaluations):
        """Count over the whole matrix, which no task sees."""
        scored = {}
        for key, evaluation in evaluations.items():
            others = np.setdiff1d(np.arange(matrix.shape[1]), sets[key].indices)
            X, labels = matrix.columns(others), evaluation.pruned.labels(2)
            apart = np.abs(X[labels == 0].mean(axis=0) - X[labels == 1].mean(axis=0))
            counts = {"n_separated": np.array([np.sum(apart > X.std(axis=0))])}
            scored[key] = replace(evaluation, scores={**evaluation.scores, **counts})
        return scored

    def candidate(self, target, features, evaluation, *, n_clusters, refined):
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=2,
            silhouette=float(evaluation.silhouettes[1]),
            scores={"n_separated": int(evaluation.scores["n_separated"][0])},
        )

    def choose(self, table):
        chosen, none = int(table["n_separated"].argmax()), np.zeros(table["rank"].size, dtype=bool)
        return Decision(chosen=chosen, best_rank=none, removed=none)

    def explain(self, table):
        row = chosen_row(table)
        curve = make_curve(
            np.asarray(table["n_separated"], dtype=float),
            heading="Which toy?",
            x_name="candidate",
            y_name="separated features",
            ticks=table["n_features_target"],
            chosen=row,
        )
        score = f"{table['n_separated'][row]} separated"
        return SearchStory(
            verdict=describe_choice(table, score),
            rule="How it is chosen: by counting.",
            curves=(curve,),
            screened_out="",
        )

    def score_sentence(self, row):
        return f"The toy counts {row['n_separated']} features."

    def facts(self, row):
        return [("separated features", str(row["n_separated"]))]


def toy_evaluation(X, gap):
    evaluation = evaluate_cuts(X, settings=gap, k=2)
    tree = evaluation.pruned.tree
    return replace(evaluation, scores={"height": np.array([tree.height(tree.root)])})


@pytest.fixture
def toy_rule():
    selection.register(ToyRule)
    yield
    del selection.RULES["toy"]


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


# Selection rules ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("toy_rule")
def test_a_registered_rule_is_accepted_and_its_scores_are_in_the_table(X, tmp_path):
    model = MrSHC([2, 4], max_rank=2, selection="toy", random_state=0).fit(X)
    results = model.search_results_
    assert results["n_separated"][results["chosen"]][0] == results["n_separated"].max() > 0
    assert model.n_clusters_ == 2
    resumed = MrSHC([2, 4], max_rank=2, selection="toy", random_state=0)
    resumed.set_params(checkpoint=tmp_path / "steps")
    for _ in range(2):  # the second fit reads the scores of the cuts from the file
        resumed.fit(X)
        np.testing.assert_array_equal(
            resumed.search_results_["n_separated"], results["n_separated"]
        )
    assert b'"height"' in (tmp_path / "steps").read_bytes()


@pytest.mark.usefixtures("toy_rule")
def test_plots_and_report_show_what_a_registered_rule_says(X, drawn, tmp_path):
    drawn("search")
    model = MrSHC([2, 4], max_rank=1, selection="toy", random_state=0).fit(X)
    (ax,) = search_curves(model).axes
    assert ax.get_title(loc="left") == "Which toy?"
    result = tiny_result(selection="toy")
    write_outputs(result, tmp_path)
    loaded = load_result(tmp_path)
    assert "n_separated" in loaded.search_results_
    n_separated = loaded.chosen_candidate["n_separated"]
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert f"The toy counts {n_separated} features." in page
    assert "separated features" in page
    assert "Which toy?" in page
    assert "How it is chosen: by counting." in page
    assert "n_separated" in (tmp_path / "search.csv").read_text(encoding="utf-8")
    assert (tmp_path / "search.png").exists()


@pytest.mark.usefixtures("toy_rule")
def test_a_saved_score_that_is_no_number_is_refused(tmp_path):
    write_result(tiny_result(selection="toy"), tmp_path)
    about = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    about["search"][0]["n_separated"] = None
    (tmp_path / "result.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has a score that is not a number"):
        load_result(tmp_path)


@pytest.mark.usefixtures("toy_rule")
def test_the_command_line_takes_a_registered_rule(main, table, tmp_path):
    code, said, _ = main("cluster", "--help")
    assert code == 0
    assert "silhouette|association|evidence|toy" in said
    assert "two clusters separate" in unwrapped(said)
    given = ("-q", "2,4", "--max-rank", "1", "--jobs", "1", "--out", tmp_path / "out")
    code, said, error = main("cluster", table, "--selection", "toy", *given)
    assert code == 0, error
    assert "The toy counts" in said
    code, _, error = main("cluster", table, "--selection", "toys", *given)
    assert code == 2
    assert "'toy'" in error


@pytest.mark.usefixtures("toy_rule")
def test_refusals_list_registered_rules(X):
    names = "'silhouette', 'association', 'evidence', 'toy'"
    with pytest.raises(ValueError, match=f"one of {names}, got 'gap'"):
        MrSHC(selection="gap").fit(X)


def test_a_rule_needs_a_name_and_columns_of_its_own():
    with pytest.raises(
        ValueError, match="A selection rule with the name 'evidence' is registered already"
    ):
        selection.register(type("Copy", (ToyRule,), {"name": "evidence"}))
    with pytest.raises(ValueError, match=r"must not add the same columns .* as 'silhouette'"):
        selection.register(type("Copy", (ToyRule,), {"columns": ()}))
    assert list(selection.RULES) == ["silhouette", "association", "evidence"]


# Methods ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("toy_method")
def test_a_registered_method_is_compared(X):
    comparison = compare(X, truth=np.arange(20) < 10, random_state=0)
    built_in = ["HMV 500, Ward", "MrSHC", "MrSHC, evidence", "SHC", "HC", "HC-HMV"]
    names = ["MrSHC, association", *built_in, "Toy"]
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
    assert "Comparison of 8 methods" in page
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
        ValueError, match="must be one of mrshc, shc, hc, hmv, cosa, toy, got 'kmeans'"
    ):
        make_plan(None, method="kmeans")


def test_a_method_needs_a_unique_key_and_a_unique_label():
    with pytest.raises(ValueError, match="must have a unique key and a unique label"):
        methods.register(replace(METHODS["hc"], key="other"))
    assert "other" not in METHODS


# Pictures -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("drawn", "toy_picture")
def test_a_registered_picture_is_in_the_folder_of_a_result(main, table, tmp_path):
    given = ("-q", "3", "--rank", "1", "--jobs", "1", "--out", tmp_path / "out")
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
