"""Whatever is given as X is a matrix, or refused with one sentence."""

import decimal

import numpy as np
import pandas as pd
import pytest

from mrshc import SHC, HighVarianceHC, MrSHC, sparse_components

A = np.random.default_rng(0).normal(size=(6, 8))
ROWS = A.tolist()


def lazy_frame():
    return pytest.importorskip("polars").DataFrame(A).lazy()


WRONG = {
    "None": (lambda: None, "got None"),
    "a number": (lambda: 5, "got 5"),
    "a numpy number": (lambda: np.float64(5), "got"),
    "a text": (lambda: "table.csv", "got a str"),
    "bytes": (lambda: b"1", "got a bytes"),
    "a dict": (lambda: {"a": [1.0]}, "got a dict"),
    "a generator": (lambda: (row for row in ROWS), "got a generator"),
    "a lazy frame": (lazy_frame, r"got a LazyFrame\. Call X\.collect\(\) first"),
    "a series": (lambda: pd.Series(A[0]), "got a Series"),
    "a structured array": (lambda: np.zeros(4, dtype=[("a", float)]), "got a structured array"),
    "text in a later row": (
        lambda: [*ROWS[:5], [str(v) for v in ROWS[5]]],
        "holds the text '.*' in sample 5, feature 0",
    ),
    "rows of other length": (lambda: [*ROWS, ROWS[0][:3]], "row 0 has 8 values and row 6"),
    "a number beyond any float": (lambda: [[10**400, 1.0, 2.0]] * 4, "too large for double"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize(
    "model", [HighVarianceHC(2), SHC(), MrSHC()], ids=lambda m: type(m).__name__
)
def test_what_is_no_matrix_is_refused_with_a_sentence(model, case):
    make, expected = WRONG[case]
    with pytest.raises(ValueError, match=expected) as refused:
        model.fit(make())
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("case", WRONG)
def test_components_refuse_the_same(case):
    make, expected = WRONG[case]
    with pytest.raises(ValueError, match=expected):
        sparse_components(make(), l1_bound=2.0)


def test_lists_of_numbers_of_any_kind_are_taken():
    exact = [[decimal.Decimal(str(v)) for v in row] for row in ROWS]
    expected = HighVarianceHC(2).fit(A).linkage_matrix_
    for X in (ROWS, tuple(map(tuple, ROWS)), exact, A.astype(object)):
        np.testing.assert_allclose(HighVarianceHC(2).fit(X).linkage_matrix_, expected)


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, np.ndarray.tolist])
def test_whole_numbers_that_are_rounded_give_a_warning(make):
    X = np.arange(24).reshape(4, 6) ** 2
    HighVarianceHC(2).fit(make(X))
    with pytest.warns(UserWarning, match=r"above 2\^53 they are rounded"):
        HighVarianceHC(2).fit(make(X * 2**50))
