import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_info

from mrshc.core.data.centred_array import centre_array
from mrshc.core.parallel import limit_blas_to_one_thread, run_in_parallel
from mrshc.core.search import SearchPlan, search
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


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_another_backend_may_be_configured(backend):
    # A function that other processes can import.
    arguments = ({"real": k, "imag": 1} for k in range(10))
    with parallel_config(backend=backend, n_jobs=2):
        found = list(run_in_parallel(complex, arguments, n_jobs=None))
    assert found == [complex(k, 1) for k in range(10)]


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


def test_blas_runs_on_one_thread_in_tasks_and_as_before_afterwards():
    def threads():
        np.ones((2, 2)) @ np.ones((2, 2))
        return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}

    before = threads()
    with limit_blas_to_one_thread():
        assert list(run_in_parallel(threads, [{}] * 3, n_jobs=2)) == [{1}] * 3
    assert threads() == before


def test_ctrl_c_interrupts_a_compiled_loop():
    code = (
        "import signal, warnings, numpy as np\n"
        # A shell ignores the signal for processes in the background.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from mrshc import MrSHC\n"
        "warnings.simplefilter('ignore')\n"
        "X = np.random.default_rng(0).normal(size=(1800, 20))\n"
        "model = MrSHC(10, rank=1, random_state=0, stop_early=False)\n"
        "model.fit(X[:20])\n"
        "print('ready', flush=True)\n"
        "model.fit(X)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate()
    assert complaint.splitlines()[-1] == "KeyboardInterrupt"
    assert process.returncode != 0


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
