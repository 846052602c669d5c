"""The cache of machine code on disk.

The machine code of a function includes that of the functions that it calls. Numba's own cache is
invalidated only by changes in the function's own file. The cache defined here is invalidated by
changes in any file of its folder, so that functions may call each other across files.

Unlike numba's own ``cache=True``, a cache that cannot be read or written is not an error: the
package and the home directory are often read-only in containers and for service users.
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
    "The machine code is compiled again in every process, which may take a minute. Set the "
    "environment variable NUMBA_CACHE_DIR to a writable folder."
)

# Whether this process has warned already: all functions have the same cache folder, and one
# warning for each of dozens of functions would be noise.
_has_warned = False


class CompilationCacheWarning(UserWarning):
    """Compiled code cannot be cached: results are the same, but every process compiles it again."""


class CompilationCache(NullCache):
    """A cache that looks for its folder when a function is first compiled, not when imported.

    Parameters
    ----------
    function : callable
        The Python function whose machine code is cached.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _storage(self) -> FunctionCache | NullCache:
        """Numba's cache in a folder, or one that stores nothing."""
        try:
            return _FolderCache(self._function)
        except (OSError, RuntimeError):  # numba raises either if it finds no writable folder
            _warn_once("There is no writable folder for compiled code.")
            return NullCache()

    @property
    def cache_path(self) -> str | None:
        """The cache folder; None if there is none."""
        return self._storage.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, or None if it must be compiled."""
        return self._storage.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the machine code for a signature."""
        self._storage.save_overload(sig, data)


class _FolderCache(FunctionCache):
    """A cache that is invalidated by a change of any source file in the function's folder.

    Files that cannot be read count as not cached; files that cannot be written cause a warning.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Replaces the index file made by numba, whose stamp covers the function's own file only.
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(
                self._impl.locator.get_source_stamp(),
                _source_hash(Path(getfile(function)).parent),
            ),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file may raise any exception
            with suppress(OSError):
                self.flush()  # replaces the damaged index by an empty one
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()  # further attempts would fail for the same reason
            _warn_once(f"Compiled code cannot be stored in {self.cache_path}: {error.strerror}.")


@cache  # computed once, since a process keeps the sources that it has imported
def _source_hash(folder: Path) -> str:
    """Return a hash of the names and contents of the Python files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        # Zero bytes separate the parts: text moved between a name and a content changes the hash.
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _warn_once(problem: str) -> None:
    """Warn that code cannot be cached, unless this process has done so already."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(f"{problem} {_ADVICE}", CompilationCacheWarning, stacklevel=2)
