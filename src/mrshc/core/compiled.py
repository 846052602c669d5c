"""The compiled loops of `core.kernels` under a lighter door: numba is imported with the first call.

`from mrshc.core import compiled`, then `compiled.alternate(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a compiled loop, and keep it here: next time nobody asks."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module("mrshc.core.kernels"), name)
    globals()[name] = value = found if isinstance(found, type) else _interruptible(found)
    return value


def _interruptible(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Let Ctrl-C be Ctrl-C: one that comes during a loop is reported as a fault of the loop."""

    @wraps(loop)
    def call(*arguments: Any) -> Any:
        try:
            return loop(*arguments)
        except SystemError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__ or cause.__context__
            if cause is None:
                raise
            raise KeyboardInterrupt from None

    return call
