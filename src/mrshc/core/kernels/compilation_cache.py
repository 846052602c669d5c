"""Cache on disk for the machine code of compiled functions.

The machine code of a function includes the machine code of the functions that it calls. With
numba's standard cache (``cache=True``), a function is recompiled only if the file that defines the
function has changed. With the cache in this module, a function is recompiled if any Python file in
the same folder has changed, so functions may call functions from other files of the folder.

Numba's standard cache raises an error if there is no writable folder. The cache in this module
issues a warning instead, because the package folder and the home directory are often read-only in
containers and for service users.

If several processes need a function that is not in the cache, one of them compiles the function,
and the others wait for it, for at most a minute. With numba's standard cache, each of them compiles
the function.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, _CacheLocator

from mrshc.core.kernels.cache_folder import cache_folder, mark_cached_code, source_hash

# On Windows, which has other locks, several processes may compile the same function.
_HAS_LOCKS = os.name == "posix"
if _HAS_LOCKS:
    import fcntl

_ADVICE = (
    "The machine code is compiled again in every process, which may take a minute. Set the "
    "environment variable NUMBA_CACHE_DIR to a writable folder."
)

# Longest time for which a process waits until another process has compiled a function, in seconds.
# The other process may have been suspended. The slowest function takes about 10 s.
_MAX_WAIT = 60.0
_WAIT_INTERVAL = 0.02

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


class _KernelLocator(_CacheLocator):
    """The folder and the names of the cache files of a function, as numba asks for them."""

    def __init__(self, function: Callable[..., Any], file: str, folder: Path) -> None:
        self._py_file = file  # numba names this file in warnings
        self._first_line = function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _KernelLocator | None:
        folder = cache_folder(Path(py_file).parent)
        return None if folder is None else cls(py_func, py_file, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return source_hash(Path(self._py_file).parent)

    def get_disambiguator(self) -> str:
        return str(self._first_line)


class _KernelCacheImpl(CompileResultCacheImpl):
    """Numba's format of cache files, in the folder of this module's locator."""

    _locator_classes = (_KernelLocator,)


class _FolderCache(FunctionCache):
    """Cache on disk, invalidated by a change in any Python file in the folder of the function.

    If a cache file cannot be read, the function is compiled again. If a cache file cannot be
    written, a warning is issued.
    """

    _impl_class = _KernelCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        lock_name = f"{self._impl.filename_base}.lock"
        self._lock = _FileLock(Path(self.cache_path, lock_name))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # The lock is still held if numba could not compile the function for another signature.
        self._lock.release()
        code = self._load_undamaged(sig, target_context)
        if code is None and self._lock.acquire():
            # Another process may have stored the code while this process waited for the lock.
            code = self._load_undamaged(sig, target_context)
            if code is not None:
                self._lock.release()
        return code

    def _load_undamaged(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code, or None if it is not cached or the cache file is damaged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file may raise any exception
            with suppress(OSError):
                self.flush()  # replaces the damaged index by an empty index
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
            mark_cached_code(Path(self.cache_path), Path(self._impl.locator._py_file).parent)
        except OSError as error:
            self.disable()  # further attempts would fail for the same reason
            _warn_once(f"Compiled code cannot be stored in {self.cache_path}: {error.strerror}.")
        finally:
            self._lock.release()


class _FileLock:
    """Lock that a process holds while it compiles a function.

    The operating system releases the lock when the process ends, even if the process is killed.

    Parameters
    ----------
    path : Path
        The file that is locked. It is empty, and is never removed, since another process may be
        waiting for the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Wait for the lock; return False if it cannot be had.

        That is the case if another process holds the lock for too long, or if files cannot be
        locked on this system.
        """
        if not _HAS_LOCKS:
            return False
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT)
        except OSError:
            return False
        deadline = monotonic() + _MAX_WAIT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() < deadline:
                    sleep(_WAIT_INTERVAL)
                    continue
                os.close(descriptor)
                return False
            except OSError:  # some network file systems have no locks
                os.close(descriptor)
                return False
            self._descriptor = descriptor
            return True

    def release(self) -> None:
        """Release the lock; this has no effect if it is not held."""
        if self._descriptor is not None:
            # Closing the file would not be enough if this process has been forked.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None


def _warn_once(problem: str) -> None:
    """Warn that code cannot be cached, unless this process has already issued the warning."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(f"{problem} {_ADVICE}", CompilationCacheWarning, stacklevel=2)
