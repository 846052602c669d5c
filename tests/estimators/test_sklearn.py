"""The estimators behave as scikit-learn, joblib and pickle expect."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from mrshc.datasets import make_simulation_1
from mrshc.estimators import (
    COSA,
    SHC,
    AssociationHC,
    HighVarianceHC,
    MrSHC,
    SparseKMeans,
)

# Much of what is fitted here has no clusters, or only five reference samples to see them by.
pytestmark = pytest.mark.filterwarnings("ignore::mrshc.estimators.UnsupportedClustersWarning")

X = np.ascontiguousarray(make_simulation_1(0, mu=2.0).X[:, 40:70])  # ten useful features
MODELS = [
    MrSHC([5, 10], n_references=5, max_rank=2, random_state=0),
    AssociationHC(),
    SHC([5, 10], n_permutations=2, n_clusters=2, random_state=0),
    COSA(n_clusters=2),
    HighVarianceHC(5, n_clusters=2),
    SparseKMeans(2, l1_bound=[2.0, 3.0], n_permutations=2, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)

ONE_CLUSTER = dict.fromkeys(
    (
        "check_dont_overwrite_parameters",
        "check_fit2d_predict1d",
        "check_methods_subset_invariance",
    ),
    "the check asks for one cluster; at least two are needed",
)
NO_DISTANCE = {"check_estimators_pickle": "it leaves samples without a common feature: no distance"}
EXPECTED_FAILURES = {
    "MrSHC": ONE_CLUSTER,
    "AssociationHC": ONE_CLUSTER,
    "SparseKMeans": ONE_CLUSTER,
    "SHC": NO_DISTANCE,
    "COSA": NO_DISTANCE,
    "HighVarianceHC": NO_DISTANCE,
}


@parametrize_with_checks(
    [
        MrSHC(n_references=5, max_rank=2),
        AssociationHC(),
        SHC(n_permutations=2, n_clusters=2),
        SHC(penalty="ssl", spike_penalty=[2.0, 20.0], n_permutations=2, n_clusters=2),
        COSA(n_clusters=2),
        HighVarianceHC(1, n_clusters=2),
        SparseKMeans(2, n_permutations=2),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[type(estimator).__name__],
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def fingerprint(model):
    """Return what a fit found."""
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    return {k: v for k, v in fitted.items() if k not in ("feature_names_in_", "sample_names_in_")}


def assert_same(one, other, rtol=0.0):
    found, expected = fingerprint(one), fingerprint(other)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        pairs = [(found[name], value)]
        if isinstance(value, dict):
            pairs = [(found[name][key], value[key]) for key in value]
        for a, b in pairs:
            for x, y in zip(np.atleast_1d(a), np.atleast_1d(b), strict=True):
                if y is not None:
                    np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol, err_msg=name)


@every_model
def test_copies_and_pickles_find_the_same_without_holding_the_data(model):
    fitted = clone(model).fit(X)
    assert_same(clone(fitted).fit(X), fitted)
    content = pickle.dumps(fitted)
    again = pickle.loads(content)
    assert_same(again, fitted)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    if not isinstance(model, COSA | SHC):  # which hold dissimilarities or weights of all pairs
        assert len(content) < X.nbytes + 40_000
    np.testing.assert_array_equal(clone(model).fit_predict(X), fitted.labels_)


@every_model
def test_pipelines_names_and_tags(model):
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(30)])
    pipeline = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas")
    selected = pipeline.fit_transform(frame)
    step = pipeline[-1]
    assert list(selected.columns) == [f"g{j}" for j in step.get_support(indices=True)]
    assert list(selected.columns) == list(step.get_feature_names_out())
    assert get_tags(model).input_tags.sparse
    assert get_tags(model).input_tags.allow_nan == (not isinstance(model, SparseKMeans))
    plain = clone(model).fit(X)
    np.testing.assert_array_equal(plain.transform(X), X[:, plain.get_support()])
    assert plain.n_features_selected_ == plain.get_support().sum()
    with pytest.raises(ValueError, match="30 features"):
        plain.transform(X[:, :20])


@every_model
def test_the_number_and_the_kind_of_workers_do_not_matter(model):
    expected = clone(model).fit(X)
    with joblib.parallel_config("threading", n_jobs=2):
        assert_same(clone(model).fit(X), expected)
    if "n_jobs" in model.get_params():
        assert_same(clone(model).set_params(n_jobs=2).fit(X), expected)
    with ThreadPoolExecutor(2) as pool:
        for fitted in pool.map(lambda m: m.fit(X), [clone(model), clone(model)]):
            assert_same(fitted, expected)


@every_model
@pytest.mark.parametrize(
    "convert",
    [
        lambda A: A.tolist(),
        np.asfortranarray,
        pd.DataFrame,
        lambda A: pl.DataFrame(A, schema=[f"g{j}" for j in range(A.shape[1])]),
        lambda A: np.repeat(A, 2, axis=0)[::2],
        lambda A: np.ma.masked_array(A, mask=np.zeros(A.shape, bool)),
        lambda A: pd.DataFrame(A).astype(object),
    ],
)
def test_the_kind_of_the_array_does_not_matter(model, convert):
    before = X.copy()
    # The order of the values in memory changes the rounding of sums.
    assert_same(clone(model).fit(convert(X)), clone(model).fit(X), rtol=1e-9)
    np.testing.assert_array_equal(X, before)
