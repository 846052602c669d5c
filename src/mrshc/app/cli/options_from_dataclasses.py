"""Groups of options: dataclasses whose fields are expanded into individual options for typer.

A group contains options that belong together and can be used by several commands. Typer reads the
signature of a command. The expanded command therefore has a signature in which every field of a
group is a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_type_hints

from typer.models import OptionInfo


@dataclass(frozen=True, slots=True)
class ChoiceFrom:
    """Type annotation of an option whose valid values are listed in a constant of the library.

    The constant is imported only for the command that is called, so that the help of other commands
    is shown without delay.

    Attributes
    ----------
    module : str
        Module that defines the constant.
    name : str
        Name of the constant in the module: a sequence of strings, or a mapping with strings as
        keys.
    """

    module: str
    name: str

    def make_enum(self) -> Any:
        """Return an enumeration of the valid values, to be used as the type of the option."""
        names = getattr(import_module(self.module), self.name)
        # Without the cast, mypy would interpret the call as the definition of a class.
        return cast(Any, StrEnum)(self.name.title(), {name: name for name in names})


def expand_options(
    command: Callable[..., None], *, checked: Container[str] | None = ()
) -> Callable[..., None]:
    """Return a command in which every group of options is replaced by individual options."""
    # The annotations are strings, since their evaluation is postponed, and must be resolved.
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    with_choices = {o.name for o in _iterate_options(command, hints) if _find_choice(o) is not None}
    options = [_add_choices(o, checked=checked) for o in _iterate_options(command, hints)]

    @wraps(command)
    def expanded(**given: Any) -> None:
        # Typer passes members of enumerations, but the library expects strings.
        given |= {name: enum_to_text(given[name]) for name in with_choices}
        grouped = {
            name: cast(Any, kind)(**{f.name: given.pop(f.name) for f in fields(kind)})
            for name, kind in groups.items()
        }
        command(**given, **grouped)

    expanded.__signature__ = Signature(options)  # type: ignore[attr-defined]
    expanded.__annotations__ = {o.name: o.annotation for o in options}
    return expanded


def _iterate_options(command: Callable[..., None], hints: dict[str, Any]) -> Iterator[Parameter]:
    """Yield the parameters of a command, with every group of options replaced by its fields."""
    for name, parameter in signature(command).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            field_hints = get_type_hints(kind, include_extras=True)
            options = {f.name: (field_hints[f.name], f.default) for f in fields(kind)}
        else:
            options = {name: (kind, parameter.default)}
        for option, (annotation, default) in options.items():
            # The parameters are keyword-only, since typer passes all values by name. Parameters
            # with and without defaults may then be in any order.
            yield Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _add_choices(option: Parameter, *, checked: Container[str] | None) -> Parameter:
    """Return a copy of an option, with an enumeration of its valid values as its type.

    The option itself is returned if it is not annotated with `ChoiceFrom`, or if `checked` does
    not contain one of its names.
    """
    choice = _find_choice(option)
    is_checked = checked is None or any(name in checked for name in _names_of(option))
    if choice is None or not is_checked:
        return option
    kind, *annotations = get_args(option.annotation)
    enum = choice.make_enum()
    new_kind = enum | None if NoneType in get_args(kind) else enum
    default = option.default
    return option.replace(
        annotation=Annotated[(new_kind, *annotations)],
        default=default if default in (None, Parameter.empty) else enum(default),
    )


def _names_of(option: Parameter) -> list[str]:
    """Return the names of an option on the command line, such as "--out" and "-o"."""
    annotations = getattr(option.annotation, "__metadata__", ())
    declared = [a for a in annotations if isinstance(a, OptionInfo)]
    return [name for option_info in declared for name in declared_names(option_info)]


def declared_names(declared: OptionInfo) -> list[str]:
    """Return the names with which an option is declared inside `Annotated`."""
    # Inside Annotated, typer stores the first name as `default` until the command is created.
    names = (declared.default, *(declared.param_decls or ()))
    return [name for name in names if isinstance(name, str)]


def _find_choice(option: Parameter) -> ChoiceFrom | None:
    """Return the `ChoiceFrom` annotation of an option; None if there is no such annotation."""
    annotations = getattr(option.annotation, "__metadata__", ())
    return next((a for a in annotations if isinstance(a, ChoiceFrom)), None)


def enum_to_text(value: Any) -> Any:
    """Return the text of an enumeration member; return any other value unchanged."""
    return value.value if isinstance(value, StrEnum) else value
