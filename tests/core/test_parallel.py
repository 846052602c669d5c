"""Tasks in threads: order, errors, nesting and threads of BLAS."""

import threading
from contextlib import suppress

import numpy as np
from threadpoolctl import ThreadpoolController

from mrshc.core import parallel


def blas_threads():
    infos = ThreadpoolController().info()
    return {lib["num_threads"] for lib in infos if lib["user_api"] == "blas"}


def test_results_are_in_order_and_items_are_taken_when_they_are_needed():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    for n_jobs, ahead in ((1, 1), (2, 6)):
        taken.clear()
        with parallel.threads(n_jobs):
            results = parallel.run(lambda i: i * i, items())
            assert next(results) == 0
            assert len(taken) <= ahead
            assert list(results) == [i * i for i in range(1, 100)]


def test_tasks_run_at_the_same_time_and_tasks_of_tasks_one_after_another():
    barrier = threading.Barrier(2, timeout=5)

    def outer(_):
        barrier.wait()
        names = set(parallel.run(lambda _: threading.current_thread().name, range(4)))
        return parallel.n_threads(), names == {threading.current_thread().name}

    with parallel.threads(2):
        assert parallel.n_threads() == 2
        assert list(parallel.run(outer, range(2))) == [(1, True)] * 2
    assert parallel.n_threads() == 1


def test_blas_has_one_thread_within_and_as_many_as_before_afterwards():
    np.ones((2, 2)) @ np.ones((2, 2))
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        with suppress(KeyError), parallel.threads(2):
            assert blas_threads() == {1}
            raise KeyError
        assert blas_threads() == {2}
    assert parallel.n_threads() == 1


def test_blas_has_one_thread_until_the_last_of_overlapping_fits_ends():
    before, both, first_ended = blas_threads(), threading.Barrier(2, timeout=5), threading.Event()

    def fit(is_first):
        with parallel.threads(1):
            both.wait()
            if not is_first:
                first_ended.wait(timeout=5)
            found = blas_threads()
        first_ended.set()
        return found

    found = list(parallel.run_fits(fit, [(True,), (False,)], 2))
    assert found == [{1}, {1}]
    assert blas_threads() == before


def test_a_fit_that_outlives_another_does_not_restore_its_limit():
    inner, outer_ended = threading.Event(), threading.Event()

    def fit():
        with parallel.threads(1):
            inner.set()
            outer_ended.wait(timeout=5)

    two = ThreadpoolController().limit(limits=2, user_api="blas")
    with parallel.threads(1):
        thread = threading.Thread(target=fit)
        thread.start()
        inner.wait(timeout=5)
    outer_ended.set()
    thread.join()
    found = blas_threads()
    two.restore_original_limits()
    assert found == {2}
