"""Warnings that refer to the user's line of code."""

from __future__ import annotations

import sys
import warnings

# Packages whose functions may have been called between the user's line and the warning. How many
# functions of scikit-learn wrap `fit` depends on its version; its searches call `fit` by joblib.
_PACKAGES = ("mrshc", "sklearn", "joblib")


def warn_caller(warning: Warning) -> None:
    """Issue a warning that refers to the line that called this package.

    This is the innermost line of code that belongs to none of mrshc, scikit-learn and joblib. If
    there is no such line, the warning refers to the outermost line.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
