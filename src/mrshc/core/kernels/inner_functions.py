"""Compilers of functions that are called from Python and by other compiled functions.

Numba compiles every function to machine code, including functions that are called only by other
compiled functions. The machine code of a caller, however, contains a copy of the code of the
functions that it calls, so code in a chain of k calls is optimised and translated k times. With
`InnerFunctionCompiler`, a called function is translated only to the intermediate representation of
LLVM, which numba inserts into the callers. This halves the time of compilation.

The module uses classes of numba that are not documented. `tests/core/kernels/test_jit.py` checks
that they still behave as expected.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.types.containers import BaseNamedTuple, BaseTuple


class OuterFunctionCompiler(Compiler):
    """Compiler of functions that are called from Python, without garbage collection.

    The functions that they call are compiled meanwhile. Numba makes millions of objects, few of
    which can be freed before it has finished. To search for those would take a twelfth of the time.
    """

    def compile_extra(self, func: Any) -> Any:
        """Return the result of the compilation of a Python function.

        Raise TypeError if the function returns a named tuple. Numba makes it with Python code. If
        Ctrl-C was pressed during the call, that code raises KeyboardInterrupt, which numba does not
        expect, and the process would crash.
        """
        with _paused_garbage_collection():
            result = super().compile_extra(func)
        if _contains_named_tuple(result.signature.return_type):
            raise TypeError(
                f"{func.__name__} is called from Python, so it must not return a named tuple. "
                "Return a plain tuple."
            )
        return result


def _contains_named_tuple(numba_type: Any) -> bool:
    """Return whether a type is that of a named tuple, or of a tuple that contains one."""
    if isinstance(numba_type, BaseNamedTuple):
        return True
    return isinstance(numba_type, BaseTuple) and any(map(_contains_named_tuple, numba_type))


@contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """Disable the search for cyclic garbage. Numba's lock admits one thread at a time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class InnerFunctionCompiler(Compiler):
    """Compiler that leaves optimisation and translation to machine code to the callers.

    It is passed to :func:`numba.njit` as `pipeline_class`. The function cannot be called from
    Python.
    """

    def define_pipelines(self) -> Any:
        """Return the passes of the compiler, which are those of numba."""
        # If the library, the container of the code, exists already, numba uses it.
        self.state.library = _InnerLibrary(
            self.state.targetctx.codegen(), self.state.func_id.func_qualname
        )
        return super().define_pipelines()


class _InnerLibrary(JITCodeLibrary):
    """Code of a function and of the functions that it calls, without machine code."""

    @property
    def codegen(self) -> Any:
        """The object that generates code."""
        return _CodegenWithoutEnvironment(self._codegen)

    def _optimize_final_module(self) -> None:
        """Do nothing, since the code is optimised as a part of the callers."""

    def _finalize_final_module(self) -> None:
        """Mark the code as complete; numba would translate it to machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return zero, by which numba denotes a function without machine code."""
        self._ensure_finalized()
        return 0


class _CodegenWithoutEnvironment:
    """Numba's code generator, except that it stores no environment in the machine code.

    The environment of a function contains Python objects, which only the interface to Python uses.

    Parameters
    ----------
    codegen : numba.core.codegen.JITCPUCodegen
        The code generator.
    """

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing, since there is no machine code."""
