"""A plugin for pytest that records which test executes which line of `core/`, and its duration."""

import json
import os
import time
from collections import defaultdict
from pathlib import Path

import coverage
import pytest

_LINES = Path(os.environ.get("MRSHC_LINES", "lines.json"))


def pytest_configure(config):
    """Begin to measure before the package is imported."""
    config.measurement = coverage.Coverage(data_file=None, include=["*/src/mrshc/core/*"])
    config.measurement.start()
    config.durations = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Attribute the lines that are executed from here on to this test."""
    item.config.measurement.switch_context(item.nodeid)
    started = time.monotonic()
    yield
    item.config.durations[item.nodeid] = round(time.monotonic() - started, 3)


def pytest_unconfigure(config):
    """Write the tests of each line of each file, and the seconds of each test."""
    config.measurement.stop()
    data = config.measurement.get_data()
    tests = {}
    for file in data.measured_files():
        lines = defaultdict(list)
        for line, contexts in data.contexts_by_lineno(file).items():
            lines[line] = sorted(contexts)
        tests[file] = lines
    with _LINES.open("w", encoding="utf-8") as output:
        json.dump({"lines": tests, "seconds": config.durations}, output)
