"""Parallel execution of independent tasks with one BLAS thread each, and progress reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from threading import Lock
from typing import Any, TypeVar

from joblib import Parallel, cpu_count, delayed
from joblib.parallel import ThreadingBackend, get_active_backend
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# Function that is called with the number of finished steps and the total number of steps.
ProgressCallback = Callable[[int, int], None]

# Number of tasks per thread that are submitted before the first result is awaited. The number is
# large enough that threads rarely wait for new tasks, and small enough that the arguments of
# waiting tasks need little memory. It has not been tuned; it does not affect the results.
_TASKS_PER_THREAD = 4

# From this number of samples on, trees are built one after another, and the threads share the work
# on each tree (`run_parts`). Trees in several threads would need several matrices of the distances
# between the samples at the same time, each of 32 MB for this number of samples.
MANY_SAMPLES = 2000

# Number of threads for the parts of the task that the present thread executes. Threads that this
# module starts have the default.
_n_part_threads: ContextVar[int] = ContextVar("_n_part_threads", default=1)


def run_in_parallel(
    function: Callable[..., Any],
    arguments: Iterable[dict[str, Any]],
    *,
    n_jobs: int | None,
    share_memory: bool = False,
) -> Generator[Any, None, None]:
    """Return a generator that yields function(**kwargs) for each kwargs in `arguments`, in order.

    The calls (tasks) run in parallel. By default they run in threads, since compiled code releases
    the global interpreter lock. If the caller has configured another joblib backend, that backend
    runs the tasks, unless `share_memory` is True. BLAS uses one thread in each task. To make sure
    that no task continues to run after an error in the calling code, and that the number of BLAS
    threads is restored, close the generator, for example with `contextlib.closing`.

    Parameters
    ----------
    function : callable
        Function that is called once for each task.
    arguments : iterable of dict
        One dict of keyword arguments for each task.
    n_jobs : int or None
        Number of workers, as in joblib. If None, the number that is configured in joblib is used,
        which is 1 by default.
    share_memory : bool, default=False
        Whether the tasks modify objects of this process. If True, the tasks always run in threads.
    """
    backend, configured = get_active_backend(prefer="threads")
    n_jobs = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    if n_jobs == 1:
        return (_call_on_one_blas_thread(function, kwargs) for kwargs in arguments)
    if isinstance(backend, ThreadingBackend):
        return _run_in_threads(function, arguments, n_jobs=n_jobs)
    if share_memory:
        # A distributed backend may have more workers than this machine has cores, so the number of
        # threads is limited.
        return _run_in_threads(function, arguments, n_jobs=min(n_jobs, cpu_count()))
    tasks = (delayed(_call_on_one_blas_thread)(function, kwargs) for kwargs in arguments)
    # Some backends, such as multiprocessing, cannot return a generator, only a list of all results.
    can_generate = getattr(backend, "supports_return_generator", False)
    results = Parallel(n_jobs=n_jobs, return_as="generator" if can_generate else "list")(tasks)
    return (result for result in results)


def effective_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs` workers, limited to one thread per core.

    If `n_jobs` is None, the number that is configured in joblib is used, which is 1 by default.
    """
    backend, configured = get_active_backend(prefer="threads")
    n_workers = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    return int(min(n_workers, _n_cores()))


@cache
def _n_cores() -> int:
    """Return the number of cores; joblib reads files of the system to determine it."""
    return int(cpu_count())


def _run_in_threads(
    function: Callable[..., Any], arguments: Iterable[dict[str, Any]], *, n_jobs: int
) -> Generator[Any, None, None]:
    """Yield function(**kwargs) for each kwargs in `arguments`, in order, using `n_jobs` threads."""
    # joblib is not used here, because starting its threads takes longer than a whole search on
    # small data. For the same reason, the calls of a search share their threads.
    shared = _shared_pool.get()
    is_shared = shared is not None and shared.n_threads == n_jobs
    pool = shared if shared is not None and is_shared else _Pool(n_jobs)
    pending: deque[Future[Any]] = deque()
    # The limit is set by the calling thread. If this thread is within a limit of the user, a limit
    # that another thread sets has no effect.
    with limit_blas_to_one_thread():
        try:
            for kwargs in arguments:
                pending.append(pool.submit(partial(function, **kwargs)))
                if len(pending) > _TASKS_PER_THREAD * n_jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.cancel(pending)
            if not is_shared:
                pool.shutdown()


