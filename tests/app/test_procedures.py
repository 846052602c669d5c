"""Settings that `mrshc cluster` uses if the user does not give them."""

import pytest

from mrshc.app.procedures import complete_procedure


@pytest.mark.parametrize(
    ("method", "linkage"),
    [("shc", "complete"), ("hc", "complete"), ("hmv", "complete"), ("cosa", "average")],
)
def test_other_methods_have_the_linkage_of_their_estimator(method, linkage):
    _, parameters, sentence = complete_procedure(method, {"linkage": None}, paper=False)
    assert parameters["linkage"] == linkage
    assert sentence == f"Method: {method}, {linkage} linkage."
    _, given, _ = complete_procedure(method, {"linkage": "single"}, paper=False)
    assert given["linkage"] == "single"


def test_no_metric_means_squared_euclidean_distances():
    for metric, linkage in ((None, "ward"), ("sqeuclidean", "ward"), ("cityblock", "complete")):
        _, parameters, _ = complete_procedure(None, {"metric": metric}, paper=False)
        assert parameters["linkage"] == linkage
