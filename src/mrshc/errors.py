"""Errors of the library that the user can correct, beyond the ValueError of a wrong argument."""

from __future__ import annotations


class UserError(ValueError):
    """Error that the user can correct, such as an unsuitable value or file.

    The message states what was expected, what was given and how to correct the error.
    """


class MissingPackageError(ImportError, UserError):
    """Error for a package that is needed but not installed.

    The message states what needs the package, and how to install it.
    """
