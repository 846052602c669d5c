"""Plots of clusterings in AnnData objects refuse other objects."""

import pytest

from mrshc import HighVarianceHC, pl
from mrshc.shell.wording import ParameterError


def test_a_fitted_estimator_is_refused_with_advice():
    model = HighVarianceHC(2).fit([[0.0, 1.0], [1.0, 0.0], [5.0, 6.0]])
    with pytest.raises(
        ParameterError, match=r"^adata must be an AnnData object .* got a HighVarianceHC\. Plots of"
    ):
        pl.dendrogram(model)
