"""Messages that mention parameters, under the names of Python or of an application.

Messages of the library refer to parameters as they are written in Python, such as `n_clusters` or
`in_memory=False`. In an application, the same parameters may have other names, such as the options
of a command line. A :class:`Sentence` is a message that stores the parameters that it mentions, so
an application can replace their names without searching the text.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from mrshc.errors import UserError


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that is mentioned in a message.

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
    """A parameter with a value, shown in a message as in a Python call.

    Parameters
    ----------
    name : str
        Name of the parameter in Python.
    value : object
        Value of the parameter. The value ``...`` stands for any value.
    class_name : str, default=""
        Name of the class that has the parameter. If the name is empty, the message does not mention
        the class.
    """

    value: Any
    class_name: str = ""

    def __str__(self) -> str:
        value = "..." if self.value is ... else repr(self.value)
        argument = f"{self.name}={value}"
        return f"{self.class_name}({argument})" if self.class_name else argument


@dataclass(frozen=True, slots=True)
class PythonOnly:
    """Text in a message that applies only to Python code; :func:`reword` leaves it out.

    Parameters
    ----------
    text : str
        The text.
    """

    text: str

    def __str__(self) -> str:
        return self.text


# A function that takes a `Parameter` or `Setting` and returns the text by which an application
# refers to the parameter.
ParameterNaming = Callable[[Parameter], str]


class Sentence(str):
    """A message that mentions parameters.

    As a string, the message contains the Python names of the parameters. The method `reword`
    returns the message with other names.

    Attributes
    ----------
    template : str
        The argument `template`.
    fields : dict
        Values of the replacement fields, by name.
    """

    __slots__ = ("fields", "template")

    template: str
    fields: dict[str, Any]

    def __new__(cls, template: str, **fields: Any) -> Self:
        """Return the message as a string with the Python names of the parameters."""
        # If the last field is empty, for example because there is no advice, the text ends with a
        # blank, which is removed.
        self = super().__new__(cls, template.format(**fields).rstrip())
        self.template, self.fields = template, fields
        return self

    def reword(self, naming: ParameterNaming) -> str:
        """Return the message with the parameter names of an application.

        Values of type `PythonOnly` are left out.
        """
        fields = {name: _render_field(field, naming) for name, field in self.fields.items()}
        return self.template.format(**fields).rstrip()

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, only the text of a string is pickled, so the template and the fields would be
        # lost.
        return _from_template, (type(self), self.template, self.fields)


def _from_template(cls: Callable[..., Any], template: str, fields: dict[str, Any]) -> Any:
    """Return cls(template, **fields), a message or an error.

    Pickle needs this function, because pickle calls functions with positional arguments only.
    """
    return cls(template, **fields)


def _render_field(field: Any, naming: ParameterNaming) -> Any:
    """Return the value of a replacement field with the parameter names of an application.

    `naming` takes a `Parameter` or `Setting` and returns its name in the application.
    """
    if isinstance(field, Parameter):
        return naming(field)
    if isinstance(field, PythonOnly):
        return ""
    # The value of a field may itself be a message, or an error with a message.
    return reword(field, naming) if isinstance(field, str | BaseException) else field


def reword(text: str | BaseException, naming: ParameterNaming) -> str:
    """Return a message, or the message of an error, with the parameter names of an application."""
    if isinstance(text, BaseException):
        message = text.args[0] if len(text.args) == 1 else None
        return reword(message, naming) if isinstance(message, str) else str(text)
    return text.reword(naming) if isinstance(text, Sentence) else _reword_settings(text, naming)


def _reword_settings(text: str, naming: ParameterNaming) -> str:
    """Return a text with settings such as normalize='cpm' under the names of an application."""

    def name(match: re.Match[str]) -> str:
        return naming(Setting(match[1], literal_eval(match[2])))

    # Names of files are left alone.
    pattern = r"(?<![\w./-])([a-z]\w*)=('[\w -]*'|[1-9]\d*|True|False)(?![\w/-]|\.\w)"
    return re.sub(pattern, name, text, flags=re.ASCII)


class ParameterError(UserError):
    """Error for an invalid value of a parameter, or for an invalid combination of values.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters in `fields`, in the same order.
    value : object
        The value that was given.
    allowed : str
        The argument `allowed`.
    advice : str
        The argument `advice`.
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
        # The fields include `value`, `allowed` and `advice`, because the template may use them, and
        # because unpickling creates the error from the template and the fields.
        self._fields = {"value": value, "allowed": allowed, "advice": advice, **fields}
        super().__init__(Sentence(template, **self._fields))
        self._template = template
        self.parameters = tuple(f.name for f in fields.values() if isinstance(f, Parameter))
        self.value = value
        self.allowed = allowed
        self.advice = advice

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, only the message of an exception is pickled. An error that is raised in a
        # worker process would then lose its attributes.
        return _from_template, (type(self), self._template, self._fields)


def invalid_parameter_error(
    name: str, value: Any, *, allowed: str, advice: str = ""
) -> ParameterError:
    """Return, without raising it, the error for a parameter with an invalid value."""
    return ParameterError(
        "{parameter} must {allowed}, got {value!r}. {advice}",
        parameter=Parameter(name),
        value=value,
        allowed=allowed,
        advice=advice,
    )


def format_count(number: int, thing: str) -> str:
    """Return a number followed by a noun in the singular or plural, for example "2 samples"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
