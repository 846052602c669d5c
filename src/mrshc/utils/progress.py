"""Progress of a fit: through scikit-learn's callbacks, and as a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from mrshc.core.parallel import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks yet."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Reporter", "progress_bar", "report_progress", "with_callbacks"]


class Reporter:
    """Is told what was done: called with the steps done and all steps, and sent to watch sweeps."""

    def __init__(self, step: Progress, show_message: Callable[[str], None]) -> None:
        self._step = step
        self.show_message = show_message
        self._pass, self._first, self._begun = 0, 0, 0.0

    def __call__(self, done: int, total: int) -> None:
        """Report steps."""
        self._step(done, total)

    def watch(self, shape: tuple[int, int], itemsize: int) -> Callable[[int, int], None]:
        """Return what is told, during a sweep over X, its number and the columns that are done."""
        n, p = shape

        def told(number: int, done: int) -> None:
            now = perf_counter()
            if number != self._pass:  # what the first block took cannot be known
                self._pass, self._first, self._begun = number, done, now
            said = f"pass {number}, {done / p:.0%}".replace("%", " %")
            if done > self._first and now > self._begun:
                rate = (done - self._first) * n * itemsize / (now - self._begun)
                said += f", {rate / 1e9:.1f} GB/s"
            self.show_message(said)

        return told


@contextmanager
def report_progress(estimator: Any, *, n_steps: int, X: Any, verbose: bool) -> Iterator[Reporter]:
    """Yield what passes the steps of a fit on to callbacks and to the terminal."""
    with progress_bar(type(estimator).__name__, visible=verbose) as bar:
        if not hasattr(estimator, "_skl_callbacks"):
            yield bar
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
            bar(done, total)

        yield Reporter(report, bar.show_message)
        context.call_on_fit_task_end(estimator=estimator, X=X)


@contextmanager
def progress_bar(title: str, *, visible: bool) -> Iterator[Reporter]:
    """Draw a bar on stderr, only if that is a terminal."""
    console = Console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not (visible and console.is_terminal)) as bar:
        task = bar.add_task(title)
        yield Reporter(
            lambda done, total: bar.update(task, completed=done, total=total),
            lambda said: bar.update(task, description=f"{title}  {said}"),
        )
