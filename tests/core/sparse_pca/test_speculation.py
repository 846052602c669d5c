"""Computations in advance are those that a bisection may need, and leave nothing behind."""

import threading
from functools import partial
from time import monotonic, sleep

import array_api_strict
import numpy as np
import pytest

from mrshc import MrSHC
from mrshc.core.sparse_pca import l1_path
from mrshc.core.sparse_pca.l1_path import bisect_l1_bound
from mrshc.core.sparse_pca.speculation import Bracket, Speculation, likely_bounds
from storage_backends import clustered


def never(_):
    return False


def wait_until(condition):
    """Wait until a condition holds; fail if it never does."""
    deadline = monotonic() + 60
    while not condition():
        assert monotonic() < deadline
        sleep(0.001)


@pytest.mark.parametrize("n_high", [None, 30.0])
def test_candidates_are_the_next_middles_in_order_of_probability(n_high):
    bracket = Bracket(low=1.0, high=9.0, n_low=10.0, n_high=n_high, current=5.0, limit=40.0)
    candidates = likely_bounds(bracket, 12, never)
    probabilities = [c.probability for c in candidates]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(candidates) == 14  # four levels of a bisection without the present middle
    # Twelve features are nearer to the lower end, if the number at the upper end is known.
    first = {c.l1_bound for c in candidates[:2]}
    assert first == ({3.0, 7.0} if n_high is None else {3.0, 2.0})
    nodes = {c.l1_bound: c.probability for c in candidates}
    assert nodes[3.0] + nodes[7.0] == pytest.approx(1.0)


def test_bounds_that_are_too_large_are_no_candidates():
    bracket = Bracket(low=1.0, high=17.0, n_low=1.0, n_high=None, current=1.0, limit=40.0)
    candidates = likely_bounds(bracket, 12, lambda bound: bound > 4.5)
    assert candidates[0].l1_bound == 3.0  # the middle after the bounds 9 and 5
    assert candidates[0].probability == 1.0
    assert max(c.l1_bound for c in candidates) <= 4.5


@pytest.mark.parametrize("seed", range(5))
def test_a_bisection_needs_only_bounds_that_were_candidates_before(seed):
    rng = np.random.default_rng(seed)
    sizes = np.cumsum(rng.integers(0, 3, size=1000))
    brackets, needed = [], []

    def features(bound, limit):
        needed.append(bound)
        size = int(sizes[min(int(bound * 10), 999)])
        return None if size >= limit else np.arange(size)

    bisect_l1_bound(features, 300, max_bound=99.0, tolerance=0, on_bracket=brackets.append)
    middles = [bracket.current for bracket in brackets[1:]]
    assert middles == needed[2:]
    for bracket, following in zip(brackets[1:], middles[1:], strict=False):
        assert following in {c.l1_bound for c in likely_bounds(bracket, 300, never)}


class Recorder:
    """Function that records calls and waits until it is told to end."""

    def __init__(self):
        self.bounds = []
        self.stopped = []
        self.may_end = threading.Event()

    def __call__(self, l1_bound, rank, limit, should_stop):
        self.bounds.append(l1_bound)
        wait_until(lambda: self.may_end.is_set() or should_stop())
        self.stopped.append(l1_bound)


def request(speculation, number, low, high, current):
    bracket = Bracket(low, high, 1.0, None, current, 50.0)
    speculation.request(number, bracket, never, q=10, rank=2)


def test_requests_use_idle_threads_only_and_end_when_they_are_not_needed():
    solve = Recorder()
    with Speculation(solve, n_threads=3) as speculation, speculation.search() as number:
        request(speculation, number, 1.0, 9.0, 5.0)
        wait_until(lambda: len(solve.bounds) == 2)
        assert set(solve.bounds) == {3.0, 7.0}
        # The search goes on in the lower half, so the computation in the upper half is ended.
        request(speculation, number, 1.0, 5.0, 3.0)
        wait_until(lambda: len(solve.bounds) == 3)
        assert solve.stopped == [7.0]
        assert solve.bounds[2] in {2.0, 4.0}
        solve.may_end.set()
    assert sorted(solve.stopped) == sorted(solve.bounds)


def test_nothing_runs_after_the_context():
    n_before, solve = threading.active_count(), Recorder()
    with Speculation(solve, n_threads=3) as speculation, speculation.search() as number:
        request(speculation, number, 1.0, 9.0, 5.0)
        wait_until(lambda: len(solve.bounds) == 2)
        speculation.stop()
        request(speculation, number, 1.0, 3.0, 2.0)
    assert threading.active_count() == n_before
    assert len(solve.stopped) == len(solve.bounds) == 2


def test_an_error_does_not_end_further_computations():
    calls = []

    def fail(l1_bound, *_):
        calls.append(l1_bound)
        raise MemoryError

    with Speculation(fail, n_threads=2) as speculation, speculation.search() as number:
        request(speculation, number, 1.0, 9.0, 5.0)
        wait_until(lambda: len(calls) == 14)


@pytest.fixture
def fit_on_device(monkeypatch):
    """Return a function that fits data on a device and returns labels, components and sizes."""
    X = array_api_strict.asarray(clustered(40, 600, seed=3).astype(np.float32))
    # All threads may compute in advance, and there are more threads than searches.
    monkeypatch.setattr(l1_path, "_SHARE_OF_THREADS", 1.0)
    monkeypatch.setattr(l1_path, "effective_n_threads", lambda n_jobs: n_jobs)

    def fit(n_jobs):
        model = MrSHC((5, 20), max_rank=2, n_clusters=3, random_state=0, n_jobs=n_jobs).fit(X)
        return model.labels_, model.components_, model.search_results_["n_features"]

    return fit


def test_results_do_not_depend_on_computations_in_advance(fit_on_device, monkeypatch):
    expected, n_before = fit_on_device(1), threading.active_count()
    bounds = []
    original = l1_path.ComponentPath._solve_in_advance

    def count(self, l1_bound, *args):
        bounds.append(l1_bound)
        return original(self, l1_bound, *args)

    monkeypatch.setattr(l1_path.ComponentPath, "_solve_in_advance", count)
    for n_jobs in (2, 6):
        for found, value in zip(fit_on_device(n_jobs), expected, strict=True):
            np.testing.assert_array_equal(found, value)
    assert bounds
    assert threading.active_count() == n_before


def test_errors_of_computations_in_advance_do_not_reach_the_user(fit_on_device, monkeypatch):
    expected, n_before = fit_on_device(1), threading.active_count()

    def fail(*_):
        raise RuntimeError("not needed")

    monkeypatch.setattr(l1_path.ComponentPath, "_solve_in_advance", fail)
    for found, value in zip(fit_on_device(6), expected, strict=True):
        np.testing.assert_array_equal(found, value)
    assert threading.active_count() == n_before


def test_an_interruption_ends_all_threads(fit_on_device, monkeypatch):
    n_before = threading.active_count()
    monkeypatch.setattr(
        l1_path, "run_in_parallel", partial(interrupt_after_one, l1_path.run_in_parallel)
    )
    with pytest.raises(KeyboardInterrupt):
        fit_on_device(6)
    assert threading.active_count() == n_before


def interrupt_after_one(original, function, arguments, **options):
    """Yield the first result, and raise KeyboardInterrupt as if the user had pressed Ctrl-C."""
    results = original(function, arguments, **options)
    try:
        for result in results:
            yield result
            raise KeyboardInterrupt
    finally:
        results.close()
