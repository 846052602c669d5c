"""The decorator of all compiled functions: typed, interruptible, and cached on disk if possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Reentrant: while a function is compiled, those that it calls are made.
_making = RLock()


def jit(**options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that compiles a function on its first call.

    The function releases the interpreter's lock while it runs. Called from Python, Ctrl-C during
    the call raises KeyboardInterrupt; called from another compiled function, it is numba's own
    dispatcher, at no cost.

    Machine code is cached on disk (:mod:`~mrshc.core.kernels.compilation_cache`). Numba is imported
    with the first call: lists and types of the core can be imported without it.

    Parameters
    ----------
    **options
        Of :func:`numba.njit`, such as `fastmath`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _CompiledFunction(function, options)

    return decorate


class _CompiledFunction(Generic[P, R]):
    """A compiled function as Python calls it; to other compiled functions it is the dispatcher."""

    __qualname__: str

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, made when it is first needed."""
        if self._dispatcher is None:
            from numba import njit

            from mrshc.core.kernels.compilation_cache import CompilationCache

            with _making:
                if self._dispatcher is None:
                    dispatcher = njit(nogil=True, **self._options)(self.py_func)
                    # As Dispatcher.enable_caching does.
                    dispatcher._cache = CompilationCache(self.py_func)
                    self._dispatcher = dispatcher
        return self._dispatcher

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result: R = self.dispatcher(*args, **kwargs)
        except SystemError as error:
            # The signal is noticed when the machine code has returned a result: CPython reports
            # "returned a result with an exception set", with KeyboardInterrupt as the cause.
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
