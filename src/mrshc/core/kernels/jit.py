"""The decorator of all compiled loops: machine code is cached on disk where that is possible."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

_ADVICE = (
    "The machine code is compiled again in every process, which may take a minute. Set "
    "NUMBA_CACHE_DIR to a folder that can be written to."
)
_warned = False


class CompilationCacheWarning(UserWarning):
    """Compiled code cannot be kept: results are the same, but every process compiles anew."""


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a loop, without the interpreter's lock, on its first call.

    Unlike numba's own ``cache=True``, a cache that cannot be read or written is no error: a
    package and a home that are read-only are usual in containers and for service users.

    Parameters
    ----------
    **options
        Of :func:`numba.njit`, such as `fastmath`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        loop = njit(nogil=True, **options)(function)
        try:
            loop._cache = _TolerantCache(function)  # as Dispatcher.enable_caching does
        except (OSError, RuntimeError):  # numba found no folder for it
            _warn("There is no writable folder for compiled code.")
        return loop

    return decorate


class _TolerantCache(FunctionCache):
    """A cache of which every failure means the same: the loop is compiled."""

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


def _warn(problem: str) -> None:
    """Warn once in a process: all loops share the cause."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"{problem} {_ADVICE}", CompilationCacheWarning, stacklevel=2)
