"""The search agrees with the plainest implementation of the method of the paper."""

import numpy as np
import pytest

import plain_twin
from mrshc.core.gap import _FIRST_LOOK
from mrshc.estimators import MrSHC
from mrshc.validation import draw_seed

pytestmark = pytest.mark.filterwarnings("ignore::mrshc.estimators.UnsupportedClustersWarning")


def clusters(seed, n=24, p=30, k=3, q=9, shift=3.0):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, p)), np.arange(n) * k // n
    for c in range(k):
        X[labels == c, c * q // k : (c + 1) * q // k] += shift
    return X


CASES = {
    "three clusters": (clusters(0), {}),
    "K is known": (clusters(1), {"n_clusters": 3}),
    "more clusters than supported": (clusters(2), {"n_clusters": 7}),
    "weak clusters": (clusters(3, shift=1.5), {}),
    "noise": (clusters(4, shift=0.0), {}),
    "four clusters": (clusters(5, n=28, k=4, q=16, p=40), {}),
    "one q": (clusters(6), {"n_features_to_select": 6}),
    "one rank": (clusters(7), {"rank": 2}),
    "many ranks": (clusters(8), {"max_rank": 5}),
    "few samples": (clusters(9, n=7, k=2, shift=5.0), {}),
    "four samples": (clusters(10, n=4, k=2, shift=9.0), {}),
    "more samples than features": (clusters(11, n=30, p=10), {}),
    "integers": (np.round(clusters(12)), {}),
    "city-block distances": (clusters(13), {"metric": "cityblock"}),
    "correlations": (clusters(14, shift=4.0), {"metric": "correlation"}),
    "correlations, K is known": (clusters(15), {"metric": "correlation", "n_clusters": 3}),
}
for _linkage in ("single", "average", "weighted", "ward", "centroid", "median"):
    CASES[_linkage] = (clusters(16), {"linkage": _linkage})


@pytest.mark.parametrize("name", CASES)
def test_features_tree_and_clusters_are_those_of_the_plain_twin(name):
    X, options = CASES[name]
    options = {"n_features_to_select": [3, 6, 9], "max_rank": 3} | options
    B = _FIRST_LOOK  # so that all reference samples are drawn
    model = MrSHC(**options, n_references=B, random_state=5).fit(X)
    targets = np.atleast_1d(options["n_features_to_select"]).tolist()
    last = min(options["max_rank"], len(X) - 1, X.shape[1])
    ranks = [options["rank"]] if "rank" in options else list(range(1, last + 1))
    q, rank, K, features, labels = plain_twin.mrshc(
        X,
        targets,
        ranks,
        options.get("n_clusters"),
        linkage=options.get("linkage", "complete"),
        metric=options.get("metric", "sqeuclidean"),
        B=B,
        entropy=draw_seed(5),
    )
    (chosen,) = np.flatnonzero(model.search_results_["chosen"])
    assert model.search_results_["n_features_target"][chosen] == q
    assert model.rank_ == rank
    np.testing.assert_array_equal(model.get_support(indices=True), features)
    assert len(set(zip(model.labels_, labels, strict=True))) == len(set(labels))
    assert model.n_clusters_ == labels.max() + 1
    assert model.n_clusters_ <= K
