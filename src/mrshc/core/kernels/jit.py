"""Decorator that compiles functions with numba, handles Ctrl-C and caches machine code on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# The lock is held while a dispatcher (numba's object for a compiled function) is created, since
# several threads may call the function for the first time.
_creation_lock = Lock()


def jit(*, allocates: bool = True, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that compiles a function on its first call.

    The compiled function releases the global interpreter lock while it runs. If the user presses
    Ctrl-C during a call from Python, KeyboardInterrupt is raised when the function returns. Calls
    from other compiled functions have no additional overhead.

    Machine code is cached on disk (:mod:`~mrshc.core.kernels.compilation_cache`). Numba is imported
    at the first call of a compiled function, so modules that define compiled functions can be
    imported quickly.

    Parameters
    ----------
    allocates : bool, default=True
        Whether the function makes new arrays, or receives some from the functions that it calls.
        If not, numba does not count references to the arrays of the function. In functions that
        take few microseconds, counting can take a large part of the time.
    **options
        Options of :func:`numba.njit`, such as `fastmath`.

    Returns
    -------
    callable
        The decorator. A decorated function keeps its name, signature and docstring. Its attribute
        `py_func` is the original Python function.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        # The option "_nrt", numba's runtime that counts references, is not documented;
        # `tests/core/kernels/test_jit.py` checks it. It is always given, since a function would
        # otherwise take over the option of its caller.
        return _CompiledFunction(function, options | {"_nrt": allocates})

    return decorate


class _CompiledFunction(Generic[P, R]):
    """Wrapper through which Python calls a compiled function.

    Other compiled functions do not call the wrapper, but insert the code of the function
    (:mod:`~mrshc.core.kernels.inner_functions`). The wrapper has two dispatchers, which are numba's
    objects that compile functions: one for calls from Python and one for insertion.

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
        # No function is passed to another function, so the interface for C is not needed.
        self._options = options | {"nogil": True, "no_cfunc_wrapper": True}
        self._dispatcher: Any = None
        self._inner_dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's object that compiles and calls the function; created on first use."""
        if self._dispatcher is None:
            from numba import njit

            from mrshc.core.kernels.compilation_cache import CompilationCache
            from mrshc.core.kernels.inner_functions import OuterFunctionCompiler

            with _creation_lock:
                # Another thread may have created the dispatcher while this thread waited for the
                # lock.
                if self._dispatcher is None:
                    dispatcher = njit(**self._options, pipeline_class=OuterFunctionCompiler)(
                        self.py_func
                    )
                    # Numba's Dispatcher.enable_caching sets this attribute to numba's standard
                    # cache. Numba has no public interface for setting another cache.
                    dispatcher._cache = CompilationCache(self.py_func)
                    self._dispatcher = dispatcher
        return self._dispatcher

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result: R = self.dispatcher(*args, **kwargs)
        except SystemError as error:
            # Python handles Ctrl-C only after the machine code has returned. Python then raises
            # SystemError ("returned a result with an exception set"), with KeyboardInterrupt as the
            # cause.
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__ or cause.__context__
            if cause is None:
                raise
            raise KeyboardInterrupt from None
        return result

    def __reduce__(self) -> str:
        return self.__qualname__  # the object is pickled by name, like a Python function

    @property
    def _numba_type_(self) -> Any:
        """Numba type of the inner dispatcher; numba reads it if compiled code calls the function.

        The code for insertion is not cached on disk, since the cached code of the callers contains
        it.
        """
        if self._inner_dispatcher is None:
            from numba import njit

            from mrshc.core.kernels.inner_functions import InnerFunctionCompiler

            options = self._options | {"no_cpython_wrapper": True}
            with _creation_lock:
                if self._inner_dispatcher is None:
                    self._inner_dispatcher = njit(**options, pipeline_class=InnerFunctionCompiler)(
                        self.py_func
                    )
        return self._inner_dispatcher._numba_type_