class _Pool:
    """Threads for tasks, which can start further tasks in those threads that are idle.

    Parameters
    ----------
    n_threads : int
        Number of threads.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._executor = ThreadPoolExecutor(n_threads)
        self._lock = Lock()
        self._n_idle = n_threads  # negative if tasks are waiting

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Return the future result of a task, which runs as soon as a thread is idle."""
        with self._lock:
            self._n_idle -= 1
        return self._executor.submit(self._run, task)

    def submit_if_idle(self, task: Callable[[], T]) -> Future[T] | None:
        """Return the future result of a task that an idle thread runs; None if there is none."""
        with self._lock:
            is_idle = self._n_idle > 0
            self._n_idle -= is_idle
        return self._executor.submit(self._run, task) if is_idle else None

    def _run(self, task: Callable[[], T]) -> T:
        _pool.set(self)
        try:
            return task()
        finally:
            with self._lock:
                self._n_idle += 1

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Cancel those tasks that have not begun, and wait for the others."""
        is_cancelled = {future: future.cancel() for future in futures}
        with self._lock:
            self._n_idle += sum(is_cancelled.values())
        wait(future for future, cancelled in is_cancelled.items() if not cancelled)

    def shutdown(self) -> None:
        """Wait for all tasks, and end the threads."""
        self._executor.shutdown()


# The pool that executes the present task; None in a thread that does not belong to a pool.
_pool: ContextVar[_Pool | None] = ContextVar("_pool", default=None)
# The pool of the context `threads_for_parts`, in the thread that has entered the context.
_shared_pool: ContextVar[_Pool | None] = ContextVar("_shared_pool", default=None)


def start_if_idle(function: Callable[..., T], *args: Any) -> Callable[[], T] | None:
    """Start function(*args) in an idle thread of the pool that executes the present task.

    Return a function that waits for the result and returns it. Return None, without starting
    anything, if no thread is idle.
    """
    pool = _pool.get()
    future = None if pool is None else pool.submit_if_idle(partial(function, *args))
    return None if future is None else future.result


@contextmanager
def threads_for_parts(n_jobs: int | None) -> Iterator[None]:
    """Within this context, `run_parts` uses the threads of `n_jobs` workers.

    Calls of `run_in_parallel` with the same number of threads share their threads. The context
    applies to the calling thread only. Tasks that `run_in_parallel` executes in other threads do
    not start further threads.
    """
    n_threads = effective_n_threads(n_jobs)
    pool = _Pool(n_threads)  # starts threads only if there are tasks
    tokens = _n_part_threads.set(n_threads), _shared_pool.set(pool)
    try:
        yield
    finally:
        _n_part_threads.reset(tokens[0])
        _shared_pool.reset(tokens[1])
        pool.shutdown()


def run_parts(function: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """Return [function(*args) for args in arguments], computed in threads.

    The number of threads is that of the context `threads_for_parts`, and 1 outside of it. The next
    arguments are made only when a thread is about to become free, so that the arguments of waiting
    parts need no memory.
    """
    n_threads = _n_part_threads.get()
    if n_threads == 1:
        return [function(*args) for args in arguments]
    results: list[Future[T]] = []
    with ThreadPoolExecutor(n_threads) as pool:
        running: set[Future[T]] = set()
        for args in arguments:
            if len(running) == n_threads:
                running = wait(running, return_when=FIRST_COMPLETED).not_done
            results.append(pool.submit(function, *args))
            running.add(results[-1])
    return [future.result() for future in results]


def _call_on_one_blas_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    with limit_blas_to_one_thread():
        return function(**kwargs)


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread within this context.

    The order of summation in BLAS depends on the number of threads. With a limit of one thread, the
    rounding of results is reproducible.

    The limit applies to the whole process. If several contexts overlap in different threads, the
    first context sets the limit, and the last context that ends restores the original number of
    threads.
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


# State of `limit_blas_to_one_thread`: a lock, the number of active contexts, and the limit that the
# first context has set.
_lock = Lock()
_n_contexts = 0
_blas_limit: Any = None


@cache
def _blas_controller() -> ThreadpoolController:
    """Return an object that sets the number of threads of the BLAS libraries in use."""
    # scipy is imported because the controller detects only libraries that have been loaded, and
    # scipy may use a different BLAS library from numpy.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


class StepCounter:
    """Counts finished steps, and calls a function whenever the count changes.

    Parameters
    ----------
    total : int
        Total number of steps.
    report : callable
        Function that is called with the number of finished steps and the total number of steps.
    """

    def __init__(self, *, total: int, report: ProgressCallback) -> None:
        self._n_done = 0
        self._total = total
        self._report = report

    def advance(self, count: int) -> None:
        """Add `count` finished steps, and call `report` unless `count` is zero."""
        self._n_done += count
        if count:
            self._report(self._n_done, self._total)
