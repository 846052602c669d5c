import threading
import time

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_info

from mrshc.core.workers import one_blas_thread, results_of


def square(k):
    time.sleep(0.001 * (k % 3))
    return k * k


def squares(count, **options):
    return list(results_of(square, ({"k": k} for k in range(count)), **options))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5, -1])
@pytest.mark.parametrize("share_memory", [True, False])
def test_results_come_in_order(n_jobs, share_memory):
    assert squares(40, n_jobs=n_jobs, share_memory=share_memory) == [k * k for k in range(40)]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_another_backend_may_be_configured(backend):
    with parallel_config(backend=backend, n_jobs=2):
        assert squares(10, n_jobs=None) == [k * k for k in range(10)]


def test_workers_inside_workers_do_not_multiply():
    def names(_):
        return set(results_of(lambda: threading.current_thread().name, [{}] * 4, n_jobs=None))

    found = Parallel(n_jobs=2, backend="threading")(delayed(names)(k) for k in range(2))
    assert all(len(inside) == 1 for inside in found)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_ends_the_work(n_jobs):
    begun = []

    def fail(k):
        begun.append(k)
        if k == 3:
            raise OSError("no more")
        time.sleep(0.01)

    with pytest.raises(OSError, match="no more"):
        list(results_of(fail, ({"k": k} for k in range(1000)), n_jobs=n_jobs))
    assert len(begun) < 50


def test_few_arguments_are_made_ahead():
    made = []

    def arguments():
        for k in range(100):
            made.append(k)
            yield {"k": k}

    results = results_of(square, arguments(), n_jobs=2)
    next(results)
    assert len(made) < 20
    results.close()


def test_blas_runs_on_one_thread_in_tasks_and_as_before_afterwards():
    def threads():
        np.ones((2, 2)) @ np.ones((2, 2))
        return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    before = threads()
    with one_blas_thread():
        assert list(results_of(threads, [{}] * 3, n_jobs=2)) == [{1}] * 3
    assert threads() == before
