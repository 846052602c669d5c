"""Errors of the library, and sentences that name its parameters.

The library names parameters as Python code does: `n_clusters`, `in_memory=False`. An application
calls them otherwise, such as by the options of a command line. A :class:`Sentence` therefore keeps
the parameters that it names, so that an application can word it again without searching its text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that a sentence names."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Setting(Parameter):
    """A parameter with a value, as it is given in a call; the value ... stands for any."""

    value: Any
    of: str = ""  # the class that takes it, if the sentence must say so

    def __str__(self) -> str:
        value = "..." if self.value is ... else repr(self.value)
        given = f"{self.name}={value}"
        return f"{self.of}({given})" if self.of else given


@dataclass(frozen=True, slots=True)
class PythonOnly:
    """A part of a sentence that helps in Python only; an application leaves it out."""

    text: str

    def __str__(self) -> str:
        return self.text


# Returns how an application calls a parameter, alone or with a value.
Wording = Callable[[Parameter], str]


class Sentence(str):
    """A sentence that names parameters; as text, by their names in Python.

    Parameters
    ----------
    template : str
        The sentence, with fields as in `str.format`.
    **fields
        Their values; those of type `Parameter`, `Setting` and `PythonOnly`, and other sentences,
        can be worded otherwise.

    Examples
    --------
    >>> from mrshc.errors import Sentence, Setting
    >>> said = Sentence("The other way round needs {memory}.", memory=Setting("in_memory", True))
    >>> print(said)
    The other way round needs in_memory=True.
    >>> said.worded(lambda parameter: f"the switch {parameter.name!r}")
    "The other way round needs the switch 'in_memory'."
    """

    __slots__ = ("fields", "template")

    template: str
    fields: dict[str, Any]

    def __new__(cls, template: str, **fields: Any) -> Self:
        """Make the text of a sentence, with the names of parameters in Python."""
        self = super().__new__(cls, template.format(**fields).rstrip())
        self.template, self.fields = template, fields
        return self

    def worded(self, wording: Wording) -> str:
        """Return the sentence with parameters called as an application calls them."""
        fields = {name: _worded(field, wording) for name, field in self.fields.items()}
        return self.template.format(**fields).rstrip()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.template, self.fields)


def _made_again(kind: Callable[..., Any], template: str, fields: dict[str, Any]) -> Any:
    return kind(template, **fields)


def _worded(field: Any, wording: Wording) -> Any:
    if isinstance(field, Parameter):
        return wording(field)
    if isinstance(field, PythonOnly):
        return ""
    return worded(field, wording) if isinstance(field, str | BaseException) else field


def worded(text: str | BaseException, wording: Wording) -> str:
    """Return a sentence, or that of an error, with parameters called as an application does."""
    if isinstance(text, BaseException):
        said = text.args[0] if len(text.args) == 1 else None
        return said.worded(wording) if isinstance(said, Sentence) else str(text)
    return text.worded(wording) if isinstance(text, Sentence) else text


class UserError(ValueError):
    """A mistake of the user; the message says what was wanted, what came and what to do.

    The message is a text, or a :class:`Sentence` if it names parameters.
    """


class ParameterError(UserError):
    """A value that a parameter cannot have, or values that do not go together.

    Parameters
    ----------
    template : str
        The message, with fields as in `str.format`. `{value}`, `{allowed}` and `{advice}` are
        fields too.
    value : object, default=None
        What was given.
    allowed : str, default=""
        What would have been allowed, such as "be a whole number in [1, 5]".
    advice : str, default=""
        What to do, a sentence.
    **fields
        Values of the other fields; parameters are of type `Parameter` or `Setting`.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters, in the order of the fields.
    value, allowed, advice
        As given.

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
        # With the three, since a template may use them and a copy is made of all fields.
        self._fields = {"value": value, "allowed": allowed, "advice": advice, **fields}
        super().__init__(Sentence(template, **self._fields))
        self._template = template
        self.parameters = tuple(f.name for f in fields.values() if isinstance(f, Parameter))
        self.value = value
        self.allowed = allowed
        self.advice = advice

    def __reduce__(self) -> tuple[Any, ...]:
        # An error comes back from another process whole.
        return _made_again, (type(self), self._template, self._fields)


def refused(name: str, value: Any, *, allowed: str, advice: str = "") -> ParameterError:
    """Return the error of a parameter whose value is not allowed.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        What was given.
    allowed : str
        What the parameter must do or be, such as "lie in [0, 1]".
    advice : str, default=""
        What to do, a sentence.

    Examples
    --------
    >>> from mrshc.errors import refused
    >>> print(refused("rank", 0, allowed="be a whole number at least 1", advice="Try 1."))
    rank must be a whole number at least 1, got 0. Try 1.
    """
    return ParameterError(
        "{parameter} must {allowed}, got {value!r}. {advice}",
        parameter=Parameter(name),
        value=value,
        allowed=allowed,
        advice=advice,
    )


def described(error: BaseException) -> str:
    """Return the kind of an error and its message, as tables of results hold them.

    The kind is that of Python which a class of this package refines: readers of a table need not
    know our classes.
    """
    kinds = (kind for kind in type(error).__mro__ if not kind.__module__.startswith("mrshc."))
    return f"{next(kinds).__name__}: {error}"


class LostError(OSError):
    """Something outside that the work needs is gone; the message says what, and what to do."""
