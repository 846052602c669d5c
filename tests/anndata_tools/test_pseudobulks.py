"""Profiles of groups of cells."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mrshc.anndata_tools import pseudobulks
from mrshc.anndata_tools.pseudobulks import aggregate_cells, group_name

RNG = np.random.default_rng(0)
X = RNG.poisson(2.0, size=(50, 7)).astype(np.float64)
OBS = pd.DataFrame({"donor": RNG.integers(0, 3, 50), "kind": RNG.choice(["x", "y"], 50)})


@pytest.mark.parametrize("aggregate", ["mean", "sum"])
@pytest.mark.parametrize("matrix", [X, sparse.csr_matrix(X), sparse.csc_array(X)])
def test_profiles_are_those_of_pandas(monkeypatch, matrix, aggregate):
    monkeypatch.setattr(pseudobulks, "_CELLS_IN_BLOCK", 16)
    bulks = aggregate_cells(matrix, OBS, ["donor", "kind"], aggregate=aggregate)
    names = OBS["donor"].astype(str) + "_" + OBS["kind"]
    expected = pd.DataFrame(X).groupby(names).agg(aggregate)
    pd.testing.assert_frame_equal(
        bulks.to_table(range(7)),
        expected,
        check_names=False,
        check_index_type=False,
        check_column_type=False,
    )
    assert (bulks.names[bulks.group_of_cell] == names).all()


def test_cells_with_a_missing_value_belong_to_no_group():
    obs = OBS.assign(kind=OBS["kind"].where(OBS["donor"] > 0))
    bulks = aggregate_cells(X, obs, ("donor", "kind"), aggregate="sum")
    assert (bulks.group_of_cell == -1).tolist() == (OBS["donor"] == 0).tolist()
    assert bulks.values.sum() == X[OBS["donor"] > 0].sum()


def test_names_of_several_columns_are_joined_as_by_scanpy():
    assert group_name("one") == "one"
    assert group_name(["one", "two"]) == "one_two"
