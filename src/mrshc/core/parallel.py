"""Independent tasks in threads, with one BLAS thread each, and the progress of long ones."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from time import monotonic
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


# ----------------------------------------------------------------------------------- Progress

# Bars appear after so many seconds, on stderr, if it is a terminal.
_DELAY = 1.0
_is_shown: ContextVar[bool] = ContextVar("_is_shown", default=False)


@contextmanager
def no_progress() -> Iterator[None]:
    """Show no bars in this context."""
    token = _is_shown.set(True)
    try:
        yield
    finally:
        _is_shown.reset(token)


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield progress(n_done, n_steps), which shows a bar unless another one is shown."""
    if _is_shown.get() or not sys.stderr.isatty():
        yield lambda *_: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress as Bar
    except ImportError:  # a fit does not need rich
        yield lambda *_: None
        return
    token, begun = _is_shown.set(True), monotonic()
    bar = Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task(title.replace("[", r"\["), total=None)

    def report(n_done: int, n_steps: int) -> None:
        bar.update(task, completed=n_done, total=n_steps)
        if not bar.live.is_started and monotonic() - begun > _DELAY:
            bar.start()

    try:
        yield report
    finally:
        bar.stop()
        _is_shown.reset(token)
