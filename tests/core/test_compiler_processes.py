"""Compilation in another process: what is compiled, and when such a process is started."""

import subprocess
import sys
import time

import pytest

from mrshc.core import compiler_processes
from mrshc.core.compiler_processes import PARTS, start_compiler_process

COUNT_SIGNATURES = """
import sys
import numpy as np
from mrshc import MrSHC
from mrshc.core import compiler_processes

compiler_processes.PARTS[sys.argv[1]]()
kernels = {
    name: value
    for module in list(sys.modules.values())
    if module.__name__.startswith("mrshc.core.kernels.")
    for name, value in vars(module).items()
    if getattr(value, "_dispatcher", None) is not None
}
before = {name: len(kernel.dispatcher.signatures) for name, kernel in kernels.items()}
X = np.random.default_rng(0).normal(size=(20, 60))
X[:10, :20] += 3
MrSHC(random_state=0, **eval(sys.argv[2])).fit(X)
print({n: (before[n], len(k.dispatcher.signatures)) for n, k in kernels.items()})
"""
# A function of each part, without which the part would be of no use.
PROCEDURES = {
    "association": ("analyse_variance", {"selection": "association", "linkage": "ward"}),
    "gap_test": ("split_test", {"n_features_to_select": [5, 10], "n_references": 5}),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_code_of_a_part_is_that_of_a_fit(part):
    function, parameters = PROCEDURES[part]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COUNT_SIGNATURES, part, repr(parameters)],
        capture_output=True,
        text=True,
        check=True,
    )
    counts = eval(done.stdout)
    assert counts[function] == (1, 1)
    compiled_again = {n for n, (before, after) in counts.items() if before != after}
    assert not compiled_again


@pytest.fixture
def started(monkeypatch):
    """Let processes be recorded, not started; no code is cached, and there are two cores."""
    commands = []

    def record(command, **_options):
        commands.append(command)

    monkeypatch.setattr(compiler_processes.subprocess, "Popen", record)
    monkeypatch.setattr(compiler_processes.atexit, "register", lambda *_: None)
    monkeypatch.setattr(compiler_processes, "has_cached_code", lambda: False)
    monkeypatch.setattr(compiler_processes, "_n_cores", lambda: 2)
    return commands


def test_a_process_is_started_for_a_first_fit(started):
    start_compiler_process("association", "gap_test")
    assert [command[-2:] for command in started] == [["association", "gap_test"]]


@pytest.mark.parametrize(
    ("name", "value"),
    [("has_cached_code", True), ("_n_cores", 1), ("cache_folder", None)],
    ids=["code is cached", "one core", "no folder for the code"],
)
def test_no_process_is_started_without_a_use(name, value, started, monkeypatch):
    monkeypatch.setattr(compiler_processes, name, lambda *_: value)
    start_compiler_process("association")
    assert not started


def test_the_process_ends_when_its_pipe_is_closed():
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from mrshc.core import compiler_processes as c; "
            "c.PARTS['endless'] = lambda: time.sleep(100); c.main()",
            "endless",
        ],
        stdin=subprocess.PIPE,
    )
    time.sleep(0.5)
    assert process.poll() is None, "it runs while the pipe is open"
    process.stdin.close()
    assert process.wait(timeout=20) == 1
