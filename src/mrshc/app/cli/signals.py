"""Stop a run at once on Ctrl-C or SIGTERM, even while compiled code is running."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
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
    """Return the result of a function that is called in a separate thread.

    Signals can interrupt the main thread while it waits for the function. Python handles signals
    only in the main thread, and only between two bytecode instructions. If the main thread executed
    a long compiled loop, signals would be handled only after the loop. Exceptions of the function
    are raised again in the main thread.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        # BaseException includes KeyboardInterrupt and SystemExit, which are not subclasses of
        # Exception.
        except BaseException as error:
            outcome["error"] = error

    # A daemon thread does not keep the process alive after an interruption.
    worker = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
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

    If the code is that of SIGINT or SIGTERM, the process does not wait for other threads.
    """
    if code in (EXIT_INTERRUPTED, EXIT_TERMINATED):
        # `os._exit` skips Python's cleanup, which would wait for worker threads. `os._exit` does
        # not flush the output streams either, so the streams are flushed here.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
