"""Report the progress of a fit to the callbacks of scikit-learn and to a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from mrshc.core.kernels.cache_folder import has_cached_code
from mrshc.core.parallel import ProgressCallback
from mrshc.optional_packages import require_packages

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # versions of scikit-learn before 1.9 have no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty substitute for the class of the same name in later versions of scikit-learn."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged, since this version of scikit-learn has no callbacks."""
        return method


_COMPILATION = "compiling the numerical loops, only in the first run"

__all__ = [
    "CallbackSupportMixin",
    "ProgressReporter",
    "progress_bar",
    "report_progress",
    "with_callbacks",
]


class ProgressReporter:
    """Object that is called to report the progress of a fit.

    Calling the object reports finished steps. The method `pass_callback` returns a function that
    reports the blocks of columns that have been read in a pass (one complete read) over the data.

    Parameters
    ----------
    step : callable
        Function that is called with the number of finished steps and the total number of steps.
    show_message : callable
        Function that is called with a short text about the current pass.
    """

    def __init__(self, step: ProgressCallback, show_message: Callable[[str], None]) -> None:
        self._step = step
        self.show_message = show_message
        # Number of the current pass, number of columns that were finished at the first report of
        # the pass, and time of that report.
        self._pass, self._first, self._begun = 0, 0, 0.0

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` steps are finished."""
        self._step(done, total)

    def pass_callback(self, shape: tuple[int, int], itemsize: int) -> Callable[[int, int], None]:
        """Return a function that shows the progress and the speed of passes over X.

        A pass is one complete read of the data, which are read in blocks of columns.

        Parameters
        ----------
        shape : tuple of int
            Shape of X, (n_samples, n_features).
        itemsize : int
            Size of one value of X in bytes.

        Returns
        -------
        callable
            Function that must be called after each block, with the number of the pass and the
            number of columns that have been read in the pass.
        """
        n, p = shape

        def report_block(number: int, done: int) -> None:
            now = perf_counter()
            # The time at which a pass began is unknown, so the speed is measured from the first
            # report of the pass.
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
    """Yield an object that reports the progress of a fit to callbacks and to a progress bar.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted. If scikit-learn callbacks are registered with the estimator,
        they are called.
    n_steps : int
        Number of steps of the fit.
    X : array-like
        Data of the fit, which are passed to the callbacks.
    verbose : bool
        Whether to show a progress bar if stderr is a terminal.

    Yields
    ------
    reporter : ProgressReporter
        Object that must be called when steps are finished.
    """
    with progress_bar(type(estimator).__name__, visible=verbose) as bar:
        if verbose and not has_cached_code():
            bar = _with_message_before_first_step(bar, _COMPILATION)
        # The attribute exists only if callbacks are registered with the estimator.
        if not hasattr(estimator, "_skl_callbacks"):
            yield bar
            return
        context = estimator._init_callback_context(max_subtasks=n_steps)
        context.call_on_fit_task_begin(estimator=estimator, X=X)
        finished = 0

        def report(done: int, total: int) -> None:
            nonlocal finished
            # scikit-learn requires one task for each step, but one call may report several
            # finished steps.
            for _ in range(finished, done):
                step = context.subcontext(task_name="candidate")
                step.call_on_fit_task_begin(estimator=estimator)
                step.call_on_fit_task_end(estimator=estimator)
            finished = done
            bar(done, total)

        yield ProgressReporter(report, bar.show_message)
        context.call_on_fit_task_end(estimator=estimator, X=X)


def _with_message_before_first_step(bar: ProgressReporter, message: str) -> ProgressReporter:
    """Show a message, and return an object that removes it when a step is finished."""
    bar.show_message(message)
    is_shown = True

    def report(done: int, total: int) -> None:
        nonlocal is_shown
        if is_shown and done > 0:
            bar.show_message("")
            is_shown = False
        bar(done, total)

    return ProgressReporter(report, bar.show_message)


@contextmanager
def progress_bar(title: str, *, visible: bool) -> Iterator[ProgressReporter]:
    """Yield an object that reports progress to a progress bar on stderr.

    Parameters
    ----------
    title : str
        Text in front of the bar.
    visible : bool
        Whether to show the bar. The bar is never shown if stderr is not a terminal.

    Yields
    ------
    reporter : ProgressReporter
        Object that must be called when steps are finished.

    Raises
    ------
    MissingPackageError
        If the bar is to be shown and Rich is not installed.
    """
    hidden = ProgressReporter(lambda _done, _total: None, lambda _message: None)
    if not visible:
        yield hidden
        return
    require_packages(["rich"], purpose="A progress bar", extra="cli")
    # Rich is imported here because fits without a progress bar do not need it.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        # A hidden bar of some versions of Rich would write an empty line at its end.
        yield hidden
        return
    # The title may contain file names with square brackets, which Rich must not interpret as
    # markup.
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(title)
        yield ProgressReporter(
            lambda done, total: bar.update(task, completed=done, total=total),
            lambda message: bar.update(task, description=f"{title}  {message}"),
        )
