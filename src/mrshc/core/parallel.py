"""Independent tasks in threads, with one BLAS thread each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

# Function that is called with the number of finished steps and the number of all steps.
Progress = Callable[[int, int], None]

# Threads for the tasks of the present context. Threads that run tasks have the default, so tasks
# that start further tasks run them one after another.
_n_threads: ContextVar[int] = ContextVar("_n_threads", default=1)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Within this context, `run` uses as many threads as `n_jobs` says in joblib.

    BLAS uses one thread: rounding errors would depend on the number, and the tasks share the cores.
    That number belongs to the process: of fits in threads of the user, the first that ends may
    restore it.
    """
    token = _n_threads.set(min(joblib.effective_n_jobs(n_jobs), joblib.cpu_count()))
    try:
        with _one_blas_thread():
            yield
    finally:
        _n_threads.reset(token)


def _one_blas_thread() -> Any:
    # A limit that is met already belongs to another fit, which may end earlier, and restores it.
    libraries = [library for library in _blas().info() if library["user_api"] == "blas"]
    if all(library["num_threads"] == 1 for library in libraries):
        return nullcontext()
    return _blas().limit(limits=1, user_api="blas")


def n_threads() -> int:
    """Return the number of threads that `run` uses."""
    return _n_threads.get()


@cache
def _blas() -> ThreadpoolController:
    # The controller knows the libraries that are loaded, and scipy may have a BLAS of its own.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def run(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """Yield function(item) for each item, in order; items are taken shortly before they are used.

    After an error or Ctrl-C, tasks that have not begun are cancelled.
    """
    n_workers = _n_threads.get()
    if n_workers == 1:
        yield from map(function, items)
        return
    pending: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > 2 * n_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def count(results: Iterable[T], n_steps: int, progress: Progress) -> Iterator[T]:
    """Yield the results, and report how many there are."""
    for n_done, result in enumerate(results, start=1):
        progress(n_done, n_steps)
        yield result


def run_fits(
    function: Callable[..., T], arguments: Iterable[tuple[Any, ...]], n_jobs: Any
) -> Iterator[T]:
    """Yield function(*args) for whole fits, in order, by joblib with the backend of the user."""
    tasks = (joblib.delayed(_on_one_blas_thread)(function, *args) for args in arguments)
    # The number of BLAS threads belongs to the process: the first fit that ends would restore it.
    with _one_blas_thread():
        yield from joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks)


def _on_one_blas_thread(function: Callable[..., T], *args: Any) -> T:
    with threads(1):
        return function(*args)
