"""Whatever is given as a parameter or as X is taken, or refused with one sentence."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mrshc.estimators import AssociationHC, HighVarianceHC, MrSHC, sparse_components
from mrshc.validation import (
    check_integer,
    check_n_jobs,
    check_number,
    check_option,
    draw_seed,
)

A = np.random.default_rng(0).normal(size=(6, 8))
ROWS = A.tolist()


# Parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_integer("k", 0, low=1), "k must be a whole number at least 1, got 0."),
        (lambda: check_integer("k", 9, low=1, high=8), r"k must be .* in \[1, 8\], got 9."),
        (lambda: check_integer("k", True, low=1), "got True."),
        (lambda: check_integer("k", 2.0, low=1, advice="Do."), r"got 2.0. Do.$"),
        (lambda: check_integer("k", 2**63, low=1), "at least 1, got 9223372036854775808"),
        (lambda: check_number("x", -1, low=0, high=np.inf), "x must be a number at least 0, got"),
        (lambda: check_number("x", 3, low=0, high=2), r"x must be a number in \[0, 2\], got 3."),
        (lambda: check_number("x", np.nan, low=0, high=2), "got nan."),
        (lambda: check_number("x", False, low=0, high=2), "got False."),
        (lambda: check_number("x", "1", low=0, high=2), "got '1'."),
        (lambda: check_option("c", 1, (True, "a")), "c must be one of True, 'a', got 1."),
        (lambda: check_n_jobs(0), "n_jobs must be a whole number of workers.*got 0."),
        (lambda: check_n_jobs(1.5), "n_jobs must be .*got 1.5."),
        (lambda: check_n_jobs(True), "n_jobs must be .*got True."),
        *[
            (lambda seed=seed: draw_seed(seed), "random_state must be None, a whole number in")
            for seed in (2**32, -1, 2.5, "x", [1])
        ],
    ],
)
def test_invalid_values_are_refused(check, message):
    with pytest.raises(ValueError, match=message):
        check()


def test_valid_values_are_returned_in_a_plain_type():
    assert type(check_integer("k", np.int8(3), low=3, high=3)) is int
    assert type(check_number("x", np.float32(2), low=2, high=2)) is float
    assert check_option("c", True, (1, True)) is True
    assert (check_n_jobs(None), check_n_jobs(np.int64(-2))) == (None, -2)
    assert draw_seed(3) == draw_seed(np.random.RandomState(3)) != draw_seed(4)
    assert 0 <= draw_seed(None) < 2**31


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features_to_select": 9}, r"n_features_to_select must .*\[1, 8\], got 9. Lower it"),
        ({"n_features_to_select": [2, 2]}, r"must increase from candidate to candidate, got \[2"),
        ({"n_features_to_select": [3, 2]}, "must increase"),
        ({"n_features_to_select": []}, "an increasing sequence of them or 'auto', got"),
        ({"n_features_to_select": "all"}, "an increasing sequence of them or 'auto', got 'all'"),
        ({"n_features_to_select": None}, "or 'auto', got None"),
        ({"n_features_to_select": [2, 9]}, r"\[1, 8\], got 9"),
        ({"n_features_to_select": 2.5}, "n_features_to_select must be a whole number"),
        ({"n_features_to_select": 2, "metric": "correlation"}, "at least 3 for metric='corr"),
        ({"rank": 7}, r"rank must be a whole number in \[1, 6\], got 7"),
        ({"rank": None}, "rank must be a whole number"),
        ({"max_rank": 0}, "max_rank must be"),
        ({"n_clusters": 1}, r"n_clusters must be .* in \[2, 6\], got 1. Give 'auto' to let"),
        ({"n_clusters": 7}, r"n_clusters must be a whole number in \[2, 6\], got 7"),
        ({"n_references": 1}, r"n_references must be a whole number in \[2, 1000000\], got 1"),
        ({"n_references": 10**6 + 1}, r"n_references must be a whole number in \[2, 1000000\]"),
        ({"feature_tolerance": -1}, "feature_tolerance must be a whole number at least 0"),
        ({"center": 0}, "center must be one of True, 'grand', False, got 0"),
        ({"linkage": "upgma"}, "linkage must be one of 'single', 'complete', 'average', "),
        ({"metric": "euclidean"}, "metric must be one of 'sqeuclidean', 'cityblock', 'corr"),
        (
            {"linkage": "ward", "metric": "cityblock"},
            "linkage='ward' is defined for metric='sqeuclidean' and metric='correlation' only, got "
            "'cityblock'",
        ),
    ],
)
def test_invalid_parameters_of_the_search_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MrSHC(**options).fit(A)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AssociationHC(alpha=1.5), r"alpha must be a number in \[0, 1\], got 1.5"),
        (AssociationHC(max_features=0), "max_features must be a whole number at least 1"),
        (AssociationHC(max_features=2, metric="correlation"), "max_features must be at least 3"),
        (AssociationHC(n_clusters=1), r"n_clusters must be a whole number in \[2, 6\]"),
        (HighVarianceHC(9), r"in \[1, 8\], got 9. With all features, it is classical"),
        (HighVarianceHC(2, n_clusters=7), r"\[1, 6\], got 7. Give None to make the tree only"),
    ],
)
def test_invalid_parameters_of_other_estimators_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(A)


# Data ---------------------------------------------------------------------------------------

SENTENCES = {
    "a lazy frame": (pl.DataFrame(A).lazy(), r"got a LazyFrame\. Call X\.collect\(\) first"),
    "a series": (pd.Series(A[0]), "got a Series, which has one dimension. Pass a DataFrame"),
    "other lengths": ([*ROWS, ROWS[0][:3]], "one has 8 values and another 3. Use NaN for missing"),
    "text": (A.astype(str), "sample 0, feature 0 holds the text '.*'. Drop or encode it"),
    "text in a list": ([*ROWS[:5], [*ROWS[5][:7], "x"]], "sample 5, feature 7 holds the text 'x'"),
    "text in a table": (
        pd.DataFrame(A).rename(columns=str).assign(a=list("uvwxyz")),
        "sample 0, feature 'a' holds the text 'u'",
    ),
    "dates": (A.astype("datetime64[s]"), "feature 0 holds dates or times. Drop or encode them"),
    "times in a table": (
        pd.DataFrame(A).rename(columns=str).assign(when=pd.timedelta_range("1D", periods=6)),
        "feature 'when' holds dates or times",
    ),
    "two samples": (A[:2], "2 sample.*minimum of 3 is required"),
    "one feature": (A[:, :1], "1 feature.*minimum of 2 is required"),
    "a feature of NaN": (np.where(np.arange(8) == 3, np.nan, A), "feature 3 of X has none. Drop"),
    "a named feature of NaN": (
        pd.DataFrame(A, columns=list("abcdefgh")).assign(d=np.nan),
        "Every feature needs at least one observed value, but feature 'd' of X has none",
    ),
    "a sample of NaN": (
        np.where(np.arange(6)[:, None] == 2, np.nan, A),
        "Every sample needs at least one observed value, but sample 2 of X has none",
    ),
    "infinity": (
        np.where(A[4, 5] == A, -np.inf, A),
        r"X must be finite, but holds inf \(first at sample 4, feature 5\)",
    ),
    "large values": (A * 1e151, "values below 1e.150 that differ by more than 1e-150, got"),
    "small values": (A * 1e-152, "values below 1e.150 that differ by more than 1e-150, got"),
    "constant": (np.ones((5, 4)), "all 4 of its features are constant. Check that samples are in"),
    "names that are repeated": (
        pd.DataFrame(A, columns=list("abcdaafg")),
        "Feature names must be unique, but 'a' names 3 columns of X",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_refusals_say_what_to_do(case):
    X, message = SENTENCES[case]
    with pytest.raises(ValueError, match=message) as refused:
        HighVarianceHC(1).fit(X)
    assert "\n" not in str(refused.value)
    if case not in ("constant", "two samples"):
        with pytest.raises(ValueError, match=message):
            sparse_components(X, l1_bound=1.0)


WHOLE = pd.DataFrame(np.arange(24).reshape(4, 6) ** 2).rename(columns=str)


@pytest.mark.parametrize(
    "X", [WHOLE * 2**50, (WHOLE * 2**50).to_numpy(), -(WHOLE * 2**50).to_numpy()]
)
def test_whole_numbers_that_are_rounded_give_a_warning(X):
    with pytest.warns(UserWarning, match=r"whole numbers up to .*; above 2\^53 they are rounded"):
        HighVarianceHC(2).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HighVarianceHC(2).fit(X * 0.5 if isinstance(X, np.ndarray) else X.astype(float))
        HighVarianceHC(2).fit(WHOLE * 2**43)


def test_names_of_an_earlier_fit_are_forgotten():
    frame = pd.DataFrame(A, columns=list("abcdefgh"), index=[f"s{i}" for i in range(6)])
    model = HighVarianceHC(2).fit(frame)
    assert (list(model.feature_names_in_), model.sample_names_in_[1]) == (list("abcdefgh"), "s1")
    model.fit(A)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "sample_names_in_")
    assert model.n_features_in_ == 8
