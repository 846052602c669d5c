import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.impute import KNNImputer
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mrshc import HighVarianceHC
from mrshc.metrics import classification_error_rate
from mrshc.preprocessing import (
    CountsPerMillion,
    Log2,
    LowCountFilter,
    NeighborImputer,
    RangeFilter,
    SizeFactors,
    Standardize,
    Thresholds,
    VarianceFilter,
    chain,
    prepare,
)
from mrshc.preprocessing.chains import PRESETS

DATA = Path(os.environ.get("MRSHC_DATA", Path(__file__).parents[2] / "shared" / "data"))

STEPS = [
    Thresholds(-1.0, 1.0),
    RangeFilter(min_difference=0.1),
    Log2(pseudocount=1.0),
    Standardize("samples"),
    Standardize("features"),
    Standardize("both"),
    VarianceFilter(1),
    NeighborImputer(2),
    NeighborImputer(2, "samples"),
    LowCountFilter(0.0, 1),
    CountsPerMillion(),
    SizeFactors(),
]


def load(name):
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs the data set {path.name}; set MRSHC_DATA to the folder that has it")
    with np.load(path, allow_pickle=False) as content:
        return {key: content[key] for key in content.files}


def with_holes(shape, *, share, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    X[rng.random(shape) < share] = np.nan
    return X


# What all steps do --------------------------------------------------------------------------


OTHER_WORDS = {
    "check_positive_only_tag_during_fit": "wants the words 'Negative values in data'; ours say "
    "how many values are not positive, in which feature, and what to do"
}
SPARSE = ["check_estimator_sparse_tag", "check_estimator_sparse_array"]
SPARSE += ["check_estimator_sparse_matrix"]
NO_COUNTS = "uses data in which all counts of a sample, or some counts of each feature, are 0"
EXPECTED_FAILURES = {
    "Log2": OTHER_WORDS,
    "LowCountFilter": OTHER_WORDS,
    "CountsPerMillion": OTHER_WORDS
    | dict.fromkeys(["check_estimators_dtypes", "check_fit2d_1feature", *SPARSE], NO_COUNTS),
    "SizeFactors": OTHER_WORDS
    | dict.fromkeys(
        ["check_estimators_dtypes", "check_fit2d_1feature", "check_estimators_pickle", *SPARSE],
        NO_COUNTS,
    ),
}


@parametrize_with_checks(
    STEPS,
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_input_is_left_alone_and_keeps_its_precision(step, dtype):
    X = np.abs(with_holes((12, 6), share=0.2)).astype(dtype)
    before = X.copy()
    out = step.fit_transform(X)
    np.testing.assert_array_equal(X, before)
    assert out.dtype == dtype
    assert not np.shares_memory(out, X)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_missing_values_stay_missing_unless_they_are_imputed(step):
    X = np.abs(with_holes((12, 6), share=0.2))
    out = step.fit_transform(X)
    kept = step.get_support() if hasattr(step, "get_support") else slice(None)
    wanted = np.isnan(X[:, kept]) & (not isinstance(step, NeighborImputer))
    np.testing.assert_array_equal(np.isnan(out), wanted)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_tables_come_out_as_tables_with_their_names(step):
    names = ["a", "b", "c", "d"]
    table = pd.DataFrame(np.abs(with_holes((12, 4), share=0.1)), columns=names)
    out = step.set_output(transform="pandas").fit_transform(table)
    step.set_output(transform="default")
    assert list(out.columns) == list(step.get_feature_names_out())
    assert set(out.columns) <= set(names)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_infinity_is_refused(step):
    with pytest.raises(ValueError, match="X must be finite, but holds inf"):
        step.fit([[1.0, np.inf, 2.0], [1.0, 2.0, 3.0]])


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_input_is_validated_as_by_estimators(step):
    X = np.abs(with_holes((12, 4), share=0.1))
    masked = np.ma.masked_array(np.where(np.isnan(X), 7.0, X), mask=np.isnan(X))
    np.testing.assert_array_equal(step.fit_transform(masked), step.fit_transform(X))
    dates = pd.DataFrame(X).assign(day=pd.to_datetime("2020-01-01"))
    with pytest.raises(ValueError, match="feature 'day' holds dates or times"):
        step.fit(dates)
    with pytest.raises(ValueError, match="feature 'note' holds the text 'high'"):
        step.fit(pd.DataFrame(X).assign(note="high"))
    with pytest.warns(UserWarning, match=r"above 2\^53 they are rounded"), suppress(ValueError):
        step.fit(np.full((12, 4), 2**62))


# Thresholds, ranges, logarithms -------------------------------------------------------------


def test_thresholds_bound_the_values():
    X = [[-5.0, 50.0], [500.0, np.nan]]
    np.testing.assert_array_equal(Thresholds(0).fit_transform(X), [[0, 50], [500, np.nan]])
    np.testing.assert_array_equal(
        Thresholds(ceiling=100).fit_transform(X), [[-5, 50], [100, np.nan]]
    )
    np.testing.assert_array_equal(Thresholds().fit_transform(X), X)


def test_thresholds_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match=r"got 5 and 1\. Exchange them"):
        Thresholds(5, 1).fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"floor must be a number in .*, got 'low'"):
        Thresholds("low").fit([[1.0], [2.0]])


