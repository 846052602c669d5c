"""Errors of the library that the user can correct, beyond the ValueError of a wrong argument."""

from __future__ import annotations


class UserError(ValueError):
    """Error that the user can correct, such as an unsuitable value or file.

    The message states what was expected, what was given and how to correct the error. The message
    is a string, or a :class:`Sentence` if it mentions parameters.
    """


class MissingPackageError(ImportError, UserError):
    """Error for a package that is needed but not installed.

    The message states what needs the package, and how to install it.
    """


def format_error(error: BaseException) -> str:
    """Return the class and the message of an error as text, for tables of results.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    str
        The class name and the message. If the class is defined in this package, the name of its
        nearest base class outside the package is used, since readers of a table need not know the
        classes of this package.

    Examples
    --------
    >>> from mrshc.errors import UserError, format_error
    >>> format_error(UserError("The file is empty."))
    'ValueError: The file is empty.'
    """
    classes = (cls for cls in type(error).__mro__ if not cls.__module__.startswith("mrshc."))
    return f"{next(classes).__name__}: {error}"


class ResourceLostError(OSError):
    """Error raised if a resource outside this process, such as a compute cluster, is lost.

    The message states which resource is no longer available, and what the user can do.
    """
