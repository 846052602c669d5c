"""Dispersions of many samples are those of the functions for few samples."""

import numpy as np
import pytest

from mrshc.core.kernels.agglomerated_dispersions import top_dispersions
from mrshc.core.kernels.large_dispersions import large_top_dispersions
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.principal_box import squared_distances_from_gram
from mrshc.core.trees.tree import COMPILED_LINKAGES


@pytest.mark.parametrize("linkage", COMPILED_LINKAGES)
@pytest.mark.parametrize("n", [3, 128, 150])
def test_dispersions_are_those_of_few_samples(n, linkage):
    sample = np.random.default_rng(n).random((n, 7)) * np.linspace(3.0, 1.0, 7)
    code, working = LinkageMethod[linkage].value, np.empty((n, n))
    distances = sample @ sample.T
    squared_distances_from_gram(distances)
    expected = top_dispersions(distances, code, 2, None)
    # BLAS may add the terms of an inner product in another order for another shape.
    found = large_top_dispersions(sample, code, working)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
