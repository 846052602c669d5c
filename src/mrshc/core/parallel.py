"""Parallel execution of independent tasks, with progress and a fixed number of BLAS threads."""

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

# Called with the number of steps done and the total number of steps.
ProgressCallback = Callable[[int, int], None]

# Tasks that are submitted ahead for each thread: enough that no thread waits for the consumer of
# the results, few enough that little memory is needed for arguments. Not tuned: results do not
# depend on it.
_TASKS_PER_THREAD = 4


def run_in_parallel(
    function: Callable[..., Any],
    arguments: Iterable[dict[str, Any]],
    *,
    n_jobs: int | None,
    share_memory: bool = False,
) -> Generator[Any, None, None]:
    """Yield function(**kwargs) for all arguments in order, computed in parallel.

    Tasks run in threads, since compiled code releases the global interpreter lock, unless the
    caller has configured another backend of joblib. BLAS uses one thread in each task. Close the
    generator (`contextlib.closing`) to make sure that no task continues after an error in the
    calling code.

    Parameters
    ----------
    function : callable
        Function of one task.
    arguments : iterable of dict
        Keyword arguments of each task.
    n_jobs : int or None
        Number of workers, as in joblib; None for the configured number or one.
    share_memory : bool, default=False
        Whether tasks change objects of this process, so that they must run in threads.
    """
    backend, configured = get_active_backend(prefer="threads")
    n_jobs = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    if n_jobs == 1:
        return (_call_on_one_blas_thread(function, kwargs) for kwargs in arguments)
    if isinstance(backend, ThreadingBackend):
        return _run_in_threads(function, arguments, n_jobs=n_jobs)
    if share_memory:
        # The backend may have workers on other machines, more than this one has cores.
        return _run_in_threads(function, arguments, n_jobs=min(n_jobs, cpu_count()))
    tasks = (delayed(_call_on_one_blas_thread)(function, kwargs) for kwargs in arguments)
    # Some backends, such as multiprocessing, can return only a list of all results.
    can_generate = getattr(backend, "supports_return_generator", False)
    results = Parallel(n_jobs=n_jobs, return_as="generator" if can_generate else "list")(tasks)
    return (result for result in results)


def effective_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads of this process for a number of jobs, at most one per core."""
    backend, configured = get_active_backend(prefer="threads")
    n_workers = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    return int(min(n_workers, cpu_count()))


def _run_in_threads(
    function: Callable[..., Any], arguments: Iterable[dict[str, Any]], *, n_jobs: int
) -> Generator[Any, None, None]:
    """Yield function(**kwargs) for all arguments in order, computed in a pool of threads."""
    # Not joblib's threads, which take longer to start than a small search takes in all.
    pool = ThreadPoolExecutor(n_jobs)
    pending: deque[Future[Any]] = deque()
    try:
        for kwargs in arguments:
            pending.append(pool.submit(_call_on_one_blas_thread, function, kwargs))
            if len(pending) > _TASKS_PER_THREAD * n_jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _call_on_one_blas_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    with limit_blas_to_one_thread():
        return function(**kwargs)


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread, because its sums, and so the results, depend on the number.

    The limit holds for the whole process. The first of several concurrent contexts sets it and the
    last one restores the original number, so that fits in concurrent threads neither lift the limit
    too early nor leave it set.
    """
    global _n_contexts, _blas_limit
    with _lock:
        _n_contexts += 1
        if _n_contexts == 1:
            _blas_limit = _blas_controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _n_contexts -= 1
            if _n_contexts == 0:
                _blas_limit.restore_original_limits()


# State of `limit_blas_to_one_thread`: the number of active contexts, and the limit that the first
# one has set.
_lock = Lock()
_n_contexts = 0
_blas_limit: Any = None


@cache
def _blas_controller() -> ThreadpoolController:
    """Return the controller of the BLAS libraries of numpy and scipy."""
    # The controller finds only libraries that are loaded, and scipy may have a BLAS of its own.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


class StepCounter:
    """Counter of finished steps that reports each change.

    Parameters
    ----------
    total : int
        Total number of steps.
    report : callable
        Called with the number of steps done and the total number.
    """

    def __init__(self, *, total: int, report: ProgressCallback) -> None:
        self._n_done = 0
        self._total = total
        self._report = report

    def advance(self, count: int) -> None:
        """Add a number of finished steps."""
        self._n_done += count
        if count:
            self._report(self._n_done, self._total)
