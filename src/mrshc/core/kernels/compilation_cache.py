"""The cache of machine code on disk: valid for one version of all sources, and never an error.

Machine code includes that of the functions which a function calls. Numba compares only the
function's own file with the one that was compiled; here all files of its folder count, so that
functions may call each other across files.

Unlike with numba's own ``cache=True``, a cache that cannot be read or written is no error: a
read-only package and home directory are usual in containers and for service users.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from inspect import getfile
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

_ADVICE = (
    "The machine code is compiled again in every process, which may take a minute. Set "
    "NUMBA_CACHE_DIR to a folder that can be written to."
)
_warned = False


class CompilationCacheWarning(UserWarning):
    """Compiled code cannot be cached: results are the same, but every process compiles it again."""


class CompilationCache(NullCache):
    """A cache that looks for its folder when a function is first compiled, not when imported."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _files(self) -> FunctionCache | NullCache:
        try:
            return _FolderCache(self._function)
        except (OSError, RuntimeError):  # numba found no folder for it
            _warn("There is no writable folder for compiled code.")
            return NullCache()

    @property
    def cache_path(self) -> str | None:
        """The folder, if there is one."""
        return self._files.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature; None: it has to be compiled."""
        return self._files.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the machine code for a signature."""
        self._files.save_overload(sig, data)


class _FolderCache(FunctionCache):
    """A cache valid as long as no source in the function's folder changes; failures are misses."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(
                self._impl.locator.get_source_stamp(),
                _hash_of_sources(Path(getfile(function)).parent),
            ),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may raise anything when it is unpickled
            with suppress(OSError):
                self.flush()  # an empty index takes its place
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            _warn(f"Compiled code cannot be stored in {self.cache_path}: {error.strerror}.")


@cache  # the sources do not change while a process imports them
def _hash_of_sources(folder: Path) -> str:
    """Return a hash of the Python files of a folder, their names included."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _warn(problem: str) -> None:
    """Warn once in a process: all functions share the cause."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"{problem} {_ADVICE}", CompilationCacheWarning, stacklevel=2)
