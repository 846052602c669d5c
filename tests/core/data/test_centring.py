"""Offsets and fill values are those of a plain computation."""

import array_api_strict
import numpy as np
import pytest

from mrshc.core.data.centring import Centring, offsets_and_fill
from mrshc.core.data.statistics import column_summary


def make_table():
    X = np.random.default_rng(0).normal(loc=3, size=(5, 4))
    X[[0, 3], [1, 2]] = np.nan
    X[:, 3] = [0.1, 0.1, np.nan, 0.1, np.nan]
    return X


@pytest.mark.parametrize("drop_constant", [False, True])
@pytest.mark.parametrize("center", ["columns", "grand", "none"])
def test_missing_values_are_filled_with_the_mean_after_centring(center, drop_constant):
    X = make_table()
    expected = {
        "columns": np.nanmean(X, axis=0),
        "grand": np.full(4, np.nanmean(X)),
        "none": np.zeros(4),
    }[center]
    if drop_constant:
        expected[3] = 0.1
    offsets, fill = offsets_and_fill(column_summary(X), center=center, drop_constant=drop_constant)
    np.testing.assert_allclose(offsets, expected, rtol=1e-13)
    assert fill == pytest.approx(np.nanmean(X - expected), abs=1e-14)
    assert type(fill) is float


@pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "strict"])
@pytest.mark.parametrize("fill", [None, 0.0, 2.5])
def test_blocks_are_centred_with_their_own_offsets(xp, fill):
    X = make_table().astype(np.float32)
    offsets = np.array([1.0, 2.0, 3.0, 1e-12])
    centring = Centring(offsets=offsets, fill=fill)
    for start, stop in ((0, 4), (1, 3), (3, 4)):
        part = np.asarray(centring(xp.asarray(X[:, start:stop]), start, xp))
        assert part.dtype == np.float64
        expected = X[:, start:stop].astype(float) - offsets[start:stop]
        if fill is not None:
            expected[np.isnan(expected)] = fill
        np.testing.assert_array_equal(part, expected)
