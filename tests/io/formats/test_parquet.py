"""Columns of Parquet files are numbers, names or annotations."""

import numpy as np
import pandas as pd
import pytest

from mrshc.io import TableError, read_table
from small_table import FEATURES, SAMPLES, X, assert_read


@pytest.mark.parametrize("named", ["index", "column"])
def test_parquet(tmp_path, named):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X.T, index=pd.Index(FEATURES, name="gene"), columns=SAMPLES)
    frame.insert(0, "kind", ["u", None, "v", "u"])
    path = tmp_path / "table.parquet"
    (frame if named == "index" else frame.reset_index()).to_parquet(path)
    table = read_table(path)
    assert_read(table)
    assert table.feature_annotations["kind"].tolist()[::2] == ["u", "v"]


def test_parquet_with_gaps_and_a_class_at_the_end(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=FEATURES).astype("Float64")
    frame.iloc[1, 2] = pd.NA
    frame["class"] = ["u", "v", "u"]
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", truth="class")
    assert np.isnan(table.X[1, 2])
    assert list(table.sample_names) == ["sample 1", "sample 2", "sample 3"]
    assert table.sample_annotations["class"].tolist() == ["u", "v", "u"]


@pytest.fixture
def written(tmp_path):
    """Write columns, and three of numbers after them, to a Parquet file."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = np.random.default_rng(0).normal(size=(3, 9))

    def write(columns, names):
        path = tmp_path / "t.parquet"
        arrays = [*(arrow.array(*column) for column in columns), *map(arrow.array, numbers)]
        parquet.write_table(arrow.Table.from_arrays(arrays, names=[*names, *"abc"]), path)
        return path

    return write


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([[1, 2]] * 9, "list<element: int64>"),
        ([[[1.5]]] * 9, "list<element: list<element: double>>"),
        ([{"x": 1}] * 9, "struct<x: int64>"),
        ([{f"field {i}": 1 for i in range(99)}] * 9, "struct<field 0: int64, .*[.]{3}"),
    ],
)
def test_nested_columns_of_parquet(written, values, kind):
    path = written([(values,)], ["odd"])
    with pytest.raises(
        TableError,
        match=rf"holds {kind} values in column 'odd', but numbers or text were wanted\. Leave",
    ):
        read_table(path)


def test_maps_and_missing_lists_of_parquet(written):
    arrow = pytest.importorskip("pyarrow")
    maps = ([[("k", 1)]] * 9, arrow.map_(arrow.string(), arrow.int64()))
    with pytest.raises(TableError, match=r"holds map<string, int64.*> values in column 'odd', but"):
        read_table(written([maps], ["odd"]))
    lists = ([None] * 9, arrow.list_(arrow.int64()))
    with pytest.raises(TableError, match=r"holds list<element: int64> values in column 'odd', but"):
        read_table(written([lists], ["odd"]))


def test_columns_of_parquet_with_the_same_name(written):
    path = written([(range(9),), (["x"] * 9,)], ["b", "b"])
    with pytest.raises(
        TableError,
        match=r"t.parquet has 3 columns with the name 'b', but the names of columns must differ\. "
        r"Rename them when it is written\.$",
    ):
        read_table(path)
