from mrshc.plotting import (
    largest_loadings,
)


def test_largest_absolute_loadings_come_first_and_zeros_are_left_out():
    assert largest_loadings([0.0, -0.7, 0.1, 0.2], top=2).tolist() == [1, 3]
    assert largest_loadings([0.0, -0.7, 0.0], top=30).tolist() == [1]
