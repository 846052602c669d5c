"""What the command line, the report and the pictures state about the clusters."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from mrshc.app import (
    compare_methods,
    comparison_notes,
    fit,
    make_plan,
    result_summary,
)
from mrshc.datasets import make_noise, make_simulation_1
from mrshc.io import Table, load_result
from mrshc.plotting.result_pictures import PICTURES
from mrshc.report import result_report
from mrshc.report.sentences import answer_sentences, facts, verdict_sentence

CLUSTERS = make_simulation_1(6, mu=2.0).X[:, :120]
NOISE = make_noise(0, n_samples=40, n_features=60).X

# Words that grade clusters. None of them may describe clusters that may be due to chance.
GRADES = re.compile(
    r"\b(clear(ly)?|good|well|excellent|reasonabl[ey]|moderate(ly)?|weak(ly)?|poor(ly)?|bad(ly)?|"
    r"strong(ly|est)?|distinct(ly)?|separated|real|genuine|true clusters?|significan(t|tly|ce)|"
    r"convincing|robust(ly)?|reliabl[ey]|confirm\w*|prove[sd]?|proof|supports?|supported)\b",
    re.IGNORECASE,
)


class PageText(HTMLParser):
    """The text of a page that a reader sees, and the data from which plots and tables are drawn."""

    def __init__(self, html):
        super().__init__()
        self.parts, self.data, self.inside = [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "style"):
            self.inside = "data" if dict(attrs).get("type") == "application/json" else "code"

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside = None

    def handle_data(self, data):
        if self.inside != "code":
            (self.data if self.inside == "data" else self.parts).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.parts).split())


def table_of(X):
    n, p = X.shape
    samples = np.array([f"s{i}" for i in range(n)], dtype=object)
    features = np.array([f"g{j}" for j in range(p)], dtype=object)
    return Table(
        X=X,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(index=samples),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )


def result_of(X, method="mrshc", **parameters):
    if method == "mrshc":
        parameters = {"n_references": 10, "max_rank": 1, "random_state": 0} | parameters
    return fit(make_plan(table_of(X), method=method, parameters=parameters))


def strings_in(value):
    """Return all strings in a JSON value, without the keys of objects."""
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value
    return [s for v in children for s in strings_in(v)] if isinstance(value, (dict, list)) else []


UNTESTED = (
    "The clusters were not tested with held-out features: nothing in this result tests them "
    "against chance. To test them, use the method association."
)


@pytest.mark.parametrize(
    ("X", "options", "supported", "fact", "verdict"),
    [
        (CLUSTERS, ("--paper", "-q", "20"), None, "not tested", re.escape(UNTESTED)),
        (
            CLUSTERS,
            (),
            True,
            "yes",
            r"The clusters are supported by held-out features: \d+ features are associated with "
            r"clusters of trees that were built without them, at a false discovery rate of 5 %\. "
            r"This separates structure from independent noise only: .*batch or a pathway.*\.",
        ),
        (
            NOISE,
            ("-k", "3"),
            False,
            "no",
            r"The clusters are not supported by held-out features: fewer than 5 features are "
            r"associated with clusters of trees that were built without them\.",
        ),
        (
            NOISE[:6],
            ("-k", "2"),
            None,
            "undecided",
            r"The test of the clusters is undecided: fewer than 5 features are associated .*",
        ),
    ],
    ids=["not tested", "supported", "not supported", "undecided"],
)
def test_command_line_and_report_state_the_same_verdict_once(
    main, tmp_path, X, options, supported, fact, verdict
):
    file, out = tmp_path / "table.csv", tmp_path / "out"
    names = [f"s{i}" for i in range(len(X))]
    pd.DataFrame(X, names, [f"g{j}" for j in range(X.shape[1])]).to_csv(file)
    given = ("--features", "columns", "--jobs", "1", "--out", out)
    code, printed, error = main("cluster", file, *options, *given)
    assert code == 0, error
    lines = [line for line in printed.splitlines() if re.fullmatch(verdict, line)]
    assert len(lines) == 1
    page = PageText((out / "report.html").read_text(encoding="utf-8")).text
    assert page.count(lines[0]) == 1
    result = load_result(out)
    assert result.about["supported"] is supported
    assert ("supported by held-out features", fact) in facts(result)


# In most draws of noise, the paper's procedure finds one cluster. In these it finds several.
@pytest.fixture(scope="module", params=[(7, 15, 60), (11, 20, 200)], ids=["15x60", "20x200"])
def clusters_in_noise(request):
    """Return a result of the paper's procedure with several clusters of independent noise."""
    seed, n, p = request.param
    X = make_noise(seed, n_samples=n, n_features=p).X
    result = fit(make_plan(table_of(X), method="mrshc", parameters={"random_state": 0}))
    assert result.n_clusters_ > 1
    return result


