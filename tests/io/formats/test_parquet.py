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


def test_nested_columns_of_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=9) for name in "abc"}
    maps = arrow.array([[("k", 1)]] * 9, arrow.map_(arrow.string(), arrow.int64()))
    for nested in ([[1, 2]] * 9, [{"x": 1}] * 9, maps):
        parquet.write_table(arrow.table({"odd": nested, **numbers}), tmp_path / "t.parquet")
        with pytest.raises(TableError, match=r"holds .* values in column 'odd', but numbers or"):
            read_table(tmp_path / "t.parquet")
