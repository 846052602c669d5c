"""Stop a run at once on Ctrl-C or SIGTERM, even while compiled code is running."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

# Exit codes of a program that is ended by SIGINT (Ctrl-C) or by SIGTERM. By the convention of
# shells, the code is 128 plus the number of the signal. Batch systems and container managers send
# SIGTERM.
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

# Seconds between two checks for a signal: too short for a user to notice, and long enough that the
# checks take no noticeable computing time. The value is not tuned: it does not affect results.
_POLL_INTERVAL = 0.1


def run_interruptibly(work: Callable[[], Any]) -> Any:
    """Call a function in a thread, so that signals can interrupt it, and return its result.

    Python handles signals only in the main thread, and only between two bytecode instructions. If
    the main thread executed a long compiled loop, signals would be handled only after the loop.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        # Every exception of the function is raised again in the main thread.
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
    """Make SIGTERM raise SystemExit, so that the run ends in the same way as on Ctrl-C."""
    # Python allows only the main thread to set a signal handler.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _raise_system_exit)


def _raise_system_exit(*_: Any) -> None:
    raise SystemExit(EXIT_TERMINATED)


def exit_process(code: Any) -> None:
    """End the process with an exit code.

    After a signal, the process ends without waiting for computations in other threads.
    """
    if code in (EXIT_INTERRUPTED, EXIT_TERMINATED):
        # `os._exit` skips Python's cleanup, which would wait for worker threads. It also skips the
        # flushing of the output streams, which is therefore done here.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
