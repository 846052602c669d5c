"""Cache on disk for the machine code of compiled functions.

The machine code of a function includes the machine code of the functions that it calls. With
numba's standard cache (``cache=True``), a function is recompiled only if the file that defines the
function has changed. With the cache in this module, a function is recompiled if any Python file in
the same folder has changed, so functions may call functions from other files of the folder.

Numba's standard cache raises an error if there is no writable folder. The cache in this module
issues a warning instead, because the package folder and the home directory are often read-only in
containers and for service users.
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

# Whether this process has already issued the warning. All functions use the same cache folder, so
# one warning is enough for dozens of functions.
_has_warned = False


class CompilationCacheWarning(UserWarning):
    """Warning that compiled code cannot be cached on disk.

    Results are not affected, but every process has to compile the functions again.
    """


class CompilationCache(NullCache):
    """Cache for the machine code of one function.

    The cache folder is determined when the function is first called, not when the module of the
    function is imported.

    Parameters
    ----------
    function : callable
        The Python function whose machine code is cached.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _storage(self) -> FunctionCache | NullCache:
        """The cache in a folder, or a cache that stores nothing if no folder is writable."""
        try:
            return _FolderCache(self._function)
        except (OSError, RuntimeError):  # numba raises one of these if no folder is writable
            _warn_once("There is no writable folder for compiled code.")
            return NullCache()

    @property
    def cache_path(self) -> str | None:
        """The cache folder, or None if no folder is writable."""
        return self._storage.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for the signature `sig`, or None if it is not cached."""
        return self._storage.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store `data`, the machine code for the signature `sig`."""
        self._storage.save_overload(sig, data)


class _FolderCache(FunctionCache):
    """Cache on disk, invalidated by a change in any Python file in the folder of the function.

    If a cache file cannot be read, the function is compiled again. If a cache file cannot be
    written, a warning is issued.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Numba's constructor creates a cache file object that is invalidated only by changes in the
        # file that defines the function. That object is replaced here.
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_source_hash(Path(getfile(function)).parent),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file may raise any exception
            with suppress(OSError):
                self.flush()  # replaces the damaged index by an empty index
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()  # further attempts would fail for the same reason
            _warn_once(f"Compiled code cannot be stored in {self.cache_path}: {error.strerror}.")


@cache  # computed once per process, since a process does not reload changed source files
def _source_hash(folder: Path) -> str:
    """Return a hash of the names and contents of the Python files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        # Zero bytes separate names from contents. Without them, moving characters from the end of
        # a name to the start of the content would not change the hash.
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _warn_once(problem: str) -> None:
    """Warn that code cannot be cached, unless this process has already issued the warning."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(f"{problem} {_ADVICE}", CompilationCacheWarning, stacklevel=2)
