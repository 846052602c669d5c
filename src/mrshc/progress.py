"""Progress of everything that takes longer than a second, on stderr, if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrshc.core.parallel import Progress

_DELAY = 1.0  # seconds before a bar appears
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