def test_ranges_must_be_exceeded_in_both_ways():
    low = np.array([100.0, 100.0, 100.0, 1000.0])
    high = np.array([600.0, 600.1, 500.0, 4000.0])  # ratios 6, 6.001, 5, 4
    X = np.vstack([low, np.full(4, np.nan), high])
    assert RangeFilter(5, 500).fit(X).get_support().tolist() == [False, True, False, False]
    assert RangeFilter(5).fit(X).get_support().tolist() == [True, True, False, False]
    assert RangeFilter(None, 400).fit(X).get_support().tolist() == [True, True, False, True]
    assert RangeFilter().fit(X).get_support().all()


def test_a_feature_without_observed_values_has_no_range():
    X = [[1.0, np.nan], [9.0, np.nan]]
    assert RangeFilter(2, 2).fit(X).get_support().tolist() == [True, False]


def test_a_ratio_of_values_that_are_not_positive_is_refused():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [-3.0, 4.0]})
    with pytest.raises(ValueError, match=r"feature 'b' is -3\. Raise it to a floor"):
        RangeFilter(5).fit(table)
    with pytest.raises(ValueError, match="feature 1 is -3"):
        RangeFilter(5).fit(table.to_numpy())


def test_logarithms_are_to_base_two():
    X = np.array([[1.0, 1024.0], [np.nan, 0.5]])
    np.testing.assert_array_equal(Log2().fit_transform(X), [[0, 10], [np.nan, -1]])
    np.testing.assert_array_equal(Log2(7.0).fit_transform([[1.0], [57.0]]), [[3], [6]])


def test_logarithms_of_values_that_are_not_positive_are_refused():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [-3.0, 4.0], "c": [0.0, -1.0]})
    with pytest.raises(ValueError, match=r"3 values of X are not above 0 \(first in feature 'b'\)"):
        Log2().fit(table)
    with pytest.raises(ValueError, match=r"1 value of X is not above -1 \(first in feature 'b'\)"):
        Log2(1).fit(table.iloc[:, :2])
    fitted = Log2().fit(np.ones((2, 3)))
    with pytest.raises(ValueError, match="1 value of X is not above 0"):
        fitted.transform([[1.0, 0.0, 1.0]])


# Standardisation ----------------------------------------------------------------------------


@pytest.mark.parametrize(("over", "axis"), [("samples", 1), ("features", 0), ("both", 0)])
def test_observed_values_get_mean_zero_and_standard_deviation_one(over, axis):
    X = 1000 + with_holes((15, 40), share=0.1)
    out = Standardize(over).fit_transform(X)
    np.testing.assert_allclose(np.nanmean(out, axis=axis), 0, atol=1e-12)  # means round to 1e-13
    np.testing.assert_allclose(np.nanstd(out, axis=axis, ddof=1), 1, rtol=1e-12)


def test_both_is_samples_first_then_features():
    X = with_holes((15, 40), share=0.1)
    in_two = make_pipeline(Standardize("samples"), Standardize("features")).fit_transform(X)
    np.testing.assert_array_equal(Standardize("both").fit_transform(X), in_two)


def test_new_samples_are_measured_by_the_features_of_the_fit():
    X = with_holes((15, 6), share=0.0)
    ours = Standardize("features").fit(X[:10]).transform(X[10:])
    wanted = StandardScaler().fit(X[:10]).transform(X[10:]) * np.sqrt(9 / 10)
    np.testing.assert_allclose(ours, wanted)


@pytest.mark.parametrize("over", ["samples", "features", "both"])
def test_constant_samples_and_features_become_zero(over):
    X = np.full((7, 11), 0.1)  # the mean of seven or eleven of these is not 0.1 after rounding
    X[1, 2] = np.nan
    out = Standardize(over).fit_transform(X)
    np.testing.assert_array_equal(out, np.where(np.isnan(X), np.nan, 0.0))


