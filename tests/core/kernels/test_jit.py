"""Compiled functions: with and without a cache, called from Python and from each other."""

import gc
import inspect
import pickle
import subprocess
import sys
import time
import warnings
from threading import Timer
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.caching import FunctionCache
from numba.core.errors import TypingError

from mrshc.core.kernels import compilation_cache
from mrshc.core.kernels.compilation_cache import CompilationCacheWarning
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.vectors import sorted_union

INNER = """
from mrshc.core.kernels.jit import jit

@jit()
def scaled(x):
    return {factor} * x
"""

OUTER = """
from inner import scaled
from mrshc.core.kernels.jit import jit

@jit()
def shifted(x):
    return scaled(x) + 1.0

print(shifted(3.0), sum(shifted.dispatcher.stats.cache_hits.values()))
"""


@jit()
def reciprocal(x):
    """Return 1 / x of a positive number."""
    if x < 0.0:
        raise ValueError("negative")
    return 1.0 / x


@jit()
def shifted_reciprocal(x):
    """Return 1 / x + 1 of a positive number."""
    return reciprocal(x) + 1.0


def double(x):
    """Return twice x."""
    return 2.0 * x


def alternating_sum(first, second, count):
    """Return the sum of the first entries of two arrays, which are exchanged in each step."""
    total = 0.0
    for _ in range(count):
        total += first[0]
        first, second = second, first
    return total


def copied(values):
    """Return a copy of an array."""
    return values.copy()


@jit()
def first_of_copy(values):
    """Return the first entry of an array by way of a copy."""
    return values.copy()[0]


def first_by_copy(values):
    """Return the first entry of an array, which another function returns."""
    return first_of_copy(values)


class Pair(NamedTuple):
    """Two numbers."""

    first: float
    second: float


@jit()
def pair(x):
    """Return a number and its double, as a named tuple."""
    return Pair(x, 2.0 * x)


@jit()
def sum_of_pair(x):
    """Return three times a number, by way of a named tuple."""
    both = pair(x)
    return both.first + both.second


@pytest.fixture(autouse=True)
def isolated_cache(monkeypatch, tmp_path):
    """Let a process warn again, and keep its cache to itself."""
    monkeypatch.setattr(compilation_cache, "_has_warned", False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))


def count_references(function):
    """Return how often the code of a compiled function, but not its wrapper, counts references."""
    [code] = function.dispatcher.inspect_llvm().values()
    bodies = [part for part in code.split("define ") if "call void @NRT_incref" in part]
    return sum(part.count("call void @NRT_incref") for part in bodies if "wrapper" not in part)


@pytest.mark.parametrize("allocates", [True, False])
def test_references_are_counted_only_if_a_function_allocates(allocates):
    function = jit(allocates=allocates)(alternating_sum)
    assert function(np.ones(3), np.zeros(2), 5) == 3.0
    assert (count_references(function) > 0) == allocates


def test_a_function_that_allocates_nothing_may_call_one_that_does():
    assert jit(allocates=False)(first_by_copy)(np.arange(3.0) + 5.0) == 5.0


def test_a_function_that_is_said_to_allocate_nothing_must_not():
    with pytest.raises(TypingError, match="returning of array"):
        jit(allocates=False)(copied)(np.arange(3.0))


def test_a_loop_is_cached(tmp_path):
    assert jit()(double)(3.0) == 6.0
    assert list(tmp_path.rglob("*.nbc"))
    again = jit()(double)
    assert again(3.0) == 6.0
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


def test_a_called_function_is_part_of_the_code_of_its_caller(tmp_path):
    assert shifted_reciprocal(2.0) == 1.5
    assert [file.name.split("-")[0] for file in tmp_path.rglob("*.nbc")] == [
        "test_jit.shifted_reciprocal"
    ]
    assert reciprocal(4.0) == 0.25, "it can also be called from Python"


