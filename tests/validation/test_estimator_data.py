"""Whatever is given as X is a matrix, or refused with one sentence."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from mrshc import SHC, HighVarianceHC, MrSHC, sparse_components
from storage_backends import STORAGE_BACKENDS, hdf5_group, in_group

A = np.random.default_rng(0).normal(size=(6, 8))
ROWS = A.tolist()


def lazy_frame():
    return pytest.importorskip("polars").DataFrame(A).lazy()


def with_column(values):
    return pd.DataFrame(A).rename(columns=str).assign(when=values)


NO_NUMBERS = {
    "text": (lambda: A.astype(str), "holds the text '.*' in sample 0, feature 0"),
    "dates": (lambda: A.astype("datetime64[s]"), "holds dates or times"),
    "a column of times": (
        lambda: with_column(pd.timedelta_range("1D", periods=6)),
        "holds dates or times",
    ),
    "a column of periods": (
        lambda: with_column(pd.period_range("2020", periods=6, freq="M")),
        "holds a Period in sample 0, feature 'when'",
    ),
    "a list with times": (
        lambda: [[np.timedelta64(i, "s"), 1.0, i] for i in range(4)],
        "holds dates or times",
    ),
    "a list with dates": (
        lambda: [[datetime.date(2020, 1, i), 1.0, i] for i in (1, 2, 3)],
        "holds a date in sample 0, feature 0",
    ),
    "sets": (lambda: [[{1}, 2.0, 3.0]] * 4, "holds a set in sample 0, feature 0"),
}
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
    "extended precision": (lambda: A * np.longdouble("1e4000"), "too large for double"),
    "extended precision in a table": (
        lambda: pd.DataFrame(A * np.longdouble("1e4000")).rename(columns=str),
        "too large for double",
    ),
    "extended precision in a list": (
        lambda: (A * np.longdouble("1e4000")).tolist(),
        "too large for double",
    ),
    "extended precision in objects": (
        lambda: (A * np.longdouble("1e4000")).astype(object),
        "too large for double",
    ),
    "extended precision with a mask": (
        lambda: np.ma.masked_array(A * np.longdouble("1e4000"), mask=A > 1),
        "too large for double",
    ),
    "a table without columns": (pd.DataFrame, "got a DataFrame without columns"),
    "a table of lists": (
        lambda: pytest.importorskip("polars").DataFrame(
            {"a": [1.0, 2.0, 3.0, 4.0], "b": [[1, 2]] * 4}
        ),
        "holds a ndarray in sample 0, feature 'b'",
    ),
    "records": (lambda: [{"a": 1, "b": 2}] * 4, r"got a list of dict values\. Pass pandas\.Da"),
    "lists of lists of lists": (lambda: [[[1, 2], [3, 4]]] * 4, "a list of lists, which has 3 dim"),
    "an empty list": (list, "got an empty list, which has 1 dimension"),
    "a list of numbers": (lambda: [1, 2, 3], "got a list of single values, which has 1 dimension"),
    "a vector": (lambda: A[0], "got an array, which has 1 dimension"),
    "a cube": (lambda: A[None], "got an array, which has 3 dimensions"),
    "complex numbers": (lambda: A + 1j, "X must hold real numbers"),
    **NO_NUMBERS,
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize(
    "model", [HighVarianceHC(2), SHC(), MrSHC()], ids=lambda m: type(m).__name__
)
def test_objects_that_are_not_a_matrix_are_refused(model, case):
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


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_other_than_numbers_is_not_transformed_either(case):
    make, expected = NO_NUMBERS[case]
    X = make()
    p = len(X[0]) if isinstance(X, list) else X.shape[1]
    model = HighVarianceHC(2).fit(A[:, :p] if p <= 8 else np.column_stack([A, A[:, 0]]))
    with pytest.raises(ValueError, match=expected):
        model.transform(X)


@pytest.mark.parametrize("fill", [0.0, np.nan])
def test_frames_of_sparse_columns_are_taken(fill):
    dense = pd.DataFrame(np.where(A > 1, np.nan, A.clip(0))).rename(columns=str)
    X = dense.astype(pd.SparseDtype(float, fill))
    expected = HighVarianceHC(2).fit(dense).linkage_matrix_
    np.testing.assert_array_equal(HighVarianceHC(2).fit(X).linkage_matrix_, expected)
    mixed = X.assign(a=A[:, 0])
    expected = HighVarianceHC(2).fit(dense.assign(a=A[:, 0])).linkage_matrix_
    np.testing.assert_array_equal(HighVarianceHC(2).fit(mixed).linkage_matrix_, expected)


@pytest.mark.parametrize("value", [10**7, 10**30])
def test_numbers_of_repetitions_have_a_limit(value):
    with pytest.raises(ValueError, match=r"n_references must be a whole number in \[2, 1000000\]"):
        MrSHC(n_references=value).fit(A)
    with pytest.raises(ValueError, match=r"n_permutations must be a whole number in \[2, 100"):
        SHC(n_permutations=value).fit(A)


def test_numbers_that_no_array_holds_are_refused():
    message = r"feature_tolerance must be a whole number in \[0, 9223372036854775807\]"
    with pytest.raises(ValueError, match=message):
        MrSHC(feature_tolerance=10**30).fit(A)


@pytest.mark.parametrize("store", ["csr", "csc", "coo", "map"])
def test_extended_precision_out_of_memory_is_refused_with_a_sentence(store, tmp_path):
    X = np.tile(A, 3) * np.longdouble("1e4000")
    if store == "map":
        shown = np.memmap(tmp_path / "x", dtype=np.longdouble, shape=X.shape, mode="w+")
        shown[:] = X
    else:
        shown = sparse.coo_array(X).asformat(store)
    with pytest.raises(ValueError, match=r"^X holds a number that is too large for double prec"):
        HighVarianceHC(2).fit(shown)
    model = HighVarianceHC(2).fit(np.tile(A, 3))
    with pytest.raises(ValueError, match=r"^X holds a number that is too large for double prec"):
        model.transform(shown)


@pytest.mark.parametrize("seed", [10**30, 2**32, -1, 2.5, "x", [1]])
@pytest.mark.parametrize("model", [MrSHC([2, 3]), SHC([2, 3])], ids=lambda m: type(m).__name__)
def test_invalid_seeds_are_refused(model, seed):
    expected = r"^random_state must be None, a whole number in \[0, 4294967295\] or a RandomState "
    with pytest.raises(ValueError, match=expected):
        clone(model).set_params(random_state=seed).fit(A)


@pytest.mark.parametrize("scale", [1e-36, 1.0, 3.3e38])
@pytest.mark.parametrize(
    "model",
    [
        HighVarianceHC(3, n_clusters=2),
        SHC(3, n_clusters=2),
        SHC(3, n_clusters=2, metric="cityblock"),
        MrSHC(3, rank=1, n_references=5, random_state=0),
        MrSHC(3, rank=1, n_references=5, random_state=0, robust=True),
    ],
)
def test_the_unit_of_single_precision_does_not_matter(model, scale):
    unit = np.random.default_rng(0).uniform(-1, 1, size=(12, 40))
    unit[:, :3] = np.repeat([-0.95, 0.95], 6)[:, None] + 0.05 * unit[:, :3]
    X = (unit * scale).astype(np.float32)
    found, expected = (clone(model).fit(values) for values in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(found.get_support(), expected.get_support())
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert np.isfinite(found.linkage_matrix_).all()


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


@pytest.mark.parametrize("kind", ["map", "HDF5", "Zarr", "CSC", "CSR", "dask", "torch", "group"])
def test_integers_that_are_rounded_give_a_warning_wherever_they_are_stored(kind, tmp_path):
    groups = {"group": lambda A, folder: in_group(A, hdf5_group(folder), "csc_matrix")}
    store = (STORAGE_BACKENDS | groups)[kind]
    X = np.arange(24).reshape(4, 6) ** 2
    for name, factor in (("exact", 1), ("large", -(2**50))):
        (tmp_path / name).mkdir()
        stored = store(X * factor, tmp_path / name)
        if factor == 1:
            HighVarianceHC(2).fit(stored)
        else:
            with pytest.warns(UserWarning, match=r"above 2\^53 they are rounded"):
                HighVarianceHC(2).fit(stored)


TABLE = pd.DataFrame(A).rename(columns=str)
IN_ANOTHER_ORDER = {
    "a default index, shuffled": (TABLE, TABLE.sample(frac=1, random_state=1)),
    "a default index, reversed": (TABLE, TABLE[::-1]),
    "sorted after a fit to shuffled rows": (TABLE.sample(frac=1, random_state=1), TABLE),
    "other numbers": (TABLE, TABLE.set_axis(range(5, 11))),
    "names": (TABLE, TABLE.set_axis(list("abcdef"))),
    "an array, shuffled": (A, TABLE[::-1]),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("case", IN_ANOTHER_ORDER)
@pytest.mark.parametrize("method", ["markers", "sample_distances"])
def test_the_samples_of_a_fit_in_another_order_are_refused(case, method):
    fitted_to, X = IN_ANOTHER_ORDER[case]
    model = HighVarianceHC(2, n_clusters=2).fit(fitted_to)
    assert getattr(model, method)(fitted_to) is not None
    with pytest.raises(ValueError, match="X must be the data of the fit with the samples in the"):
        getattr(model, method)(X)


def test_the_class_of_an_index_does_not_matter():
    model = HighVarianceHC(2).fit(TABLE)
    for dtype in ("int64", "Int64", object):
        X = TABLE.set_axis(pd.Index(range(6), dtype=dtype))
        assert model.sample_distances(X).shape == (6, 6)


def test_a_dissimilarity_with_names_is_matched_to_the_samples():
    X = TABLE.set_axis(list("abcdef"))
    earlier = pd.DataFrame(SHC(3).fit(X).dissimilarity_, index=X.index, columns=X.index)
    expected = SHC(3, complement_of=earlier.to_numpy()).fit(X).dissimilarity_
    shuffled = earlier.loc[list("fdbace"), list("cabfed")]
    found = SHC(3, complement_of=shuffled).fit(X).dissimilarity_
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="The index of complement_of must have one entry"):
        SHC(3, complement_of=earlier.rename({"a": "q"})).fit(X)


WHOLE = pd.DataFrame(np.arange(24).reshape(4, 6) ** 2).rename(columns=str)


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "UInt64"])
def test_whole_numbers_with_missing_ones_are_taken(dtype):
    expected = HighVarianceHC(2).fit(WHOLE.astype(float).mask(WHOLE == 9)).linkage_matrix_
    X = WHOLE.astype(dtype).mask(WHOLE == 9)
    np.testing.assert_array_equal(HighVarianceHC(2).fit(X).linkage_matrix_, expected)
    with pytest.warns(UserWarning, match=r"above 2\^53 they are rounded"):
        HighVarianceHC(2).fit((WHOLE * 2**50).astype(dtype).mask(WHOLE == 9))


def in_polars(X):
    return pytest.importorskip("polars").from_pandas(X)


@pytest.mark.parametrize("make", [pd.DataFrame.copy, in_polars])
def test_whole_numbers_that_are_rounded_give_a_warning_beside_fractions(make):
    X = WHOLE.assign(a=[0.5, 1.5, 2.5, 3.5])
    HighVarianceHC(2).fit(make(X))
    with pytest.warns(UserWarning, match=r"whole numbers up to 1\.15e\+18; above 2\^53"):
        HighVarianceHC(2).fit(make(X.assign(b=[1, 2, 3, 2**60])))


def test_a_row_of_whole_numbers_that_are_rounded_gives_a_warning():
    with pytest.warns(UserWarning, match=r"above 2\^53 they are rounded"):
        HighVarianceHC(2).fit([[1, 2, 2**60], [0.5, 0.1, 3.0], [1.0, 1.5, 2.0]])