def test_standardisation_of_something_else_is_refused():
    with pytest.raises(ValueError, match=r"over must be one of 'samples', .* got 'rows'"):
        Standardize("rows").fit([[1.0, 2.0]])


def test_the_lymphoma_samples_are_standardised_already():
    X = load("lymphoma")["X"]
    np.testing.assert_allclose(Standardize("samples").fit_transform(X), X, atol=1e-12)


# Variance -----------------------------------------------------------------------------------


def test_the_features_kept_are_those_that_high_variance_clustering_takes():
    X = with_holes((20, 50), share=0.0) * np.random.default_rng(1).random(50)
    support = VarianceFilter(7).fit(X).get_support()
    np.testing.assert_array_equal(support, HighVarianceHC(7).fit(X).get_support())


def test_variances_are_those_of_the_observed_values():
    X = 1e8 + with_holes((20, 30), share=0.3)
    variances = VarianceFilter(3).fit(X).variances_
    np.testing.assert_allclose(variances, np.nanvar(X, axis=0, ddof=1), rtol=1e-6)  # the offset


def test_of_equal_variances_the_first_are_kept_and_constants_last():
    column = np.array([0.0, 1.0, 2.0])
    empty = np.array([np.nan, np.nan, 5.0])
    X = np.column_stack([np.full(3, 0.1), empty, column, column + 5, column[::-1], 3 * column])
    wanted = {1: [5], 2: [2, 5], 3: [2, 3, 5], 4: [2, 3, 4, 5], 5: [0, 2, 3, 4, 5]}
    for q, kept in wanted.items():
        assert VarianceFilter(q).fit(X).get_support(indices=True).tolist() == kept


def test_more_features_than_there_are_cannot_be_kept():
    with pytest.raises(
        ValueError, match=r"n_features must be a whole number in \[1, 500\], got 620\. Lower it"
    ):
        VarianceFilter(620).fit(np.ones((3, 500)))


# Nearest neighbours -------------------------------------------------------------------------


def imputed_by_scikit_learn(X, k, over):
    imputer = KNNImputer(n_neighbors=k)
    return imputer.fit_transform(X.T).T if over == "features" else imputer.fit_transform(X)


@pytest.mark.parametrize("over", ["features", "samples"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_imputed_values_are_those_of_scikit_learn(over, share, k):
    X = with_holes((30, 90), share=share, seed=k) + 50
    ours = NeighborImputer(k, over).fit_transform(X)
    np.testing.assert_allclose(ours, imputed_by_scikit_learn(X, k, over), rtol=1e-10)


@pytest.mark.parametrize("over", ["features", "samples"])
def test_new_samples_are_imputed_from_the_data_of_the_fit(over):
    X, new = with_holes((30, 20), share=0.1), with_holes((6, 20), share=0.3, seed=1)
    imputer = NeighborImputer(4, over).fit(X)
    out = imputer.transform(new)
    one_by_one = np.vstack([imputer.transform(row[None]) for row in new])
    np.testing.assert_allclose(out, one_by_one, rtol=1e-12)
    if over == "samples":
        np.testing.assert_allclose(out, KNNImputer(n_neighbors=4).fit(X).transform(new))


def test_new_samples_borrow_from_the_features_nearest_in_the_fit():
    X, new = with_holes((30, 20), share=0.1), with_holes((6, 20), share=0.3, seed=1)
    out = NeighborImputer(4).fit(X).transform(new)
    distances = nan_euclidean_distances(X.T)
    for i, j in np.argwhere(np.isnan(new)):
        near = [m for m in np.argsort(distances[j]) if not np.isnan(new[i, m])][:4]
        assert out[i, j] == pytest.approx(new[i, near].mean())


@pytest.mark.parametrize("n_copies", [3, 200])  # fewer and more than are looked at first
def test_of_neighbours_equally_near_the_first_are_taken(n_copies):
    # Whole numbers are summed exactly, so that ties are ties; the last sample tells copies apart.
    first = np.array([0.0, 3.0, -3.0])
    copies = np.tile(first[:, None], n_copies) + np.resize([1, -1], n_copies)
    far = first[:, None] + np.arange(100.0, 9.0, -1.0)
    X = np.column_stack([far, first, copies])
    X = np.vstack([X, np.arange(float(X.shape[1]))])
    at = far.shape[1]
    X[-1, at] = np.nan
    assert NeighborImputer(2).fit_transform(X)[-1, at] == np.mean([at + 1, at + 2])


def test_data_changed_after_the_fit_do_not_change_the_answer():
    X, new = with_holes((30, 20), share=0.1), with_holes((6, 20), share=0.3, seed=1)
    imputer = NeighborImputer().fit(X)
    before = imputer.transform(new)
    X[:] = 0.0
    np.testing.assert_array_equal(imputer.transform(new), before)


@pytest.mark.parametrize("over", ["features", "samples"])
def test_without_a_cell_in_common_the_mean_is_taken(over):
    # The first feature is seen only where the others are not.
    X = np.array([[1.0, np.nan, np.nan], [np.nan, 2.0, 4.0], [np.nan, 3.0, 8.0]])
    X = X if over == "features" else X.T
    out = NeighborImputer(2, over).fit_transform(X)
    np.testing.assert_allclose(out, imputed_by_scikit_learn(X, 2, over))
    assert (out if over == "features" else out.T)[:, 0].tolist() == [1.0, 3.0, 5.5]


def test_pairs_without_a_cell_in_common_are_no_neighbours():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 80))
    X[:6, :60] = X[6:, 60:] = np.nan  # sixty features know nothing of twenty others
    X[7, 1] = X[2, 70] = np.nan
    X[6, 61] = X[0, 3] = 1.0  # two bridges
    for k in (5, 75):
        ours = NeighborImputer(k).fit_transform(X)
        np.testing.assert_allclose(ours, imputed_by_scikit_learn(X, k, "features"), rtol=1e-10)


