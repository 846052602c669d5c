"""Warnings that refer to the user's line of code."""

from __future__ import annotations

import sys
import warnings

# Packages whose functions can stand between a call of the user and the warning: scikit-learn wraps
# `fit`, with a number of functions that depends on its version.
_PACKAGES = ("mrshc", "sklearn")


def warn_caller(warning: Warning) -> None:
    """Issue a warning that refers to the line that called this package.

    This is the innermost line of code that belongs neither to this package nor to scikit-learn. If
    there is no such line, the warning refers to the outermost line.
    """
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
