from mrshc.plotting import (
    largest_loadings,
)


def test_the_largest_loadings_come_first_whatever_their_sign_and_never_zero():
    assert largest_loadings([0.0, -0.7, 0.1, 0.2], top=2).tolist() == [1, 3]
    assert largest_loadings([0.0, -0.7, 0.0], top=30).tolist() == [1]
