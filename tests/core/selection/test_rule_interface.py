import numpy as np
import pytest

from mrshc.core.selection.rule_interface import SelectionRule


class PlainRule(SelectionRule):
    """A rule that defines only the methods that every rule must define."""

    name, summary, description = "plain", "", ""

    def task(self, matrix, features, settings):
        raise NotImplementedError

    def candidate(self, target, features, evaluation, *, n_clusters, refined):
        raise NotImplementedError

    def choose(self, table):
        raise NotImplementedError

    def explain(self, table):
        raise NotImplementedError


def test_a_rule_needs_no_reference_number_cuts_or_scores_by_default():
    rule = PlainRule()
    assert rule.n_cuts(n_clusters=3, n_samples=20) is None
    assert rule.reference_cells([(2, 1), (4, 1)], [1]) == []
    assert rule.reference_number_of_clusters({}) is None
    evaluations = {(2, 1): object()}
    assert rule.score_together(object(), {}, evaluations) is evaluations
    assert rule.columns == rule.cut_scores == ()


def test_a_rule_tries_the_numbers_of_the_paper_and_does_not_refine_by_default():
    rule = PlainRule()
    assert rule.default_targets(500) is None
    assert rule.default_ranks(4) == (1, 2, 3, 4)
    assert not rule.refines_candidates
    assert rule.n_continued is None


def test_a_rule_has_no_sentences_about_scores_by_default():
    rule = PlainRule()
    assert rule.score_sentence({"rank": 1}) is None
    assert rule.facts({"rank": 1}) == []
    assert rule.runner_up_sentence({"chosen": np.array([True, False])}, 2) == ""


@pytest.mark.parametrize(
    ("found", "asked_for", "finding"),
    [
        (1, None, "The gap statistic finds a single cluster, whatever the features."),
        (2, None, "The gap statistic finds only 2 clusters, whatever the features."),
        (1, 3, "The gap statistic finds a single cluster, not the 3 clusters asked for."),
        (2, 5, "The gap statistic finds only 2 of the 5 clusters asked for."),
    ],
)
def test_a_shortfall_is_described_with_the_number_that_was_asked_for(found, asked_for, finding):
    labels = "labels_ holds no more" if asked_for is None else f"labels_ has all {asked_for}"
    assert PlainRule().shortfall_message(found, asked_for) == (finding, labels)
