"""Groups of options: a command takes dataclasses, typer sees the options in them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks an option whose values are the names in a list of the library.

    The list is imported only for the command that is asked for: the help of the others must not
    wait for it.
    """

    module: str
    name: str  # of a sequence of texts, or of a mapping by them

    def kind(self) -> Any:
        """Return the list as typer takes it, an enumeration."""
        names = getattr(import_module(self.module), self.name)
        return cast(Any, StrEnum)(self.name.title(), {name: name for name in names})


def with_options(command: Callable[..., None], *, choices: bool) -> Callable[..., None]:
    """Return a command as typer takes it.

    Parameters
    ----------
    command : callable
        Its parameters are options, arguments, and dataclasses of options.
    choices : bool
        Whether options marked with `OneOf` take their values from the library; otherwise they
        take any text, which is enough for a command that is not run.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    listed = {o.name for o in _options(command, hints) if _mark(o) is not None}
    shown = [_declared(option, choices=choices) for option in _options(command, hints)]

    @wraps(command)
    def grouped(**given: Any) -> None:
        given |= {name: plain(given[name]) for name in listed}  # as the library takes them
        packed = {
            name: cast(Any, kind)(**{f.name: given.pop(f.name) for f in fields(kind)})
            for name, kind in groups.items()
        }
        command(**given, **packed)

    grouped.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    grouped.__annotations__ = {p.name: p.annotation for p in shown}
    return grouped


def _options(command: Callable[..., None], hints: dict[str, Any]) -> Iterator[Parameter]:
    """Yield the parameters of a command, those in groups one by one."""
    for name, parameter in signature(command).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            inside = get_type_hints(kind, include_extras=True)
            options = {f.name: (inside[f.name], f.default) for f in fields(kind)}
        else:
            options = {name: (kind, parameter.default)}
        for option, (annotation, default) in options.items():
            yield Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _declared(option: Parameter, *, choices: bool) -> Parameter:
    """Return an option with the choices of the library, if it has any and they are wanted."""
    mark = _mark(option)
    if mark is None or not choices:
        return option
    kind, *about = get_args(option.annotation)
    names = mark.kind()
    wanted = names | None if NoneType in get_args(kind) else names
    default = option.default
    return option.replace(
        annotation=Annotated[(wanted, *about)],
        default=default if default in (None, Parameter.empty) else names(default),
    )


def _mark(option: Parameter) -> OneOf | None:
    about = getattr(option.annotation, "__metadata__", ())
    return next((mark for mark in about if isinstance(mark, OneOf)), None)


def plain(value: Any) -> Any:
    """Return a choice as a text, anything else as it is."""
    return value.value if isinstance(value, StrEnum) else value