@pytest.mark.parametrize("over", ["features", "samples"])
def test_complete_data_pass_unchanged(over):
    X = with_holes((10, 5), share=0.0)
    np.testing.assert_array_equal(NeighborImputer(over=over).fit_transform(X), X)


@pytest.mark.parametrize("over", ["features", "samples"])
def test_features_and_samples_with_nothing_observed_are_refused(over):
    table = pd.DataFrame(with_holes((6, 4), share=0.0), columns=list("abcd"))
    no_feature, no_sample = table.copy(), table.copy()
    no_feature[["b", "d"]] = np.nan
    no_sample.iloc[3] = np.nan
    imputer = NeighborImputer(over=over)
    with pytest.raises(ValueError, match="X has 2 features without one, first feature 'b'"):
        imputer.fit(no_feature)
    with pytest.raises(ValueError, match="X has 1 sample without one, first sample 3"):
        imputer.fit(no_sample)
    with pytest.raises(ValueError, match="without one, first sample 3"):
        imputer.fit(table).transform(no_sample)


def test_neighbours_must_be_counted():
    with pytest.raises(ValueError, match="n_neighbors must be a whole number at least 1, got 0"):
        NeighborImputer(0).fit(np.ones((2, 2)))
    with pytest.raises(ValueError, match="over must be one of 'features', 'samples', got 'genes'"):
        NeighborImputer(over="genes").fit(np.ones((2, 2)))


# Chains -------------------------------------------------------------------------------------


def test_a_chain_equals_a_pipeline_and_is_logged():
    X = 100 * np.exp2(with_holes((15, 40), share=0.1, seed=2) * 2)
    steps = [Thresholds(50, 1600), RangeFilter(5, 500), Log2(), NeighborImputer(3)]
    steps += [VarianceFilter(10), Standardize("samples")]
    prepared = prepare(X, steps)
    np.testing.assert_array_equal(prepared.X, make_pipeline(*steps).fit_transform(X))

    clipped = X.clip(50, 1600)
    ranges = np.nanmax(clipped, axis=0) / np.nanmin(clipped, axis=0) > 5
    ranges &= np.nanmax(clipped, axis=0) - np.nanmin(clipped, axis=0) > 500
    missing = int(np.isnan(X[:, ranges]).sum())
    assert [step.description for step in prepared.log] == [
        "floor 50, ceiling 1600",
        "max/min > 5 and max - min > 500",
        "log2",
        f"imputed {missing} missing values from the 3 nearest features",
        "the 10 features of highest variance",
        "samples standardised to mean 0 and standard deviation 1",
    ]
    left = [40, 40, int(ranges.sum()), int(ranges.sum()), int(ranges.sum()), 10, 10]
    assert [step.n_features_before for step in prepared.log] == left[:-1]
    assert [step.n_features_after for step in prepared.log] == left[1:]
    changed = [step.n_values_changed for step in prepared.log]
    assert changed[0] == np.sum((X < 50) | (X > 1600))
    assert changed[1] == changed[4] == 0
    assert changed[3] == missing


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (Thresholds(), "no thresholds"),
        (Thresholds(ceiling=1.5), "ceiling 1.5"),
        (RangeFilter(), "no condition on the range"),
        (RangeFilter(min_difference=3), "max - min > 3"),
        (Log2(1), "log2(x + 1)"),
        (Standardize("both"), "samples, then features, standardised to mean 0"),
        (VarianceFilter(1), "the 1 feature of highest variance"),
        (NeighborImputer(1, "samples"), "imputed missing values from the 1 nearest sample"),
    ],
)
def test_steps_describe_themselves(step, wanted):
    assert step.describe().startswith(wanted)


