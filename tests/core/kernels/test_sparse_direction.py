"""The soft threshold of slopes of extreme sizes."""

import numpy as np
import pytest

from mrshc.core.kernels.sparse_direction import empty_candidates, find_active_depth

# Fractions of the smallest number underflow.
SMALLEST = float(np.nextafter(0.0, 1.0))


@pytest.mark.parametrize("scale", [SMALLEST, 1e-300, 1.0, 1e300])
def test_the_search_for_the_threshold_ends_for_slopes_of_every_size(scale):
    slopes = np.array([1.0, -2.0, 3.0, 5.0]) * scale
    depth, _ = find_active_depth(slopes, 5.0 * scale, 1.0, -1.0, 5.0 * scale, empty_candidates(4))
    assert 0.0 <= depth <= 5.0 * scale
