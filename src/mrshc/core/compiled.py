"""The compiled loops of `core.kernels` under a lighter door: numba is imported with the first call.

`from mrshc.core import compiled`, then `compiled.alternate(...)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a compiled loop, and keep it here: next time nobody asks."""
    loop = getattr(import_module("mrshc.core.kernels"), name)
    globals()[name] = loop
    return loop
