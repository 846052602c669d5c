"""Progress of a fit: through scikit-learn's callbacks, and as a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from mrshc.core.workers import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks yet."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "progress_bar", "reported", "with_callbacks"]


@contextmanager
def reported(estimator: Any, *, n_steps: int, X: Any, verbose: bool) -> Iterator[Progress]:
    """Yield a function that passes the steps of a fit on to callbacks and to the terminal."""
    with progress_bar(type(estimator).__name__, visible=verbose) as show:
        if not hasattr(estimator, "_skl_callbacks"):
            yield show
            return
        context = estimator._init_callback_context(max_subtasks=n_steps)
        context.call_on_fit_task_begin(estimator=estimator, X=X)
        finished = 0

        def report(done: int, total: int) -> None:
            nonlocal finished
            for _ in range(finished, done):
                step = context.subcontext(task_name="candidate")
                step.call_on_fit_task_begin(estimator=estimator)
                step.call_on_fit_task_end(estimator=estimator)
            finished = done
            show(done, total)

        yield report
        context.call_on_fit_task_end(estimator=estimator, X=X)


@contextmanager
def progress_bar(title: str, *, visible: bool) -> Iterator[Progress]:
    """Draw a bar on stderr, only if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not (visible and console.is_terminal)) as bar:
        task = bar.add_task(title)
        yield lambda done, total: bar.update(task, completed=done, total=total)
