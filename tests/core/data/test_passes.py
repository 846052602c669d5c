"""Passes are counted, report their progress, and may use several threads."""

import threading

import numpy as np
import pytest

from mrshc.core.data.passes import Passes

WIDTHS = (3, 1, 4, 1, 5)


class Blocks:
    """A matrix of columns 0 to 13, in five blocks, that records how far it has been read."""

    def __init__(self, *, has_local_blocks=True):
        self.has_local_blocks = has_local_blocks
        self.n_read = 0

    def map_blocks(self, function):
        """Yield the results of the function."""
        start = 0
        for width in WIDTHS:
            self.n_read += 1
            yield function(np.arange(start, start + width)[np.newaxis], start, np)
            start += width


def describe(block, start, xp):
    return start, block.sum(), xp, threading.get_ident()


@pytest.mark.parametrize("options", [{}, {"n_threads": 1}, {"n_threads": 2}, {"n_threads": 9}])
@pytest.mark.parametrize("n_before", [None, 0, 4])
def test_results_are_in_order_and_progress_is_reported(options, n_before):
    reports = []
    if n_before is not None:
        options = {**options, "n_passes": n_before}
    passes = Passes(Blocks(), on_block=lambda *report: reports.append(report), **options)
    first = n_before or 0
    assert passes.n_passes == first
    for index in (first + 1, first + 2):
        reports.clear()
        starts, sums, namespaces, _ = zip(*passes.map(describe), strict=True)
        assert starts == (0, 3, 4, 8, 9)
        assert sums == (3, 3, 22, 8, 55)
        assert set(namespaces) == {np}
        assert passes.n_passes == index
        assert reports == [(index, n_done) for n_done in (3, 4, 8, 9, 14)]


@pytest.mark.parametrize(
    ("n_threads", "is_local", "in_caller"),
    [(None, True, True), (1, True, True), (2, True, False), (2, False, True)],
)
def test_threads_are_used_only_for_local_blocks(n_threads, is_local, in_caller):
    options = {} if n_threads is None else {"n_threads": n_threads}
    data = Blocks(has_local_blocks=is_local)
    threads = {ident for *_, ident in Passes(data, **options).map(describe)}
    assert (threads == {threading.get_ident()}) == in_caller


@pytest.mark.parametrize(("n_threads", "n_read"), [(1, 1), (2, 3), (3, 4)])
def test_few_blocks_are_read_ahead_of_the_results(n_threads, n_read):
    data = Blocks()
    results = Passes(data, n_threads=n_threads).map(describe)
    next(results)
    assert data.n_read == n_read
    next(results)
    assert data.n_read == n_read + 1
    results.close()
