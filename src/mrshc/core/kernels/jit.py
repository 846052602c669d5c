"""The decorator of all compiled functions, which are typed, interruptible and cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Held while a dispatcher is created, since several threads may make the first call. Reentrant: the
# dispatchers of called functions are created while a function is compiled.
_creation_lock = RLock()


def jit(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that compiles a function on its first call.

    The function releases the global interpreter lock while it runs. When it is called from Python,
    Ctrl-C raises KeyboardInterrupt. When it is called from another compiled function, the call goes
    to numba's own dispatcher without overhead.

    Machine code is cached on disk (:mod:`~mrshc.core.kernels.compilation_cache`). Numba is imported
    at the first call, so that modules with compiled functions can be imported quickly.

    Parameters
    ----------
    **options
        Options of :func:`numba.njit`, such as `fastmath`.

    Returns
    -------
    callable
        The decorator. Decorated functions keep their name, signature and documentation; the
        Python function is their attribute `py_func`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _CompiledFunction(function, options)

    return decorate


class _CompiledFunction(Generic[P, R]):
    """A compiled function as called from Python; compiled functions see numba's dispatcher.

    Parameters
    ----------
    function : callable
        The Python function to compile.
    options : dict
        Options of :func:`numba.njit`.
    """

    __qualname__: str

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, created when it is first needed."""
        if self._dispatcher is None:
            from numba import njit

            from mrshc.core.kernels.compilation_cache import CompilationCache

            with _creation_lock:
                # Another thread may have created it while this one waited for the lock.
                if self._dispatcher is None:
                    dispatcher = njit(nogil=True, **self._options)(self.py_func)
                    # As Dispatcher.enable_caching does, with our cache in place of numba's. Numba
                    # has no public interface for it.
                    dispatcher._cache = CompilationCache(self.py_func)
                    self._dispatcher = dispatcher
        return self._dispatcher

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result: R = self.dispatcher(*args, **kwargs)
        except SystemError as error:
            # Python handles the signal after the machine code has returned, and reports "returned
            # a result with an exception set" with KeyboardInterrupt as the cause.
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__ or cause.__context__
            if cause is None:
                raise
            raise KeyboardInterrupt from None
        return result

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are

    @property
    def _numba_type_(self) -> Any:
        """The type that numba gives to this object where compiled code refers to it."""
        return self.dispatcher._numba_type_
