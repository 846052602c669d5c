"""The soft threshold of slopes of extreme sizes."""

import numpy as np
import pytest

from mrshc.core.kernels.sparse_direction import Candidates, find_active_depth

# Fractions of the smallest number underflow.
SMALLEST = float(np.nextafter(0.0, 1.0))


@pytest.mark.parametrize("scale", [SMALLEST, 1e-300, 1.0, 1e300])
def test_the_search_for_the_threshold_ends_for_slopes_of_every_size(scale):
    slopes = np.array([1.0, -2.0, 3.0, 5.0]) * scale
    # One entry more than there are slopes.
    candidates = Candidates(np.empty(5, np.intp), np.empty(5))
    depth, _ = find_active_depth(slopes, 5.0 * scale, 1.0, -1.0, 5.0 * scale, candidates)
    assert 0.0 <= depth <= 5.0 * scale
