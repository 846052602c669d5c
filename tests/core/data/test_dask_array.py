"""Dask arrays on the workers of a cluster, which may be lost."""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import cloudpickle
import dask.array
import distributed
import joblib
import numpy as np
import pytest
from sklearn.base import clone

from mrshc import SHC, MrSHC
from mrshc.core.data import dask_array as chunked
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.core.data.data_matrix import UnreadableError
from storage_backends import clustered

pytestmark = pytest.mark.slow

N, WIDTH, P = 10, 4, 120


@contextmanager
def client_of_two_workers():
    with (
        # A request to a killed worker fails after 5 seconds instead of 30.
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module", autouse=True)
def functions_by_value():
    """Send the functions of this file to the workers, which have mrshc, but not its tests."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def client():
    with client_of_two_workers() as client:
        yield client


@pytest.fixture
def client_to_be_harmed():
    """Workers of one test that kills one of them: distributed does not always start another."""
    with client_of_two_workers() as client:
        yield client


@pytest.fixture(name="A")
def matrix():
    A = np.random.default_rng(0).normal(size=(N, P))
    A[2, 5] = np.nan
    return A


def in_chunks_of_columns(A, width=WIDTH):
    return dask.array.from_array(A, chunks=(N, width))


def describe_block(block, start, _xp):
    return start, np.array(block), os.getpid()


def assert_passes_read(X, A):
    """Check that a pass reads A in order in other processes, and that columns are those of A."""
    source = as_stored_matrix(X)
    starts, blocks, processes = zip(*source.map_blocks(describe_block), strict=True)
    assert list(starts) == sorted(starts)
    assert os.getpid() not in processes
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), A)
    indices = np.array([70, 3, 3, P - 1, 5])
    np.testing.assert_array_equal(source.columns(indices), A[:, indices])


@pytest.mark.usefixtures("client")
def test_lazy_arrays(A):
    assert_passes_read(in_chunks_of_columns(A), A)
    assert_passes_read(in_chunks_of_columns(A) * 2, A * 2)


@pytest.mark.usefixtures("client")
def test_arrays_that_are_chunked_over_samples(A):
    with dask.config.set({"array.chunk-size": "1 kiB"}):
        for chunks in ((3, 7), (3, P)):
            assert_passes_read(dask.array.from_array(A, chunks=chunks), A)


@pytest.mark.usefixtures("client")
def test_persisted_arrays(A):
    X = in_chunks_of_columns(A).persist()
    assert_passes_read(X, A)
    assert_passes_read(X + 1, A + 1)


def count_calls(folder, fails=0):
    """Return a function of a block that records each call and fails at the first ones."""

    def count(block, block_info=None):
        start = block_info[0]["array-location"][1][0]
        path = Path(folder) / str(start)
        calls = path.stat().st_size if path.exists() else 0
        with path.open("a") as file:
            file.write("x")
        if start == 3 * WIDTH and calls < fails:
            raise OSError("the network is down")
        return block

    return count


@pytest.mark.usefixtures("client")
def test_persisted_chunks_are_used_as_they_are(A, tmp_path):
    X = in_chunks_of_columns(A).map_blocks(count_calls(tmp_path), dtype=float).persist()
    distributed.wait(X)
    source = as_stored_matrix(X)
    for _ in range(2):
        list(source.map_blocks(describe_block))
    assert {path.stat().st_size for path in tmp_path.iterdir()} == {1}


@pytest.mark.usefixtures("client")
def test_common_tasks_of_all_chunks_run_once_in_a_pass(A, tmp_path):
    A = np.nan_to_num(A)
    X = in_chunks_of_columns(A).map_blocks(count_calls(tmp_path), dtype=float)
    X = X - X.mean(axis=1, keepdims=True)
    source = as_stored_matrix(X)
    assert source.columns(np.array([], dtype=np.intp)).shape == (N, 0)
    blocks = [block for _, block, _ in source.map_blocks(describe_block)]
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), A - A.mean(axis=1, keepdims=True))
    assert {path.stat().st_size for path in tmp_path.iterdir()} == {1}


@pytest.mark.usefixtures("client")
def test_few_tasks_are_submitted_ahead(A, tmp_path):
    X = in_chunks_of_columns(A, 1).map_blocks(count_calls(tmp_path), dtype=float)
    pass_ = as_stored_matrix(X).map_blocks(describe_block)
    next(pass_)
    time.sleep(0.5)
    assert len(list(tmp_path.iterdir())) <= 2 * chunked._MIN_BATCH_SIZE
    pass_.close()


@pytest.mark.usefixtures("client")
def test_large_functions_are_submitted_without_a_warning(A):
    class Large:
        def __init__(self):
            self.values = np.arange(2_000_000.0)

        def __call__(self, _block, start, _xp):
            return self.values[start]

    assert list(as_stored_matrix(in_chunks_of_columns(A)).map_blocks(Large())) == list(
        range(0, P, WIDTH)
    )


def kill_one(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_tasks_of_a_lost_worker_are_run_again(client_to_be_harmed, A):
    X = in_chunks_of_columns(A)

    def slow(block, start, _xp):
        time.sleep(0.05)
        return start, np.array(block)

    pass_ = as_stored_matrix(X).map_blocks(slow)
    results = [next(pass_)]
    kill_one(client_to_be_harmed)
    results += pass_
    assert [start for start, _ in results] == list(range(0, P, WIDTH))
    np.testing.assert_array_equal(np.concatenate([block for _, block in results], axis=1), A)


@pytest.mark.usefixtures("client")
def test_a_chunk_that_fails_at_first_is_tried_again(A, tmp_path):
    X = in_chunks_of_columns(A).map_blocks(count_calls(tmp_path, fails=3), dtype=float)
    assert_passes_read(X, A)


@pytest.mark.usefixtures("client")
def test_a_chunk_that_fails_for_good(A, tmp_path):
    X = in_chunks_of_columns(A).map_blocks(count_calls(tmp_path, fails=100), dtype=float)
    source = as_stored_matrix(X)
    message = "^Columns 12 to 15 of the dask array cannot be read: the network is down. Check"
    with pytest.raises(UnreadableError, match=message):
        list(source.map_blocks(describe_block))
    with pytest.raises(UnreadableError, match=message):
        source.columns(np.array([80, 13]))
    np.testing.assert_array_equal(source.columns(np.array([80, 3])), A[:, [80, 3]])


@pytest.mark.usefixtures("client")
def test_errors_of_the_function_are_raised_unchanged(A, tmp_path):
    def fails(_block, start, _xp):
        with (tmp_path / str(start)).open("a") as file:
            file.write("x")
        raise OSError("ours")

    with pytest.raises(OSError, match="ours") as caught:
        list(as_stored_matrix(in_chunks_of_columns(A)).map_blocks(fails))
    assert type(caught.value) is OSError
    assert "in fails" in caught.value.__notes__[0]  # the traceback on the worker
    assert {path.stat().st_size for path in tmp_path.iterdir()} == {1}  # without a second attempt


class Unloadable:
    """A function that workers cannot load."""

    def __call__(self, _block, start, _xp):
        return start

    def __reduce__(self):
        return __import__, ("only_here",)


@pytest.mark.usefixtures("client")
def test_workers_that_lack_a_package(A):
    with pytest.raises(UnreadableError, match=r"No module named 'only_here'\. Install the same"):
        list(as_stored_matrix(in_chunks_of_columns(A)).map_blocks(Unloadable()))


# Fits ---------------------------------------------------------------------------------------

TABLE = clustered(20, 400)
TABLE[3, 7] = np.nan


def make_search(**options):
    options = {"max_rank": 2, "n_references": 10, "n_clusters": 3, "random_state": 0, **options}
    return MrSHC([10, 20], **options)


def assert_same_fit(model, expected):
    np.testing.assert_array_equal(model.get_support(), expected.get_support())
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    for name, values in expected.search_results_.items():
        np.testing.assert_allclose(model.search_results_[name], values, rtol=1e-9, atol=1e-12)


def in_chunks(folder=None):
    """Return the table in chunks, whose computations are recorded if there is a folder."""
    X = dask.array.from_array(TABLE, chunks=(20, 50))
    return X if folder is None else X.map_blocks(count_and_wait(folder), dtype=float)


def count_and_wait(folder):
    def count(block):
        (Path(folder) / f"{os.getpid()} {time.time_ns()}").touch()
        time.sleep(0.01)
        return block

    return count


@contextmanager
def one_worker_killed(client, is_time):
    """Kill a worker as soon as `is_time()`, and check that this was before the end."""
    over, killed = threading.Event(), threading.Event()

    def kill():
        while not over.wait(0.01):
            if is_time():
                kill_one(client)
                killed.set()
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
        assert killed.is_set(), "the work had ended before"
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("model", [make_search(), SHC(20, n_clusters=3, max_iter=3)])
@pytest.mark.usefixtures("client")
def test_a_fit_to_a_dask_array_equals_the_fit_to_the_array(model):
    expected = clone(model).fit(TABLE)
    found = clone(model).fit(in_chunks().persist())
    assert_same_fit(found, expected)
    assert found.n_passes_ > 2


def test_a_worker_lost_during_a_fit_does_not_change_the_result(client_to_be_harmed, tmp_path):
    """The worker and the chunks that were persisted on it are lost."""
    expected = make_search().fit(TABLE)
    X = in_chunks(tmp_path).persist()
    distributed.wait(X)
    n_calls = len(list(tmp_path.iterdir()))  # as the fit begins
    with one_worker_killed(client_to_be_harmed, lambda: len(list(tmp_path.iterdir())) >= n_calls):
        model = make_search().fit(X)
    assert_same_fit(model, expected)


@pytest.mark.usefixtures("client")
def test_trees_can_be_built_on_workers():
    with joblib.parallel_config("dask"):
        model = make_search().fit(TABLE)
    assert_same_fit(model, make_search().fit(TABLE))


def n_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_a_worker_lost_while_building_trees_does_not_change_the_result(client_to_be_harmed):
    options = {"n_references": 50, "stop_early": False}
    expected = make_search(**options).fit(TABLE)
    with (
        one_worker_killed(
            client_to_be_harmed, partial(client_to_be_harmed.run_on_scheduler, n_tasks)
        ),
        joblib.parallel_config("dask"),
    ):
        model = make_search(**options).fit(TABLE)
    assert_same_fit(model, expected)
