"""The command line in a process of its own, or in this process on a terminal.

Pictures take most of the time of a run on a small table: they are drawn only where a test asks for
them.
"""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest

INSTALLED = [str(Path(sys.executable).with_name("mrshc"))]
WITHOUT_PICTURES = [
    sys.executable,
    "-c",
    "from mrshc.plotting.result_pictures import PICTURES; PICTURES.clear()\n"
    "from mrshc.app import cli; cli.main()",
]


def mrshc(*arguments, pictures=False, **options):
    """Run a command to its end; return what it said and its exit code."""
    command = INSTALLED if pictures else WITHOUT_PICTURES
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


def main_here(*arguments):
    """Run a command in this process, where it starts faster; return its exit code."""
    from mrshc.app import cli

    with (
        mock.patch.object(sys, "argv", ["mrshc", *map(str, arguments)]),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    return ended.value.code


@contextmanager
def without_pictures():
    """Take the registered pictures away, which take long to draw; yield them by name."""
    from mrshc.plotting.result_pictures import PICTURES

    registered = dict(PICTURES)
    PICTURES.clear()
    try:
        yield registered
    finally:
        PICTURES.clear()
        PICTURES.update(registered)


def run_on_terminal(main, *arguments):
    """Run a command in this process, with a terminal as standard error.

    `main` is the fixture of that name. Returns the exit code, standard output, and the bytes that
    were written to the terminal.
    """
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    chunks = []

    def collect():
        while True:
            try:
                chunks.append(os.read(ours, 4096))
            except OSError:  # how Linux reports that the other end is closed
                return

    # The terminal holds few bytes: they must be read while the command runs.
    reader = Thread(target=collect)
    reader.start()
    with (
        os.fdopen(theirs, "w", encoding="utf-8") as terminal,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "120")
        patch.setattr(sys, "stderr", terminal)
        code, printed, _ = main(*arguments)
    reader.join()
    os.close(ours)
    return code, printed, b"".join(chunks)


@contextmanager
def files_limited_to(n_bytes):
    """Let no file of this process grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
