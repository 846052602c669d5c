"""Ctrl-C and SIGTERM stop a run at once, also while compiled code is at work."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

STOPPED = 130  # exit code of a program that was stopped by Ctrl-C
_TERMINATED = 143  # and by SIGTERM, as schedulers of batch jobs and containers send it


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

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(0.1)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def stop_on_termination() -> None:
    """Let SIGTERM end the program as Ctrl-C does: in order, and with a hint how to go on."""
    if threading.current_thread() is threading.main_thread():  # no other may set a handler
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(*_: Any) -> None:
    raise SystemExit(_TERMINATED)


def leave(code: Any) -> None:
    """End the process; if it was stopped, without waiting for computations under way."""
    if code in (STOPPED, _TERMINATED):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
