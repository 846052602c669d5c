"""Sentences on significance and stability state what was computed, and what to conclude."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mrshc.app import confidence_warnings, result_summary
from mrshc.report.confidence_sentences import confidence_sentences, format_p_value
from mrshc.report.sentences import verdict_sentence
from tiny import tiny_result


@pytest.fixture(scope="module")
def plain():
    """Return a result with two clusters, without significance and stability."""
    result = tiny_result(n_clusters=2)
    assert result.n_clusters_ == 2
    return result


def in_one_cluster(result):
    chosen = result.about["chosen"] | {"n_clusters": 1}
    return replace(result, about=result.about | {"chosen": chosen})


def with_significance(result, *, n_clusters, p_values, left_out=0, agreements=()):
    """Return a result with the tests of the first nodes from the root downwards."""
    n = len(result.samples)
    column = pd.array([*p_values, *[np.nan] * (n - 1 - len(p_values))], dtype=float)
    agreement = pd.array([*agreements, *[np.nan] * (n - 1 - len(agreements))], dtype=float)
    significant = pd.array([p < 0.05 if p == p else pd.NA for p in column], dtype="boolean")
    clusters = pd.array([pd.NA] * left_out + [1] * (n - left_out), dtype="Int64")
    entry = {"alpha": 0.05, "n_simulations": 100, "statistic": "s", "n_clusters": n_clusters}
    return replace(
        result,
        about=result.about | {"significance": entry},
        samples=result.samples.assign(significant_cluster=clusters),
        branches=pd.DataFrame(
            {"p_value": column, "significant": significant, "agreement": agreement}
        ),
    )


def with_stability(result, jaccard, frequencies=0.5):
    entry = {"n_resamples": 50, "fraction": 0.8, "cluster_jaccard": jaccard}
    return replace(
        result,
        about=result.about | {"stability": entry},
        features=result.features.assign(selection_frequency=frequencies),
    )


def test_nothing_is_stated_that_was_not_computed(plain):
    assert confidence_sentences(plain) == []
    assert confidence_warnings(plain) == []


def test_significant_clusters(plain):
    result = with_significance(plain, n_clusters=2, p_values=[0.00123, 0.4])
    (sentence,) = confidence_sentences(result)
    start = "Significance: there are 2 significant clusters at the level 0.05; the p-value of the"
    assert sentence.startswith(f"{start} first split is 0.0012. The samples are not one Gaussian")
    assert sentence in result_summary(result)
    assert confidence_warnings(result) == []


def test_the_verdict_mentions_the_test(plain):
    result = with_significance(plain, n_clusters=2, p_values=[0.001])
    assert "nothing in this result tests them against chance" in verdict_sentence(plain)
    assert "only the tests of the splits compare them with chance" in verdict_sentence(result)


def test_the_verdict_on_supported_clusters_mentions_that_their_number_is_untested(plain):
    supported = replace(plain, about=plain.about | {"supported": True, "n_associated": 40})
    tested = with_significance(supported, n_clusters=2, p_values=[0.001])
    limit = " The number of clusters is not tested."
    assert verdict_sentence(supported) == verdict_sentence(tested) + limit


@pytest.mark.parametrize(
    ("agreements", "start"),
    [
        ([1.0, 0.5, 0.1], None),  # the third split is not significant
        ([1.0, 0.49, 0.1], "1 significant split differs from that of the tree"),
        ([0.2, -0.1, 0.1], "2 significant splits differ from those of the tree"),
    ],
)
def test_significant_splits_that_differ_from_the_tree_are_counted(plain, agreements, start):
    result = with_significance(
        plain, n_clusters=2, p_values=[0.001, 0.01, 0.5], agreements=agreements
    )
    found = [text for text in confidence_sentences(result) if "need not be these groups" in text]
    assert [text.startswith(start) for text in found] == ([] if start is None else [True])


def test_the_first_tested_split_need_not_be_the_root(plain):
    result = with_significance(plain, n_clusters=2, p_values=[np.nan, 0.01])
    assert "the p-value of the first split is 0.01." in confidence_sentences(result)[0]


def test_another_number_of_clusters_is_mentioned(plain):
    result = with_significance(plain, n_clusters=3, p_values=[0.001])
    assert confidence_sentences(result)[1] == (
        "The tree was cut into 2 clusters, and its significant splits divide it into 3: see the "
        "column significant_cluster of clusters.csv."
    )


@pytest.mark.parametrize(
    ("left_out", "start"), [(1, "1 sample is in no"), (2, "2 samples are in no")]
)
def test_samples_in_no_cluster_are_counted(plain, left_out, start):
    result = with_significance(plain, n_clusters=2, p_values=[0.001], left_out=left_out)
    assert confidence_sentences(result)[1].startswith(f"{start} significant cluster, because")


def test_advice_if_nothing_is_significant(plain):
    result = with_significance(plain, n_clusters=1, p_values=[0.31])
    (sentence,) = confidence_sentences(result)
    start = "Significance: no split is significant at the level 0.05; the p-value of the first"
    assert sentence.startswith(f"{start} split is 0.31. Data without clusters can give splits as")
    assert "Do not regard the clusters as real groups unless other evidence" in sentence
    assert confidence_warnings(result) == [sentence]


def test_a_single_cluster_needs_no_warning(plain):
    result = with_significance(in_one_cluster(plain), n_clusters=1, p_values=[0.31])
    (sentence,) = confidence_sentences(result)
    assert "Do not regard" not in sentence
    assert sentence.endswith("small or weak ones need more samples.")
    assert confidence_warnings(result) == []


def test_trees_without_a_split_that_can_be_tested(plain):
    result = with_significance(plain, n_clusters=1, p_values=[])
    assert confidence_sentences(result) == [
        "Significance: no split could be tested. A test needs at least 10 samples, with at least "
        "4 in both branches."
    ]


@pytest.mark.parametrize(
    ("jaccard", "verdict"),
    [
        ([0.75, 0.991], "All clusters are stable (at least 0.75). Stable clusters need not be"),
        ([0.7, 0.9], "Clusters of at least 0.75 are stable; the others are uncertain. Stable"),
        ([None, 0.9], "Clusters of at least 0.75 are stable; the others are uncertain. Stable"),
        ([0.9, 0.59], "Below 0.6, a cluster depends on single samples and should not be"),
    ],
)
def test_jaccard_indices(plain, jaccard, verdict):
    first, second, _ = confidence_sentences(with_stability(plain, jaccard))
    shown = ["unknown" if index is None else f"{index:.2f}" for index in jaccard]
    assert first == (
        "Stability: Jaccard index of each cluster in 50 subsamples of 80% of the samples: "
        f"1 ({shown[0]}), 2 ({shown[1]})."
    )
    assert second.startswith(verdict)
    assert ("interpreted: cluster 2." in second) == (jaccard == [0.9, 0.59])


def test_the_mean_frequency_is_that_of_the_selected_features(plain):
    frequencies = np.where(plain.features["selected"], 0.75, 0.1)
    *_, last = confidence_sentences(with_stability(plain, [0.9, 0.9], frequencies))
    assert last == "On average, a selected feature is selected in 75% of the subsamples."


def test_a_single_cluster_has_no_jaccard_index(plain):
    result = with_stability(in_one_cluster(plain), [None])
    first, _ = confidence_sentences(result)
    assert first.startswith("Stability: the Jaccard index is not defined")


@pytest.mark.parametrize(
    ("p_value", "text"),
    [(0.0, "below 0.0001"), (9e-5, "below 0.0001"), (1e-4, "0.0001"), (0.456, "0.46"), (1, "1")],
)
def test_small_p_values_are_bounds(p_value, text):
    assert format_p_value(p_value) == text
