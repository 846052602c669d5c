"""Significance and stability in the report and in the pictures of a result."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mrshc.app import ConfidenceSettings, fit, make_plan
from mrshc.io import Table
from mrshc.plotting.branch_marks import result_support, result_tests
from mrshc.plotting.result_pictures import PICTURES, clusters_note
from mrshc.report import result_report
from mrshc.report.confidence_section import confidence_section, jaccard_reading
from mrshc.report.confidence_sentences import confidence_sentences
from mrshc.report.page_data import MAX_CONSENSUS_SAMPLES, result_data
from mrshc.report.result_sections import result_content


def fit_groups(shift, *, n_clusters=2, **analyses):
    """Return the result of two groups of 20 and 10 samples, which differ by `shift`."""
    X = np.random.default_rng(0).normal(size=(30, 12))
    X[:20] += shift
    samples = np.array([f"s{i}" for i in range(30)], dtype=object)
    features = np.array([f"g{j}" for j in range(12)], dtype=object)
    table = Table(
        X=X,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(index=samples),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )
    settings = ConfidenceSettings(n_simulations=10, n_resamples=5, **analyses)
    parameters = {"n_clusters": n_clusters, "linkage": "ward"}
    return fit(make_plan(table, method="hc", parameters=parameters, confidence=settings))


@pytest.fixture(scope="module")
def separated():
    return fit_groups(4.0, significance=True, stability=True)


@pytest.fixture(scope="module")
def noise():
    return fit_groups(0.0, n_clusters=3, significance=True, stability=True)


@pytest.fixture(scope="module")
def only_stability():
    return fit_groups(4.0, stability=True)


@pytest.fixture(scope="module")
def plain():
    return fit_groups(4.0)


def test_results_without_analyses_have_no_section(plain):
    assert confidence_section(plain) is None
    branches = result_data(plain)["branches"]
    assert (branches["support"], branches["tests"]) == (None, None)
    assert clusters_note(plain) == ""
    html = result_report(plain)
    assert "How sure are these clusters?" not in html
    assert 'id="significant-clusters"' not in html


def test_tests_and_support_of_a_result_are_those_of_its_table(separated):
    n, table = 30, separated.branches.set_index("node")
    tests = result_tests(separated)
    np.testing.assert_array_equal(tests["p_value"], table.loc[tests["node"] + n, "p_value"])
    assert tests["node"][0] == n - 2  # the root
    assert tests["node"].size == table["p_value"].notna().sum()
    support = result_support(separated)
    np.testing.assert_array_equal(support, table.loc[np.arange(n, 2 * n - 1), "support"])
    assert np.isnan(support[-1])


def test_tables_and_sentences_of_separated_groups(separated):
    section = confidence_section(separated)
    root, *_ = section.splits.rows
    sizes = separated.about["cluster_sizes"]
    expected = ["30", f"{sizes[0]} and {sizes[1]}", "< 0.001", "0.05", "yes", "1.00", ""]
    assert root == ["all clusters", *expected]
    jaccard = separated.about["stability"]["cluster_jaccard"]
    assert section.clusters.rows == [
        [k + 1, str(sizes[k]), f"{jaccard[k]:.2f}", jaccard_reading(jaccard[k])] for k in range(2)
    ]
    assert section.sentences == confidence_sentences(separated)
    assert section.significance[0] == (
        "The 2 clusters of the result are separated by significant splits."
    )
    assert section.consensus.id == "consensus"
    facts = dict(result_content(separated, values=result_data(separated)["values"])["answer"].facts)
    assert facts["significant clusters"] == separated.about["significance"]["n_clusters"]


def test_some_splits_between_clusters_are_significant():
    result = fit_groups(4.0, n_clusters=3, significance=True)
    assert clusters_note(result) == "1 of 2 splits significant"
    assert confidence_section(result).significance[0] == (
        "Of the 2 splits between the 3 clusters of the result, 1 is significant."
    )


def test_the_agreement_of_the_tested_split_is_shown(separated):
    tested = separated.branches[separated.branches["p_value"].notna()]
    expected = ["" if pd.isna(value) else f"{value:.2f}" for value in tested["agreement"]]
    section = confidence_section(separated)
    assert section.splits.headings[6] == "agreement"
    assert [row[6] for row in section.splits.rows] == expected
    assert "adjusted Rand index" in section.significance[-1]
    data = [test["agreement"] for test in result_data(separated)["branches"]["tests"]]
    assert data == [None if pd.isna(value) else value for value in tested["agreement"]]


def test_the_meaning_of_p_values_is_stated(separated):
    text = " ".join(confidence_section(separated).significance)
    assert "one Gaussian group" in text
    assert "does not mean that the clusters are biological classes" in text
    assert "uniform gradient" in text


@pytest.mark.parametrize(
    ("jaccard", "reading"),
    [(0.75, "stable"), (0.749, "uncertain"), (0.6, "uncertain"), (0.599, "doubtful")],
)
def test_reading_of_the_jaccard_index(jaccard, reading):
    assert jaccard_reading(jaccard) == reading
    assert jaccard_reading(None) == "not known"


def test_clusters_that_are_not_significant_are_marked_everywhere(noise):
    assert clusters_note(noise) == "clusters not significant"
    title = result_content(noise, values=result_data(noise)["values"])["title"]
    assert title == "30 samples in 3 clusters; clusters not significant"
    section = confidence_section(noise)
    assert section.significance[0] == "The 3 clusters of the result are not significant."
    for name in ("dendrogram", "silhouettes", "consensus"):
        text = PICTURES[name].draw(noise).get_title(loc="left")
        assert "clusters not significant" in " ".join(text.split())
    for name in ("heatmap", "markers"):
        figure = PICTURES[name].draw(noise)
        titles = [figure.get_suptitle(), *(ax.get_title(loc="left") for ax in figure.axes)]
        assert "clusters not significant" in " ".join(" ".join(titles).split())


def test_significant_clusters_are_not_marked(separated):
    assert clusters_note(separated) == ""
    assert "significant" not in PICTURES["dendrogram"].draw(separated).get_title(loc="left")


def test_clusters_without_support_are_marked(separated):
    unsupported = replace(separated, about=separated.about | {"supported": False})
    assert clusters_note(unsupported) == "clusters not supported by held-out features"
    title = " ".join(PICTURES["dendrogram"].draw(unsupported).get_title(loc="left").split())
    assert title.count("not supported by held-out features") == 1


def test_the_dendrogram_of_a_result_shows_p_values_and_support(separated):
    texts = [text.get_text() for text in PICTURES["dendrogram"].draw(separated).texts]
    assert texts[0] == "p < 0.001"
    assert any(text.endswith("%") for text in texts)


def test_a_result_with_stability_alone(only_stability, plain):
    section = confidence_section(only_stability)
    assert section.significance == []
    assert section.splits is None
    assert section.clusters is not None
    data = result_data(only_stability)
    assert data["samples"]["significant"] is None
    assert data["features"]["frequency"] == [1.0] * 12
    assert 'id="significant-clusters"' not in result_report(only_stability)
    assert PICTURES["consensus"].applies(only_stability)
    assert not PICTURES["consensus"].applies(plain)


def test_a_consensus_of_many_samples_is_left_out_with_a_sentence(separated, monkeypatch):
    for module in ("confidence_section", "page_data"):
        monkeypatch.setattr(f"mrshc.report.{module}.MAX_CONSENSUS_SAMPLES", 29)
    section = confidence_section(separated)
    assert section.consensus is None
    assert "more than 29 samples (30)" in section.omission
    assert result_data(separated)["consensus"] is None
    assert 'id="consensus"' not in result_report(separated)
    assert MAX_CONSENSUS_SAMPLES == 300


def test_the_verdict_mentions_the_significance(separated, plain):
    texts = [
        " ".join(result_content(r, values=result_data(r)["values"])["answer"].sentences)
        for r in (separated, plain)
    ]
    assert "only the tests of the splits compare them with chance" in texts[0]
    assert "nothing in this result tests them against chance" in texts[1]
