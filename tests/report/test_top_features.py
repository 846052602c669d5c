"""The summary names the features that differ most between clusters of at least three samples."""

import numpy as np
import pandas as pd
import pytest

from mrshc.app import fit, make_plan
from mrshc.io import Table
from mrshc.report.top_features import top_features_sentence

FEATURES = [f"g{j}" for j in range(6)]


def make_result(n_clusters, *, is_extreme=True):
    """Return a result in which g0 and g1 differ between two groups, and g5 in the last sample."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21, 6))
    X[:10, 0] += 9
    X[:10, 1] += 7
    if is_extreme:
        X[20, 5] = 60
    samples = [f"s{i}" for i in range(21)]
    table = Table(
        X=X,
        sample_names=np.array(samples, dtype=object),
        feature_names=np.array(FEATURES, dtype=object),
        sample_annotations=pd.DataFrame(index=samples),
        feature_annotations=pd.DataFrame(index=FEATURES),
        source="a test",
        notes=(),
    )
    parameters = {"n_features_to_select": 6, "n_clusters": n_clusters}
    return fit(make_plan(table, method="hmv", parameters=parameters))


def test_a_cluster_of_one_sample_does_not_determine_the_features():
    result = make_result(3)
    assert sorted(result.about["cluster_sizes"]) == [1, 10, 10]
    assert result.features.index[0] == "g5"
    assert top_features_sentence(result).startswith(
        "Selected features with the largest differences between the clusters of at least 3 "
        "samples: g1, g0, "
    )


@pytest.mark.parametrize(("n_clusters", "is_extreme"), [(2, True), (2, False)])
def test_otherwise_the_features_are_the_first_of_the_table(n_clusters, is_extreme):
    """With one large cluster, there is nothing to compare it with but the small one."""
    result = make_result(n_clusters, is_extreme=is_extreme)
    assert (min(result.about["cluster_sizes"]) == 1) == is_extreme
    names = ", ".join(result.features.index)
    assert top_features_sentence(result) == (
        f"Selected features with the largest differences between the clusters: {names}."
    )


def test_the_order_is_that_of_the_effect_sizes_of_the_larger_clusters():
    result = make_result(3)
    large = np.isin(result.labels_ + 1, result.ranked_clusters)
    X, labels = result.selected[large], result.labels_[large]
    between = sum(
        (labels == k).sum() * (X[labels == k].mean() - X.mean()) ** 2 for k in np.unique(labels)
    )
    effects = between / ((X - X.mean()) ** 2).sum()
    names = effects.sort_values(ascending=False).index
    assert top_features_sentence(result).endswith(f": {', '.join(names)}.")


def test_a_single_cluster_has_no_differences():
    assert top_features_sentence(make_result(1)) is None