@pytest.mark.parametrize(
    ("x", "error", "message"), [(-1.0, ValueError, "negative"), (0.0, ZeroDivisionError, "zero")]
)
def test_an_error_of_a_called_function_is_raised(x, error, message):
    with pytest.raises(error, match=message):
        shifted_reciprocal(x)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_collection_is_as_before_the_compilation(is_enabled):
    @jit()
    def invalid(x):
        return x.no_such_attribute

    was_enabled = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        with pytest.raises(TypingError, match="no_such_attribute"):
            invalid(1.0)
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_without_a_folder_for_the_cache_there_is_one_warning(monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot cache function: no locator available for file")

    monkeypatch.setattr(FunctionCache, "__init__", refuse)
    with pytest.warns(CompilationCacheWarning, match="no writable folder.*NUMBA_CACHE_DIR"):
        assert jit()(double)(3.0) == 6.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit()(double)(4.0) == 8.0


def test_a_full_disk_under_the_cache_is_one_warning(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "_save_overload", full)
    with pytest.warns(CompilationCacheWarning, match="No space left on device.*NUMBA_CACHE_DIR"):
        assert jit()(double)(3.0) == 6.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit()(double)(4) == 8.0


def test_a_damaged_cache_is_compiled_anew(tmp_path):
    jit()(double)(3.0)
    for file in tmp_path.rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2])
    assert jit()(double)(3.0) == 6.0


@pytest.mark.slow
def test_a_change_in_a_called_function_of_another_file_is_noticed(tmp_path):
    def outer(factor):
        (tmp_path / "inner.py").write_text(INNER.format(factor=factor), encoding="utf-8")
        (tmp_path / "outer.py").write_text(OUTER, encoding="utf-8")
        command = [sys.executable, tmp_path / "outer.py"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert outer(2.0) == "7.0 0\n"
    assert outer(2.0) == "7.0 1\n", "loaded from the cache"
    assert outer(10.0) == "31.0 0\n", "compiled again"


def test_a_compiled_function_keeps_its_name_documentation_and_signature():
    twice = jit()(double)
    assert twice.__name__ == "double"
    assert twice.__doc__ == "Return twice x."
    assert inspect.signature(twice) == inspect.signature(double)


def test_a_compiled_function_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(sorted_union)) is sorted_union


def test_an_error_of_the_function_itself_is_not_an_interruption():
    @jit()
    def fail():
        raise SystemError("wrong")

    with pytest.raises(SystemError, match="wrong"):
        fail()


@pytest.fixture
def held_lock(tmp_path):
    """Return a lock that is held, and the path of its file."""
    path = tmp_path / "double.lock"
    lock = compilation_cache._FileLock(path)
    assert lock.acquire()
    yield lock, path
    lock.release()


def test_a_process_waits_while_another_compiles(held_lock):
    lock, path = held_lock
    Timer(0.2, lock.release).start()
    begun = time.monotonic()
    other = compilation_cache._FileLock(path)
    assert other.acquire()
    assert time.monotonic() - begun > 0.1
    other.release()


def test_a_process_does_not_wait_for_ever(held_lock, monkeypatch):
    _, path = held_lock
    monkeypatch.setattr(compilation_cache, "_MAX_WAIT", 0.1)
    assert not compilation_cache._FileLock(path).acquire()


def test_code_that_another_process_stored_in_the_meantime_is_loaded(monkeypatch):
    acquire = compilation_cache._FileLock.acquire

    def compile_elsewhere(lock):
        # Another process held the lock until it had stored the code.
        monkeypatch.setattr(compilation_cache._FileLock, "acquire", acquire)
        assert jit()(double)(3.0) == 6.0
        return lock.acquire()

    monkeypatch.setattr(compilation_cache._FileLock, "acquire", compile_elsewhere)
    late = jit()(double)
    assert late(3.0) == 6.0
    assert sum(late.dispatcher.stats.cache_hits.values()) == 1


def test_functions_called_from_python_return_no_named_tuples():
    """Ctrl-C would crash the process. Compiled functions may return them to each other."""
    assert sum_of_pair(2.0) == 6.0
    with pytest.raises(TypeError, match="pair is called from Python, so it must not"):
        pair(2.0)
