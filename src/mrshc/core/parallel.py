"""Spreads independent tasks over workers, and counts what is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from joblib import Parallel, cpu_count, delayed
from joblib.parallel import ThreadingBackend, get_active_backend
from threadpoolctl import ThreadpoolController

Progress = Callable[[int, int], None]  # steps done, steps in all


def results_of(
    function: Callable[..., Any],
    arguments: Iterable[dict[str, Any]],
    *,
    n_jobs: int | None,
    share_memory: bool = False,
) -> Generator[Any, None, None]:
    """Yield function(**kwargs) for each of the arguments, in their order.

    Threads, since compiled code releases the interpreter, unless the caller configured another
    backend of joblib and the tasks need not `share_memory`. Close the generator (`closing`) to be
    sure that no task runs on after an error of your own.
    """
    backend, configured = get_active_backend(prefer="threads")
    n_jobs = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    if n_jobs == 1:
        return (_on_one_blas_thread(function, kwargs) for kwargs in arguments)
    if isinstance(backend, ThreadingBackend):
        return _in_threads(function, arguments, n_jobs)
    if share_memory:  # the workers of the backend may be many, and elsewhere
        return _in_threads(function, arguments, min(n_jobs, cpu_count()))
    tasks = (delayed(_on_one_blas_thread)(function, kwargs) for kwargs in arguments)
    one_by_one = getattr(backend, "supports_return_generator", False)
    found = Parallel(n_jobs=n_jobs, return_as="generator" if one_by_one else "list")(tasks)
    return (result for result in found)


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that work in this process may use."""
    backend, configured = get_active_backend(prefer="threads")
    wanted = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    return int(min(wanted, cpu_count()))


def _in_threads(
    function: Callable[..., Any], arguments: Iterable[dict[str, Any]], n_jobs: int
) -> Generator[Any, None, None]:
    """Spread tasks over threads of our own: joblib takes longer to begin than a small search."""
    pool = ThreadPoolExecutor(n_jobs)
    # Few tasks wait at a time, so that few arguments are held.
    waiting: deque[Future[Any]] = deque()
    try:
        for kwargs in arguments:
            waiting.append(pool.submit(_on_one_blas_thread, function, kwargs))
            if len(waiting) > 4 * n_jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _on_one_blas_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    with one_blas_thread():
        return function(**kwargs)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: its sums, and so our results, depend on the number of threads.

    The limit is one for the whole process. It is set by the first who asks and lifted by the last,
    so that fits in concurrent threads neither lift it too early nor leave it behind.
    """
    global _holders, _limit
    with _lock:
        _holders += 1
        if _holders == 1:
            _limit = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limit.restore_original_limits()


_lock = Lock()
_holders = 0
_limit: Any = None


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - its BLAS must be there to be found

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
        if count:
            self._report(self._done, self._total)
