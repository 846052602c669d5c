"""Errors of the library, and messages that name its parameters.

The library names parameters as Python code does: `n_clusters`, `in_memory=False`. An application
has other names for them, such as the options of a command line. A :class:`Sentence` therefore keeps
the parameters that it names, so that an application can render it with its own names without
searching the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that a message names.

    Parameters
    ----------
    name : str
        Name of the parameter in Python.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Setting(Parameter):
    """A parameter with a value, rendered as in a call.

    Parameters
    ----------
    name : str
        Name of the parameter in Python.
    value : object
        Its value; ``...`` stands for any value.
    of : str, default=""
        Name of the class that takes the parameter, if the message has to name it.

    Examples
    --------
    >>> from mrshc.errors import Setting
    >>> print(Setting("floor", 100, class_name="Thresholds"))
    Thresholds(floor=100)
    """

    value: Any
    class_name: str = ""

    def __str__(self) -> str:
        value = "..." if self.value is ... else repr(self.value)
        argument = f"{self.name}={value}"
        return f"{self.class_name}({argument})" if self.class_name else argument


@dataclass(frozen=True, slots=True)
class PythonOnly:
    """A part of a message that applies to Python code only; applications leave it out.

    Parameters
    ----------
    text : str
        The text.
    """

    text: str

    def __str__(self) -> str:
        return self.text


# A function that returns the name of a parameter, alone or with a value, in an application.
ParameterNaming = Callable[[Parameter], str]


class Sentence(str):
    """A message that names parameters. Its text has their names in Python.

    Parameters
    ----------
    template : str
        The message, with fields as in `str.format`.
    **fields
        Values of the fields. Those of type `Parameter`, `Setting`, `PythonOnly`, `Sentence` and
        exceptions are rendered again by :meth:`reword`.

    Attributes
    ----------
    template : str
        As given.
    fields : dict
        As given.

    See Also
    --------
    worded : The same for a text or an exception that may or may not hold a `Sentence`.

    Examples
    --------
    >>> from mrshc.errors import Sentence, Setting
    >>> advice = Sentence("Transposed files need {memory}.", memory=Setting("in_memory", True))
    >>> print(advice)
    Transposed files need in_memory=True.
    >>> advice.reword(lambda parameter: f"the option {parameter.name!r}")
    "Transposed files need the option 'in_memory'."
    """

    __slots__ = ("fields", "template")

    template: str
    fields: dict[str, Any]

    def __new__(cls, template: str, **fields: Any) -> Self:
        """Render the text with the names of parameters in Python."""
        # An empty field at the end, such as advice that is not given, leaves a trailing blank.
        self = super().__new__(cls, template.format(**fields).rstrip())
        self.template, self.fields = template, fields
        return self

    def reword(self, naming: ParameterNaming) -> str:
        """Return the text with the parameter names of an application.

        Parameters
        ----------
        naming : callable
            Takes a `Parameter` or `Setting` and returns its name in the application.
        """
        fields = {name: _render_field(field, naming) for name, field in self.fields.items()}
        return self.template.format(**fields).rstrip()

    def __reduce__(self) -> tuple[Any, ...]:
        # A string is pickled by its text alone, which would lose template and fields.
        return _from_template, (type(self), self.template, self.fields)


def _from_template(cls: Callable[..., Any], template: str, fields: dict[str, Any]) -> Any:
    """Return a sentence or an error, as unpickling needs it: pickle passes no keywords."""
    return cls(template, **fields)


def _render_field(field: Any, naming: ParameterNaming) -> Any:
    """Return the value of a field with the parameter names of an application."""
    if isinstance(field, Parameter):
        return naming(field)
    if isinstance(field, PythonOnly):
        return ""
    # Messages may contain messages, and errors with messages.
    return reword(field, naming) if isinstance(field, str | BaseException) else field


def reword(text: str | BaseException, naming: ParameterNaming) -> str:
    """Return a message, or that of an error, with the parameter names of an application.

    Parameters
    ----------
    text : str or BaseException
        The message. Plain text, and errors without a `Sentence`, are returned as they are.
    naming : callable
        Takes a `Parameter` or `Setting` and returns its name in the application.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> from mrshc.errors import invalid_parameter_error, reword
    >>> error = invalid_parameter_error("rank", 0, allowed="be at least 1")
    >>> reword(error, lambda parameter: parameter.name.upper())
    'RANK must be at least 1, got 0.'
    """
    if isinstance(text, BaseException):
        message = text.args[0] if len(text.args) == 1 else None
        return message.reword(naming) if isinstance(message, Sentence) else str(text)
    return text.reword(naming) if isinstance(text, Sentence) else text


class UserError(ValueError):
    """An error that the user can correct, such as an unsuitable value or file.

    The message says what was expected, what was given and what to do. It is a string, or a
    :class:`Sentence` if it names parameters.
    """


class ParameterError(UserError):
    """An invalid value of a parameter, or an invalid combination of values.

    Parameters
    ----------
    template : str
        The message, with fields as in `str.format`. `{value}`, `{allowed}` and `{advice}` are
        fields too.
    value : object, default=None
        The value that was given.
    allowed : str, default=""
        Requirement, as a verb phrase after "must", such as "be a whole number in [1, 5]".
    advice : str, default=""
        A sentence that tells the user what to do.
    **fields
        Values of the other fields; parameters are of type `Parameter` or `Setting`.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters, in the order of the fields.
    value : object
        As given.
    allowed : str
        As given.
    advice : str
        As given.

    See Also
    --------
    invalid_parameter_error : Make the error of one parameter in the usual wording.

    Examples
    --------
    >>> from mrshc import SHC
    >>> from mrshc.errors import ParameterError
    >>> try:
    ...     SHC(linkage="far").fit([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    ... except ParameterError as error:
    ...     print(error.parameters, error.value)
    ('linkage',) far
    """

    def __init__(
        self,
        template: str,
        *,
        value: Any = None,
        allowed: str = "",
        advice: str = "",
        **fields: Any,
    ) -> None:
        # `value`, `allowed` and `advice` are included, since the template may use them and an
        # unpickled copy is made from the template and all fields.
        self._fields = {"value": value, "allowed": allowed, "advice": advice, **fields}
        super().__init__(Sentence(template, **self._fields))
        self._template = template
        self.parameters = tuple(f.name for f in fields.values() if isinstance(f, Parameter))
        self.value = value
        self.allowed = allowed
        self.advice = advice

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their arguments, which would lose the attributes of an error
        # that is raised in a worker process.
        return _from_template, (type(self), self._template, self._fields)


def invalid_parameter_error(
    name: str, value: Any, *, allowed: str, advice: str = ""
) -> ParameterError:
    """Return the error of a parameter with an invalid value.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        The value that was given.
    allowed : str
        Requirement, as a verb phrase after "must", such as "be in [0, 1]".
    advice : str, default=""
        A sentence that tells the user what to do.

    Returns
    -------
    ParameterError
        The error, not raised.

    Examples
    --------
    >>> from mrshc.errors import invalid_parameter_error
    >>> allowed = "be a whole number at least 1"
    >>> print(invalid_parameter_error("rank", 0, allowed=allowed, advice="Try 1."))
    rank must be a whole number at least 1, got 0. Try 1.
    """
    return ParameterError(
        "{parameter} must {allowed}, got {value!r}. {advice}",
        parameter=Parameter(name),
        value=value,
        allowed=allowed,
        advice=advice,
    )


def format_error(error: BaseException) -> str:
    """Return the class and the message of an error, for tables of results.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    str
        The class is the nearest one that this package does not define: readers of a table need not
        know the classes of this package.

    Examples
    --------
    >>> from mrshc.errors import UserError, format_error
    >>> format_error(UserError("The file is empty."))
    'ValueError: The file is empty.'
    """
    classes = (cls for cls in type(error).__mro__ if not cls.__module__.startswith("mrshc."))
    return f"{next(classes).__name__}: {error}"


class ResourceLostError(OSError):
    """A resource outside this process, such as a cluster of workers, is no longer available.

    The message says which one, and what to do.
    """
