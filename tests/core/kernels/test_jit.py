"""Compiled loops work with and without a cache."""

import warnings

import pytest
from numba.core.caching import FunctionCache

from mrshc.core.kernels import compilation_cache
from mrshc.core.kernels.compilation_cache import CompilationCacheWarning
from mrshc.core.kernels.jit import jit


def double(x):
    return 2.0 * x


@pytest.fixture(autouse=True)
def first_warning(monkeypatch, tmp_path):
    """Let a process warn again, and keep its cache to itself."""
    monkeypatch.setattr(compilation_cache, "_warned", False)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))


def test_a_loop_is_cached(tmp_path):
    assert jit()(double)(3.0) == 6.0
    assert list(tmp_path.rglob("*.nbc"))
    again = jit()(double)
    assert again(3.0) == 6.0
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


def test_without_a_folder_for_the_cache_there_is_one_warning(monkeypatch):
    def refuse(*_):
        raise RuntimeError("cannot cache function: no locator available for file")

    monkeypatch.setattr(FunctionCache, "__init__", refuse)
    with pytest.warns(CompilationCacheWarning, match="no writable folder.*Set NUMBA_CACHE_DIR"):
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
