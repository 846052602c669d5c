"""Spreads independent tasks over workers, and counts what is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

Progress = Callable[[int, int], None]  # steps done, steps in all


def results_of(
    function: Callable[..., Any], arguments: Iterable[dict[str, Any]], *, n_jobs: int | None
) -> Iterator[Any]:
    """Yield function(**kwargs) for each of the arguments, in their order.

    Threads unless the caller configured another backend of joblib: compiled code releases the
    interpreter. BLAS runs on one thread, since its sums depend on the number of threads.
    """
    tasks = (delayed(_on_one_blas_thread)(function, kwargs) for kwargs in arguments)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    # Held here too, so that threads that enter and leave the limit restore the same value.
    with _blas().limit(limits=1, user_api="blas"):
        yield from parallel(tasks)


def _on_one_blas_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    with _blas().limit(limits=1, user_api="blas"):
        return function(**kwargs)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


class Steps:
    """Counts finished steps and reports them."""

    def __init__(self, *, total: int, report: Progress) -> None:
        self._done = 0
        self._total = total
        self._report = report

    def advance(self, count: int) -> None:
        """Count some steps as done."""
        self._done += count
        self._report(self._done, self._total)