def test_features_left_are_found_again_in_the_original():
    X = with_holes((10, 30), share=0.0)
    prepared = prepare(X, [VarianceFilter(20), VarianceFilter(5)])
    np.testing.assert_array_equal(prepared.X, X[:, prepared.kept])
    assert prepared.kept.tolist() == VarianceFilter(5).fit(X).get_support(indices=True).tolist()


def test_other_transformers_may_take_part_and_are_not_fitted_themselves():
    X = with_holes((10, 4), share=0.0).astype(np.float32)
    scaler = StandardScaler()
    prepared = prepare(X, [scaler])
    assert prepared.log[0].description == "StandardScaler()"
    assert prepared.log[0].n_values_changed == 40
    assert prepared.X.dtype == np.float32
    assert not hasattr(scaler, "mean_")
    with pytest.raises(ValueError, match=r"'PolynomialFeatures\(\)' made 15 features of 4"):
        prepare(X, [PolynomialFeatures()])


def test_errors_call_features_by_the_names_they_came_with():
    X = np.array([[1.0, 1.0, 2.0, 2.0], [1.0, 7.0, -9.0, 3.0], [1.0, 3.0, 9.0, 1.0]])
    steps = [VarianceFilter(3), Log2()]
    with pytest.raises(ValueError, match="first in feature 2"):
        prepare(X, steps)
    with pytest.raises(ValueError, match="first in feature 'twice'"):
        prepare(X, steps, feature_names=["a", "twice", "twice", "c"])
    with pytest.raises(ValueError, match="first in feature 'twice'"):
        prepare(pd.DataFrame(X, columns=["a", "twice", "twice", "c"]), steps)
    with pytest.raises(ValueError, match="first in feature 'm'"):
        prepare(pd.DataFrame(X, columns=list("klmn")), steps)
    with pytest.raises(ValueError, match="one name for each of the 4 features of X, got 1"):
        prepare(X, steps, feature_names=["a"])


@pytest.mark.parametrize(
    ("limit", "removed"), [(9.0, 3), (7.5, 3), (100.0, 4)], ids=["one left", "same", "none left"]
)
def test_a_step_that_leaves_too_little_is_named(limit, removed):
    X = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 7.0, 10.0]])
    message = rf"'max - min > {limit:g}' removed {removed} of 4 features, .* Relax it"
    with pytest.raises(ValueError, match=message):
        prepare(X, [RangeFilter(min_difference=limit)])


def test_the_leukaemia_data_are_filtered_and_clustered_as_in_the_literature():
    data = load("golub7129")
    prepared = prepare(data["X"], chain(**PRESETS["dudoit2002"]))
    assert [step.n_features_after for step in prepared.log] == [7129, 3571, 3571]
    labels = HighVarianceHC(3571).fit(prepared.X).cut(2)
    assert 0.09 <= classification_error_rate(data["y"], labels) <= 0.13
    # Without standardisation, which is left out, and with it.
    assert round(classification_error_rate(data["y"], labels), 3) == 0.106
    standard = Standardize("samples").fit_transform(prepared.X)
    labels = HighVarianceHC(3571).fit(standard).cut(2)
    assert round(classification_error_rate(data["y"], labels), 3) == 0.155


def test_missing_values_of_real_data_are_imputed_as_by_scikit_learn():
    X = load("perou47")["X"]
    prepared = prepare(X, [NeighborImputer()])
    wanted = "imputed 4,247 missing values from the 5 nearest features"
    assert prepared.log[0].description == wanted
    np.testing.assert_allclose(
        prepared.X, imputed_by_scikit_learn(X, 5, "features"), rtol=1e-7, atol=1e-7
    )


def test_the_output_of_scikit_learn_may_be_set_to_pandas():
    X = with_holes((10, 4), share=0.0)
    steps = [Thresholds(-1), VarianceFilter(3)]
    with config_context(transform_output="pandas"):
        found = prepare(X, steps).X
    np.testing.assert_array_equal(found, prepare(X, steps).X)


def test_values_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match=r"values below 1e\+150, got 1e\+300"):
        Standardize("features").fit([[1.0, 2.0], [1e300, 3.0]])
