"""Columns of a table are matched to the features of a fit by name."""

import numpy as np
import pandas as pd
import pytest

from mrshc import HighVarianceHC
from mrshc.errors import UserError
from mrshc.validation.feature_order import in_order_of_fit, known_feature_names

RNG = np.random.default_rng(0)
NAMES = [f"gene {j}" for j in range(8)]
FRAME = pd.DataFrame(RNG.normal(size=(12, 8)), columns=NAMES)
MODEL = HighVarianceHC(4, n_clusters=2).fit(FRAME)


def test_methods_of_a_fit_accept_its_columns_in_another_order():
    other = FRAME.iloc[:, ::-1].assign(site="text")
    pd.testing.assert_frame_equal(in_order_of_fit(MODEL, other), FRAME)
    pd.testing.assert_frame_equal(MODEL.markers(other, alpha=1.0), MODEL.markers(FRAME, alpha=1.0))
    np.testing.assert_array_equal(MODEL.sample_distances(other), MODEL.sample_distances(FRAME))
    with pytest.raises(UserError, match="8 features of the fit, but 1 of them is missing, such as"):
        MODEL.markers(FRAME.iloc[:, 1:])
    with pytest.raises(ValueError, match="Feature names must be unique, but 'gene 0' names 2"):
        MODEL.markers(FRAME.rename(columns={"gene 1": "gene 0"}))


@pytest.mark.parametrize("X", [FRAME.to_numpy(), FRAME.set_axis(range(8), axis=1)])
def test_data_without_names_are_returned_as_they_are(X):
    assert in_order_of_fit(MODEL, X) is X
    assert known_feature_names(MODEL, X).tolist() == NAMES
    assert known_feature_names(HighVarianceHC(4).fit(X), X) is None


def test_names_of_the_table_are_used_if_the_fit_had_none():
    plain = HighVarianceHC(4).fit(FRAME.to_numpy())
    assert in_order_of_fit(plain, FRAME) is FRAME
    assert known_feature_names(plain, FRAME).tolist() == NAMES
    numbers = FRAME.set_axis(range(100, 108), axis=1)
    fitted = HighVarianceHC(4).fit(numbers)
    pd.testing.assert_frame_equal(in_order_of_fit(fitted, numbers.iloc[:, ::-1]), numbers)
    assert known_feature_names(fitted, numbers).tolist() == [*range(100, 108)]
