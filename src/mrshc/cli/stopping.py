"""Ctrl-C is heard at once, also while compiled code is at work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

STOPPED = 130  # exit code of a program that was stopped by Ctrl-C


def heard(work: Callable[[], Any]) -> Any:
    """Do some work in a thread of its own and return its result.

    Signals reach the main thread, and only between two steps of Python: it must not be the one
    that waits for a long computation.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error

    worker = Thread(target=run, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(0.1)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def leave(code: Any) -> None:
    """End the process; if it was stopped, without waiting for computations under way."""
    if code == STOPPED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STOPPED)
    sys.exit(code)
