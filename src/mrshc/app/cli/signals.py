"""Stop a run on Ctrl-C or SIGTERM at once, also while compiled code is running."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

# Exit codes of a program ended by SIGINT (Ctrl-C) and by SIGTERM, by the convention of shells:
# 128 plus the number of the signal. Schedulers of batch jobs and containers send SIGTERM.
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

# Seconds between two looks for a signal: short for a user, long for a computer. Not tuned: results
# do not depend on it.
_POLL_INTERVAL = 0.1


def run_interruptibly(work: Callable[[], Any]) -> Any:
    """Call a function in a thread, so that signals can interrupt it, and return its result.

    Python handles signals in the main thread only, and only between two of its own instructions.
    A main thread that ran a long compiled loop itself would not notice them.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        # Every exception is raised again in the main thread.
        except BaseException as error:
            outcome["error"] = error

    # A daemon thread does not keep the process alive after an interruption.
    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(_POLL_INTERVAL)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def handle_termination() -> None:
    """Make SIGTERM raise `SystemExit`, so that the run is ended as on Ctrl-C."""
    # Python allows only the main thread to set a handler.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _raise_system_exit)


def _raise_system_exit(*_: Any) -> None:
    raise SystemExit(EXIT_TERMINATED)


def exit_process(code: Any) -> None:
    """End the process; after a signal, without waiting for computations in other threads."""
    if code in (EXIT_INTERRUPTED, EXIT_TERMINATED):
        # `os._exit` skips the cleanup of Python, which would wait for worker threads, and with it
        # the flushing of the streams.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
