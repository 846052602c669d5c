import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from mrshc import MrSHC
from mrshc.core.data.centred_array import centre_array
from mrshc.core.parallel import (
    StepCounter,
    effective_n_threads,
    limit_blas_to_one_thread,
    run_in_parallel,
    run_parts,
    start_if_idle,
    threads_for_parts,
)
from mrshc.core.search import SearchPlan, search
from mrshc.core.sparse_pca import next_component
from mrshc.core.trees import gap_statistic
from mrshc.core.trees.gap_statistic import GapSettings


def square(k):
    time.sleep(0.001 * (k % 3))
    return k * k


def squares(count, **options):
    return list(run_in_parallel(square, ({"k": k} for k in range(count)), **options))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5, -1])
@pytest.mark.parametrize("share_memory", [True, False])
def test_results_are_yielded_in_order(n_jobs, share_memory):
    assert squares(40, n_jobs=n_jobs, share_memory=share_memory) == [k * k for k in range(40)]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_another_backend_may_be_configured(backend):
    # A function that other processes can import.
    arguments = ({"real": k, "imag": 1} for k in range(10))
    with parallel_config(backend=backend, n_jobs=2):
        found = list(run_in_parallel(complex, arguments, n_jobs=None))
    assert found == [complex(k, 1) for k in range(10)]


