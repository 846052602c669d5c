"""Report the progress of a fit to scikit-learn's callbacks and to a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from mrshc.core.parallel import ProgressCallback

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty substitute for the mixin of later versions of scikit-learn."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged: there are no callbacks to call."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "ProgressReporter",
    "progress_bar",
    "report_progress",
    "with_callbacks",
]


class ProgressReporter:
    """Callback for finished steps, and for the blocks of a pass over the data.

    Parameters
    ----------
    step : callable
        Called with the number of finished steps and the number of all steps.
    show_message : callable
        Called with a short text on the current pass.
    """

    def __init__(self, step: ProgressCallback, show_message: Callable[[str], None]) -> None:
        self._step = step
        self.show_message = show_message
        # The current pass: its number, the columns done at its first report, and when that was.
        self._pass, self._first, self._begun = 0, 0, 0.0

    def __call__(self, done: int, total: int) -> None:
        """Report the number of finished steps."""
        self._step(done, total)

    def pass_callback(self, shape: tuple[int, int], itemsize: int) -> Callable[[int, int], None]:
        """Return a callback for the blocks of passes over X, which shows progress and throughput.

        Parameters
        ----------
        shape : tuple of int
            Shape of X, (n_samples, n_features).
        itemsize : int
            Bytes of a value of X.

        Returns
        -------
        callable
            To be called after each block with the number of the pass and the number of columns
            done.
        """
        n, p = shape

        def report_block(number: int, done: int) -> None:
            now = perf_counter()
            # The time before the first report of a pass is unknown: the rate counts from there.
            if number != self._pass:
                self._pass, self._first, self._begun = number, done, now
            message = f"pass {number}, {done / p:.0%}".replace("%", " %")
            if done > self._first and now > self._begun:
                rate = (done - self._first) * n * itemsize / (now - self._begun)
                message += f", {rate / 1e9:.1f} GB/s"
            self.show_message(message)

        return report_block


@contextmanager
def report_progress(
    estimator: Any, *, n_steps: int, X: Any, verbose: bool
) -> Iterator[ProgressReporter]:
    """Yield a reporter that passes the steps of a fit on to callbacks and to a progress bar.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted. Its callbacks of scikit-learn, if any, are called.
    n_steps : int
        Number of all steps.
    X : array-like
        Data of the fit, for the callbacks.
    verbose : bool
        Whether to show a progress bar on a terminal.

    Yields
    ------
    reporter : Reporter
        Callback for finished steps and blocks.
    """
    with progress_bar(type(estimator).__name__, visible=verbose) as bar:
        # scikit-learn sets this attribute when callbacks are registered.
        if not hasattr(estimator, "_skl_callbacks"):
            yield bar
            return
        context = estimator._init_callback_context(max_subtasks=n_steps)
        context.call_on_fit_task_begin(estimator=estimator, X=X)
        finished = 0

        def report(done: int, total: int) -> None:
            nonlocal finished
            # Callbacks expect one task for each step, but several steps may be reported at once.
            for _ in range(finished, done):
                step = context.subcontext(task_name="candidate")
                step.call_on_fit_task_begin(estimator=estimator)
                step.call_on_fit_task_end(estimator=estimator)
            finished = done
            bar(done, total)

        yield ProgressReporter(report, bar.show_message)
        context.call_on_fit_task_end(estimator=estimator, X=X)


@contextmanager
def progress_bar(title: str, *, visible: bool) -> Iterator[ProgressReporter]:
    """Yield a reporter that draws a progress bar on stderr, if that is a terminal.

    Parameters
    ----------
    title : str
        Text in front of the bar.
    visible : bool
        False never draws the bar.

    Yields
    ------
    reporter : Reporter
        Callback for finished steps and blocks.
    """
    console = Console(stderr=True)
    # Names of files may hold square brackets, which must not be read as markup.
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not (visible and console.is_terminal)) as bar:
        task = bar.add_task(title)
        yield ProgressReporter(
            lambda done, total: bar.update(task, completed=done, total=total),
            lambda message: bar.update(task, description=f"{title}  {message}"),
        )
