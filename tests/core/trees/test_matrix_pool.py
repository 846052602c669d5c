from mrshc.core.trees.matrix_pool import MatrixPool


def test_matrices_are_used_again_and_not_shared():
    pool = MatrixPool(3)
    with pool.borrow() as first, pool.borrow() as second:
        assert first.shape == second.shape == (3, 3)
        assert first is not second
    with pool.borrow() as third, pool.borrow() as fourth, pool.borrow() as fifth:
        assert {id(third), id(fourth)} == {id(first), id(second)}
        assert fifth is not first
        assert fifth is not second