def test_a_backend_without_generators_may_be_configured():
    # This backend forks. In the process of the tests, which has threads of other backends, a forked
    # process may wait for ever for a lock that such a thread held.
    code = """
from joblib import parallel_config
from mrshc.core.parallel import run_in_parallel
arguments = ({"real": k, "imag": 1} for k in range(10))
with parallel_config(backend="multiprocessing", n_jobs=2):
    print(list(run_in_parallel(complex, arguments, n_jobs=None)))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert run.stdout.strip() == str([complex(k, 1) for k in range(10)])


def test_nested_calls_run_on_one_worker():
    def names(_):
        return set(run_in_parallel(lambda: threading.current_thread().name, [{}] * 4, n_jobs=None))

    found = Parallel(n_jobs=2, backend="threading")(delayed(names)(k) for k in range(2))
    assert all(len(inside) == 1 for inside in found)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_cancels_the_remaining_tasks(n_jobs):
    begun = []

    def fail(k):
        begun.append(k)
        if k == 3:
            raise OSError("no more")
        time.sleep(0.01)

    with pytest.raises(OSError, match="no more"):
        list(run_in_parallel(fail, ({"k": k} for k in range(1000)), n_jobs=n_jobs))
    assert len(begun) < 50


def test_few_arguments_are_generated_ahead():
    made = []

    def arguments():
        for k in range(100):
            made.append(k)
            yield {"k": k}

    results = run_in_parallel(square, arguments(), n_jobs=2)
    next(results)
    assert len(made) < 20
    results.close()


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    # On ARM, torch brings another BLAS, whose limit applies to the thread that sets it only.
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "torch" not in library["filepath"]
    }


@pytest.fixture
def two_blas_threads():
    """Two threads of BLAS, also on a machine with one core, so that a limit makes a difference."""
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == {2}
        yield


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_runs_on_one_thread_in_tasks_and_as_before_afterwards(n_jobs):
    """Also if the user has set another number of threads, as the fixture does."""
    for _ in range(2):  # the limit can be set again
        assert list(run_in_parallel(blas_threads, [{}] * 3, n_jobs=n_jobs)) == [{1}] * 3
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_of_several_overlapping_contexts_restores_the_threads():
    first, second, third = (limit_blas_to_one_thread() for _ in range(3))
    first.__enter__()
    assert blas_threads() == {1}
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    third.__enter__()
    second.__exit__(None, None, None)
    assert blas_threads() == {1}
    third.__exit__(None, None, None)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_the_threads_of_blas_are_restored_after_an_error():
    with pytest.raises(OSError, match="stop"), limit_blas_to_one_thread():
        raise OSError("stop")
    assert blas_threads() == {2}


@pytest.mark.parametrize("share_memory", [True, False])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_as_many_tasks_run_at_the_same_time_as_there_are_workers(n_jobs, share_memory):
    barrier = threading.Barrier(n_jobs)

    def wait():
        barrier.wait(timeout=10)  # raises an error if the other tasks do not run meanwhile
        return threading.current_thread()

    tasks = run_in_parallel(wait, [{}] * (3 * n_jobs), n_jobs=n_jobs, share_memory=share_memory)
    workers = set(tasks)
    assert len(workers) == n_jobs
    assert threading.current_thread() not in workers


def test_one_worker_runs_each_task_in_the_calling_thread_when_its_result_is_needed():
    begun = []

    def note(k):
        begun.append(k)
        return threading.current_thread()

    results = run_in_parallel(note, ({"k": k} for k in range(5)), n_jobs=1)
    assert begun == []
    assert next(results) is threading.current_thread()
    assert begun == [0]


def test_tasks_run_in_other_processes_only_if_they_need_not_share_memory():
    here, at_most = os.getpid(), cpu_count()
    with parallel_config(backend="loky", n_jobs=2):
        assert here not in run_in_parallel(os.getpid, [{}] * 4, n_jobs=None)
        assert here not in run_in_parallel(os.getpid, [{}] * 4, n_jobs=2, share_memory=False)
        assert {here} == set(run_in_parallel(os.getpid, [{}] * 4, n_jobs=2, share_memory=True))
        threads = run_in_parallel(
            lambda: time.sleep(0.002) or threading.current_thread(),
            [{}] * (5 * at_most),
            n_jobs=4 * at_most,
            share_memory=True,
        )
        assert len(set(threads)) <= at_most


def test_threads_are_limited_to_the_cores():
    assert effective_n_threads(None) == effective_n_threads(1) == 1
    assert effective_n_threads(10 * cpu_count()) == effective_n_threads(-1) == cpu_count()
    with parallel_config(backend="threading", n_jobs=2):
        assert effective_n_threads(None) == min(2, cpu_count())
        assert effective_n_threads(1) == 1


def test_steps_are_added_and_reported_unless_there_are_none():
    seen = []
    steps = StepCounter(total=7, report=lambda done, total: seen.append((done, total)))
    for count in (0, 2, 0, 1, 4, 0):
        steps.advance(count)
    assert seen == [(2, 7), (3, 7), (7, 7)]


@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
@pytest.mark.parametrize(
    ("module", "name", "shape"),
    [
        (gap_statistic, "split_test", (800, 20)),
        (next_component, "compute_components", (300, 60_000)),
    ],
)
def test_ctrl_c_interrupts_a_compiled_loop(module, name, shape, monkeypatch):
    """The loop runs to its end first, so it must last longer than the signal takes to arrive."""
    X = np.random.default_rng(0).normal(size=shape)
    model = MrSHC(10, rank=1, random_state=0, stop_early=False)
    model.fit(X[:20])  # loads the compiled code
    loop = getattr(module, name)

    def call_and_interrupt(*arguments):
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        return loop(*arguments)

    monkeypatch.setattr(module, name, call_and_interrupt)
    # The signal of the timer is handled like that of Ctrl-C.
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert caught.traceback[-1].path.name == "jit.py"


def test_no_task_continues_after_an_error_of_the_caller():
    def stop(done, total):
        raise OSError(f"enough after {done} of {total}")

    X = np.random.default_rng(0).normal(size=(60, 3000))
    matrix = centre_array(X, center="columns", drop_constant=True)
    plan = SearchPlan(
        targets=tuple(range(10, 100, 5)),
        ranks=(1, 2, 3),
        n_clusters=3,
        tolerance=0,
        gap=GapSettings(),
        entropy=0,
    )
    before = threading.active_count()
    with pytest.raises(OSError, match="enough") as caught:
        search(matrix, plan, n_jobs=2, progress=stop)
    assert caught.value.__traceback__ is not None
    assert threading.active_count() == before


def test_parts_run_in_the_threads_of_their_context_and_keep_their_order():
    barrier = threading.Barrier(2, timeout=5)

    def meet(k, power):
        barrier.wait()  # two parts must run at the same time
        return k**power

    with threads_for_parts(2):
        assert run_parts(meet, ((k, 2) for k in range(6))) == [0, 1, 4, 9, 16, 25]
    caller = threading.get_ident()
    assert run_parts(lambda: threading.get_ident(), [()]) == [caller]


def test_arguments_of_parts_are_made_when_a_thread_is_free():
    finished, ahead = [], []

    def arguments():
        for k in range(8):
            ahead.append(k - len(finished))
            yield (k,)

    with threads_for_parts(2):
        run_parts(finished.append, arguments())
    assert max(ahead) <= 2


def test_tasks_in_threads_do_not_start_further_threads():
    def threads_of_parts():
        return {*run_parts(lambda _: threading.get_ident(), [(1,), (2,), (3,)])}

    with threads_for_parts(2):
        for used in run_in_parallel(threads_of_parts, [{}, {}], n_jobs=2):
            assert len(used) == 1


def test_an_error_in_a_part_is_raised():
    def fail(k):
        raise ValueError(f"part {k}")

    with threads_for_parts(2), pytest.raises(ValueError, match="part 0"):
        run_parts(fail, [(0,), (1,), (2,)])


def test_calls_of_a_search_share_their_threads():
    with threads_for_parts(2):
        calls = [
            list(run_in_parallel(threading.current_thread, [{}] * 4, n_jobs=2)) for _ in range(5)
        ]
        # Another number of threads is not that of the context.
        others = set(run_in_parallel(threading.current_thread, [{}] * 9, n_jobs=3))
    used = {thread for call in calls for thread in call}
    assert len(used) <= 2
    assert not used & others
    assert threading.current_thread() not in used


def test_a_task_starts_another_one_only_if_a_thread_is_idle():
    assert start_if_idle(square, 3) is None, "this thread belongs to no pool"
    barrier = threading.Barrier(2, timeout=5)

    def meet():
        barrier.wait()  # both tasks must run at the same time
        return threading.get_ident()

    def start():
        result = start_if_idle(meet)
        if result is None:
            return None
        here = meet()
        return here != result()

    for n_jobs, expected in ((1, None), (2, True)):
        assert list(run_in_parallel(start, [{}], n_jobs=n_jobs)) == [expected]


def test_no_thread_is_idle_while_all_have_tasks():
    # Each task waits for the other, so both threads have one when they ask.
    barrier = threading.Barrier(2, timeout=5)

    def ask():
        barrier.wait()
        is_none = start_if_idle(square, 3) is None
        barrier.wait()
        return is_none

    assert list(run_in_parallel(ask, [{}] * 4, n_jobs=2)) == [True] * 4


def test_threads_are_idle_again_after_tasks_were_cancelled():
    def fail_or_wait(k):
        time.sleep(0.01)
        if k == 0:
            raise ValueError("stop")

    def ask():
        return start_if_idle(square, 3)()

    with threads_for_parts(2):
        for _ in range(3):
            with pytest.raises(ValueError, match="stop"):
                list(run_in_parallel(fail_or_wait, ({"k": k} for k in range(9)), n_jobs=2))
            assert list(run_in_parallel(ask, [{}], n_jobs=2)) == [9]
