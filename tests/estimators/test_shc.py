"""SHC: attributes, candidates, the permutation gap, complements and parameters."""

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.metrics import rand_score

from mrshc.datasets import make_section2_example, make_simulation_1
from mrshc.estimators import SHC

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others


@pytest.mark.parametrize("options", [{}, {"penalty": "ssl", "spike_penalty": 150.0}])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_an_easy_problem_is_solved(options, share):
    X = np.where(np.random.default_rng(0).random(EASY.X.shape) < share, np.nan, EASY.X)
    model = SHC(None if options else 50, n_clusters=3, **options).fit(X)
    np.testing.assert_array_equal(model.get_support(), EASY.support)
    assert rand_score(model.labels_, EASY.labels) == 1
    assert np.linalg.norm(model.feature_weights_) == pytest.approx(1)
    assert np.linalg.norm(model.dissimilarity_) == pytest.approx(1)
    assert model.converged_
    assert 1 <= model.n_iter_ <= 15
    assert hasattr(model, "spike_penalty_") == bool(options)
    assert hasattr(model, "l1_bound_") == (not options)
    condensed = squareform(model.dissimilarity_, checks=False)
    np.testing.assert_allclose(model.linkage_matrix_, scipy_linkage(condensed, "complete"))
    np.testing.assert_array_equal(model.sample_distances(X), model.dissimilarity_)
    if not options:
        assert model.feature_weights_.sum() == pytest.approx(model.l1_bound_)
    # Attributes of a fit with the other penalty do not remain.
    other = {"penalty": "l1", "spike_penalty": None, "l1_bound": 3.0, "n_features_to_select": None}
    if not options:
        other = {"penalty": "ssl", "spike_penalty": 9.0, "n_features_to_select": None}
    model.set_params(**other).fit(X)
    assert hasattr(model, "l1_bound_") == bool(options)
    assert hasattr(model, "spike_penalty_") == (not options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "l1_bound"),
        ({"l1_bound": "auto"}, "l1_bound"),
        ({"l1_bound": [1.5, 4.0]}, "l1_bound"),
        ({"n_features_to_select": [5, 10]}, "l1_bound"),
        ({"penalty": "ssl", "spike_penalty": [5.0, 60.0]}, "spike_penalty"),
        ({"penalty": "ssl"}, "spike_penalty"),
    ],
)
def test_the_candidate_with_the_largest_gap_is_chosen(options, name):
    model = SHC(**options, random_state=0, n_permutations=3).fit(SMALL)
    results = model.search_results_
    (chosen,) = np.flatnonzero(results["chosen"])
    assert chosen == results["gap"].argmax()
    assert results["n_features"][chosen] == model.n_features_selected_
    assert results["criterion"][chosen] == model.criterion_
    assert results[name][chosen] == getattr(model, f"{name}_")
    assert (results["gap_sd"] > 0).all()
    counts = (
        ["n_features_target", "reached"] if name == "l1_bound" and "l1_bound" not in options else []
    )
    expected = [name, "n_features", "criterion", "chosen", *counts, "gap", "gap_sd"]
    assert list(results) == expected
    if options.get("l1_bound") == "auto":
        np.testing.assert_allclose(results[name], np.linspace(1.1, 0.7 * np.sqrt(30), 10))
    if options == {"penalty": "ssl"}:
        assert (results[name].size, results[name][0]) == (100, 1.0)
    other = clone(model).set_params(random_state=1).fit(SMALL)
    np.testing.assert_array_equal(other.search_results_["criterion"], results["criterion"])
    assert np.any(other.search_results_["gap"] != results["gap"])


@pytest.mark.parametrize(
    "options", [{"l1_bound": 1.2}, {"penalty": "ssl", "spike_penalty": 1000.0}]
)
def test_complements_are_orthogonal_and_say_something_else(options):
    X = pd.DataFrame(make_section2_example(0).X[:, :4], index=[f"s{i}" for i in range(20)])
    first = SHC(**options).fit(X)
    earlier = first.dissimilarity_
    second = SHC(**options, complement_of=earlier).fit(X)
    assert np.sum(earlier * second.dissimilarity_) == pytest.approx(0, abs=1e-12)
    assert np.all(second.distances_ >= 0)
    assert not np.array_equal(first.get_support(), second.get_support())
    # A table of the earlier solution is matched to the samples by its names.
    table = (
        pd.DataFrame(earlier, index=X.index, columns=X.index)
        .iloc[::-1, 3:]
        .join(pd.DataFrame(earlier[:, :3], index=X.index, columns=X.index[:3]))
    )
    again = SHC(**options, complement_of=table).fit(X)
    np.testing.assert_array_equal(again.dissimilarity_, second.dissimilarity_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features_to_select": 5, "l1_bound": 2.0}, "or l1_bound, not both, got 5 and 2.0"),
        ({"l1_bound": 0.5}, r"l1_bound must be a number in \[1, 5.47723\], got 0.5"),
        ({"l1_bound": [2.0, 9.0]}, "l1_bound must be a number in"),
        ({"n_features_to_select": 31}, r"in \[1, 30\], got 31"),
        ({"l1_bound": []}, "at least one number, got an empty sequence"),
        ({"l1_bound": "foo"}, "l1_bound must be a number in .* got 'foo'"),
        ({"complement_of": np.ones((60, 60)) - np.eye(60)}, "complement_of needs one n_features"),
        ({"n_permutations": 1}, r"n_permutations must be a whole number in \[2, 1000000\]"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": -1}, "tol must be a number at least 0"),
        ({"penalty": "l2"}, "penalty must be one of 'l1', 'ssl', got 'l2'"),
        ({"spike_penalty": 3.0}, "spike_penalty has an effect only if penalty='ssl', got 3.0"),
        (
            {"penalty": "ssl", "n_features_to_select": 5},
            "n_features_to_select has an effect only if penalty is not 'ssl', got 5",
        ),
        ({"penalty": "ssl", "l1_bound": "auto"}, "l1_bound has an effect only if penalty is not"),
        ({"slab_penalty": 2.0}, "slab_penalty has an effect only if penalty='ssl', got 2.0"),
        ({"penalty": "ssl", "slab_penalty": 0}, "slab_penalty must be a number in"),
        ({"penalty": "ssl", "spike_penalty": 0.5}, r"spike_penalty must be a number in \[1, "),
        ({"penalty": "ssl", "spike_penalty": []}, "at least one number, got an empty sequence"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"linkage": "mean"}, "linkage must be one of"),
        ({"metric": "correlation"}, "metric must be one of 'sqeuclidean', 'cityblock'"),
        (
            {"metric": "cityblock", "linkage": "ward"},
            "linkage='ward' is defined for metric='sqeuclidean' only",
        ),
        *[
            ({"n_features_to_select": 5, "complement_of": value}, "of shape .60, 60., got shape")
            for value in (
                np.zeros((60, 60)),
                np.ones((3, 3)),
                np.ones((60, 60)),
                np.triu(np.ones((60, 60)), 1),
                np.full((60, 60), np.nan),
            )
        ],
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SHC(**options).fit(SMALL)


def test_samples_with_nothing_in_common_are_refused():
    X = SMALL[:4].copy()
    X[1, :15], X[3, 15:] = np.nan, np.nan
    with pytest.raises(ValueError, match="samples 1 and 3 have none in common"):
        SHC(5).fit(X)