def without_names(text, result):
    """Return a text without the names of parameters and options, which are no statements."""
    for name in (*result.about["parameters"], "--robust"):
        text = text.replace(name, "")
    return text


def test_clusters_of_noise_are_not_graded_on_the_command_line(clusters_in_noise):
    for sentence in result_summary(clusters_in_noise):
        assert not GRADES.search(sentence), sentence
    assert UNTESTED in result_summary(clusters_in_noise)


def test_clusters_of_noise_are_not_graded_in_the_report(clusters_in_noise):
    page = PageText(result_report(clusters_in_noise))
    text = without_names(page.text, clusters_in_noise)
    # The name of the number that states "not tested" is no grade.
    assert "supported by held-out features not tested" in text
    text = text.replace("supported by held-out features not tested", "")
    found = [text[max(0, match.start() - 60) : match.end() + 60] for match in GRADES.finditer(text)]
    assert not found
    for data in page.data:
        for string in strings_in(json.loads(data)):
            assert not GRADES.search(without_names(string, clusters_in_noise)), string


def test_clusters_of_noise_are_not_graded_in_pictures(clusters_in_noise):
    for picture in PICTURES.values():
        if not picture.applies(clusters_in_noise):
            continue
        drawn = picture.draw(clusters_in_noise)
        for text in getattr(drawn, "figure", drawn).findobj(Text):
            assert not GRADES.search(text.get_text()), (picture.name, text.get_text())
        assert not GRADES.search(picture.explanation)


@pytest.mark.parametrize("width", [-0.1, 0.2, 0.4, 0.74, 0.99])
def test_the_wording_does_not_depend_on_the_silhouette(clusters_in_noise, width):
    about = clusters_in_noise.about
    chosen = about["chosen"]
    other = replace(clusters_in_noise, about=about | {"chosen": chosen | {"silhouette": width}})
    old, new = f"Average silhouette {chosen['silhouette']:.2f}", f"Average silhouette {width:.2f}"
    expected = [text.replace(old, new) for text in answer_sentences(clusters_in_noise)]
    assert answer_sentences(other) == expected
    (sentence,) = (text for text in result_summary(other) if text.startswith(new))
    assert sentence in expected
    assert sentence.endswith("so this says nothing about whether the clusters exist.")


def test_there_is_advice_if_the_clusters_are_not_supported():
    one = result_of(NOISE, "association")
    given = result_of(NOISE, "association", n_clusters=3)
    for result in (one, given):
        (advice,) = (text for text in result_summary(result) if "try a logarithm" in text)
        assert advice in answer_sentences(result)
        assert ("give the number of clusters" in advice) == (result is one)
    supported = result_of(CLUSTERS, "association")
    assert not any("try a logarithm" in text for text in result_summary(supported))


def test_supported_clusters_are_not_called_proved():
    result = result_of(CLUSTERS, "association")
    verdict = verdict_sentence(result)
    assert not re.search(r"\b(real|genuine|prove[sd]?|proof|exist|confirm)", verdict)
    assert "The number of clusters is not tested." in verdict


# All of 700 features differ between two clusters; the tree is built on 500 of them.
SHIFTED = np.random.default_rng(0).normal(size=(30, 700)) + 4.0 * (np.arange(30) < 15)[:, None]
WITH_GAPS = np.where(np.random.default_rng(1).random(CLUSTERS.shape) < 0.1, np.nan, CLUSTERS)
WITH_GAPS[3] = 9.0 * np.random.default_rng(2).normal(size=CLUSTERS.shape[1])
# Sentences about a search that precedes the refinement, or about p-values, would be wrong.
WRONG_FOR_ASSOCIATION = re.compile(
    r"q = |r = |refined|refinement|p-value|gap (statistic|test)|single candidate"
)


@pytest.mark.parametrize(
    ("X", "options"),
    [(CLUSTERS, {}), (NOISE, {}), (NOISE, {"n_clusters": 3}), (WITH_GAPS, {"robust": True})],
    ids=["clusters", "noise", "noise, three clusters", "robust with missing values"],
)
def test_association_is_not_described_as_a_search_and_a_refinement(X, options):
    result = result_of(X, "association", **options)
    for sentence in [*result_summary(result), *answer_sentences(result)]:
        assert not WRONG_FOR_ASSOCIATION.search(sentence), sentence
    page = PageText(result_report(result)).text
    text = page.partition("Data and provenance Reading")[0]
    assert not WRONG_FOR_ASSOCIATION.search(text)
    names = [name for name, _ in facts(result)]
    assert len(set(names)) == len(names)
    assert "start set" in names
    assert not {"rank (r)", "selected features (q)"} & set(names)


