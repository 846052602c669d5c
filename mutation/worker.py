"""Run the tests of mutants in a copy of the project.

Reads one JSON object for each line of standard input and answers with one. The packages are
imported and the compiled loops loaded once; each mutant gets a copy of this process (fork), which
imports the modules of the package anew, except for the compiled loops, which are never mutated.
"""

import contextlib
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

COPY = Path(sys.argv[1])
_KEPT = ("mrshc.core.kernels", "mrshc.core.array_types")


def main():
    """Answer requests until the input ends."""
    sys.path[:0] = [str(COPY / "src"), str(COPY / "tests"), str(COPY / "mutation")]
    os.chdir(COPY)
    _warm_up()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            outcome = _run_in_copy_of_process(json.loads(line))
            print(json.dumps({"outcome": outcome}), file=answers, flush=True)


def _warm_up():
    """Import the libraries and load the compiled loops."""
    import numpy as np
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import sklearn.utils.estimator_checks  # noqa: F401

    from mrshc import SHC, MrSHC

    X = np.random.default_rng(0).normal(size=(20, 60))
    X[:10, :10] += 3
    warnings.simplefilter("ignore")
    for data in (X, np.where(X > 2.5, np.nan, X)):
        for options in ({}, {"robust": True}, {"refine": True}, {"selection": "evidence"}):
            with contextlib.suppress(ValueError):
                MrSHC(5, random_state=0, **options).fit(data)
    SHC(5).fit(X)
    warnings.resetwarnings()


def _run_in_copy_of_process(request):
    """Return "passed", "failed" or "timeout" of the requested tests with the mutated file."""
    file = COPY / request["file"] if request["file"] else None
    original = file.read_text(encoding="utf-8") if file else None
    if file:
        file.write_text(request["source"], encoding="utf-8")
    try:
        child = os.fork()
        if child == 0:
            os._exit(_run_tests(request))
        return _wait(child, request["limit"])
    finally:
        if file:
            file.write_text(original, encoding="utf-8")


def _wait(child, limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _run_tests(request):
    """Run pytest in this process; return its exit code."""
    os.setsid()
    sys.dont_write_bytecode = True
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    for name in [name for name in sys.modules if name.split(".")[0] == "mrshc"]:
        if not name.startswith(_KEPT):
            del sys.modules[name]
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", *request["options"]]
    try:
        return int(pytest.main([*options, *request["tests"]]))
    except BaseException:
        return 1


if __name__ == "__main__":
    main()
