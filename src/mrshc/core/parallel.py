"""Parallel execution of independent tasks with one BLAS thread each, and progress reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import Context, ContextVar
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
    threads is restored, close the generator, for example with `contextlib.closing`. In the context
    `threads_for_parts`, calls share their threads. Tasks in threads can start further tasks with
    `start_if_idle`.

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
    backend, _ = get_active_backend(prefer="threads")
    n_jobs = _n_workers(n_jobs)
    if n_jobs == 1:
        return (_call_on_one_blas_thread(function, kwargs) for kwargs in arguments)
    if isinstance(backend, ThreadingBackend):
        return _run_in_threads(function, arguments, n_jobs=n_jobs)
    if share_memory:
        # A distributed backend may have more workers than this machine has cores, so the number of
        # threads is limited.
        return _run_in_threads(function, arguments, n_jobs=min(n_jobs, _n_cores()))
    tasks = (delayed(_call_on_one_blas_thread)(function, kwargs) for kwargs in arguments)
    # Some backends, such as multiprocessing, cannot return a generator, only a list of all results.
    can_generate = getattr(backend, "supports_return_generator", False)
    results = Parallel(n_jobs=n_jobs, return_as="generator" if can_generate else "list")(tasks)
    return (result for result in results)


def effective_n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs` workers, limited to one thread per core.

    If `n_jobs` is None, the number that is configured in joblib is used, which is 1 by default.
    """
    return min(_n_workers(n_jobs), _n_cores())


def _n_workers(n_jobs: int | None) -> int:
    """Return the number of workers for `n_jobs`, which joblib may have configured."""
    backend, configured = get_active_backend(prefer="threads")
    return int(backend.effective_n_jobs(configured if n_jobs is None else n_jobs))


@cache
def _n_cores() -> int:
    """Return the number of cores when this function is called first.

    joblib reads several files of the system to determine the number.
    """
    return int(cpu_count())


def _run_in_threads(
    function: Callable[..., Any], arguments: Iterable[dict[str, Any]], *, n_jobs: int
) -> Generator[Any, None, None]:
    """Yield function(**kwargs) for each kwargs in `arguments`, in order, using `n_jobs` threads."""
    # joblib is not used here, because starting its threads takes longer than a whole search on
    # small data. For the same reason, the calls of a search share their threads.
    pending: deque[Future[Any]] = deque()
    # The limit is set by the calling thread. If this thread is within a limit of the user, a limit
    # that another thread sets has no effect.
    with limit_blas_to_one_thread(), _threads(n_jobs) as pool:
        try:
            for kwargs in arguments:
                pending.append(pool.submit(partial(function, **kwargs)))
                if len(pending) > _TASKS_PER_THREAD * n_jobs:
                    yield _first_result(pending)
            while pending:
                yield _first_result(pending)
        finally:
            pool.cancel(pending)


def _first_result(pending: deque[Future[T]]) -> T:
    """Wait for the first of several futures, remove it, and return its result."""
    # If waiting is interrupted, the future remains among those that are cancelled.
    result = pending[0].result()
    pending.popleft()
    return result


class _Pool:
    """Threads for tasks, which can start further tasks in those threads that are idle.

    Parameters
    ----------
    n_threads : int
        Number of threads. They are started when there are tasks for them.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._executor = ThreadPoolExecutor(n_threads)
        self._lock = Lock()
        self._n_idle = n_threads  # negative if tasks are waiting
        self._further = set[Future[Any]]()  # unfinished tasks that other tasks have started

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Return the future result of a task, which runs as soon as a thread is idle."""
        with self._lock:
            future = self._executor.submit(self._run, task)
            self._n_idle -= 1
        return future

    def submit_if_idle(self, task: Callable[[], T]) -> Future[T] | None:
        """Return the future result of a task that an idle thread runs; None if there is none."""
        with self._lock:
            if self._n_idle <= 0:
                return None
            future = self._executor.submit(self._run, task)
            self._n_idle -= 1
            self._further.add(future)
        future.add_done_callback(self._further.discard)
        return future

    def _run(self, task: Callable[[], T]) -> T:
        try:
            # A task has the default settings for parts and threads, whatever its caller has.
            context = Context()
            context.run(_pool.set, self)
            return context.run(task)
        finally:
            with self._lock:
                self._n_idle += 1

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Cancel the tasks that have not begun; wait for the others and those they started."""
        is_cancelled = {future: future.cancel() for future in futures}
        with self._lock:
            self._n_idle += sum(is_cancelled.values())
        wait(future for future, cancelled in is_cancelled.items() if not cancelled)
        wait(self._further.copy())

    def shutdown(self) -> None:
        """Cancel the tasks that have not begun, wait for the others, and end the threads."""
        self._executor.shutdown(cancel_futures=True)


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
def _threads(n_threads: int) -> Iterator[_Pool]:
    """Context with threads: those of the context `threads_for_parts`, if there are as many."""
    shared = _shared_pool.get()
    if shared is not None and shared.n_threads == n_threads:
        yield shared
    else:
        with _own_threads(n_threads) as pool:
            yield pool


@contextmanager
def _own_threads(n_threads: int) -> Iterator[_Pool]:
    """Context with new threads, which end with the context."""
    pool = _Pool(n_threads)
    try:
        yield pool
    finally:
        pool.shutdown()


@contextmanager
def threads_for_parts(n_jobs: int | None) -> Iterator[None]:
    """Within this context, `run_parts` uses the threads of `n_jobs` workers.

    Calls of `run_in_parallel` with the same number of workers share their threads. The context
    applies to the calling thread only. Tasks that `run_in_parallel` executes in other threads do
    not start further threads.
    """
    with _own_threads(_n_workers(n_jobs)) as pool:
        tokens = _n_part_threads.set(effective_n_threads(n_jobs)), _shared_pool.set(pool)
        try:
            yield
        finally:
            _n_part_threads.reset(tokens[0])
            _shared_pool.reset(tokens[1])


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