def test_the_summary_of_association_states_the_features_once():
    result = result_of(SHIFTED, "association")
    assert (result.n_features_selected_, result.about["n_associated"]) == (500, 700)
    start, verdict, tree, clusters, *_ = result_summary(result)
    assert re.fullmatch(
        r"Chose 500 of 700 features \(start set: \d+ features, rank [135]\)\.", start
    )
    assert verdict.startswith("The clusters are supported by held-out features: 700 features are")
    assert tree == (
        "The tree is built on the 500 associated features with the largest differences between "
        "clusters (sums of squares)."
    )
    assert clusters == "Found K = 2 clusters."
    assert sum("700 features" in sentence for sentence in answer_sentences(result)) == 1
    assert ("associated features", "700") in facts(result)


def test_a_start_set_is_kept_if_association_finds_no_features():
    result = result_of(NOISE, "association")
    kept = f"Kept a start set, {result.n_features_before_refinement} of 60 features (rank 1)"
    sentences = result_summary(result)
    assert sentences[0] == f"{kept}, one cluster: no groups were found."
    assert sentences[1].startswith("The clusters are not supported by held-out features")
    (first, *_) = result_summary(result_of(NOISE, "association", n_clusters=3))
    assert first == f"{kept}. Cut the tree into K = 3 clusters, the number given."


@pytest.mark.parametrize(
    ("method", "parameters", "is_stated"),
    [
        ("association", {}, True),
        ("association", {"n_clusters": 3}, False),
        ("mrshc", {"n_features_to_select": 20}, False),
    ],
    ids=["association", "given number", "paper"],
)
def test_the_report_states_how_the_tree_was_cut(method, parameters, is_stated):
    result = result_of(CLUSTERS, method, **parameters)
    page = PageText(result_report(result)).text
    sentence = (
        f"The tree is cut into {result.n_clusters_} clusters: of the cuts into at most 10 "
        "clusters, this is the one whose last split exceeds the next split by the largest ratio."
    )
    assert (sentence in page) is is_stated
    assert ("This is a heuristic, not a test." in page) is is_stated


def test_the_report_explains_loadings_and_q_values_of_association():
    text = PageText(result_report(result_of(CLUSTERS, "association"))).text
    assert "A feature without a value was not in the start set" in text
    assert "q_value: smallest false discovery rate" in text


def test_pictures_of_association_are_not_of_a_search_before_a_refinement():
    result = result_of(CLUSTERS, "association")
    texts = {
        name: " ".join(text.get_text() for text in PICTURES[name].draw(result).findobj(Text))
        for name in ("search", "loadings")
    }
    assert "Which start set?" in texts["search"]
    assert "Sparse components of the start set" in texts["loadings"]
    assert not any("refinement" in text for text in texts.values())


def test_methods_without_a_test_name_one_with_it():
    result = result_of(CLUSTERS, "hc", n_clusters=3)
    assert verdict_sentence(result).endswith("use the method association.")
    assert any(
        "The clusters were found in the same features" in text for text in result_summary(result)
    )


def test_one_cluster_needs_no_test():
    result = result_of(NOISE, n_features_to_select=20)
    assert result.n_clusters_ == 1
    assert verdict_sentence(result) == "The clusters were not tested: there is only one."
    assert not any("silhouette" in text for text in answer_sentences(result))


def test_a_comparison_states_the_verdict_on_association():
    parameters = {"random_state": 0, "n_features_to_select": 20}
    for X, verdict in ((CLUSTERS, "are supported by"), (NOISE, "are not supported by")):
        plan = make_plan(table_of(X), method="mrshc", parameters=parameters)
        notes = comparison_notes(compare_methods(plan, n_clusters=3), plan)
        starts = f"AssociationHC: The clusters {verdict} held-out features"
        assert sum(note.startswith(starts) for note in notes) == 1


def test_markers_are_said_to_rank_features(clusters_in_noise):
    page = PageText(result_report(clusters_in_noise)).text
    assert "the q-values of markers are scores that rank features, and are not evidence" in page
    figure = PICTURES["markers"].draw(clusters_in_noise)
    texts = (" ".join(text.get_text().split()) for text in figure.findobj(Text))
    assert any("are scores that rank features, and are not evidence" in text for text in texts)
