"""Names of the command-line options that set parameters of the library."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from typer.models import OptionInfo

from mrshc.app.cli.options_from_dataclasses import declared_names, expand_options
from mrshc.shell.wording import Parameter, Setting


@dataclass(frozen=True, slots=True)
class SetsParameter:
    """Type annotation of an option whose name differs from that of the parameter that it sets.

    Attributes
    ----------
    parameter : str
        Name of the parameter that the option sets.
    """

    parameter: str


@dataclass(frozen=True, slots=True)
class Option:
    """Name and type of a command-line option.

    Attributes
    ----------
    name : str
        Long name, including the dashes.
    is_flag : bool
        Whether the option is a flag, which takes no value.
    off_name : str or None
        Name of the option that sets the flag to False; None if there is no such option.
    """

    name: str
    is_flag: bool
    off_name: str | None

    def format_with_value(self, value: Any) -> str:
        """Return the option as it is typed on the command line to set a value.

        If `value` is `...`, the option is returned without a value. For a flag, the result is
        `off_name` if `value` is False and `off_name` is not None, and otherwise `name`.
        """
        if self.is_flag:
            return self.off_name if value is False and self.off_name else self.name
        return self.name if value is ... else f"{self.name} {shlex.quote(str(value))}"


def option_for_parameter(parameter: Parameter) -> str:
    """Return the option that sets a parameter, as text.

    For a `Setting`, the text includes the value. If no option sets the parameter, the parameter is
    returned as it is written in Python.
    """
    option = _options_by_parameter().get(parameter.name)
    if option is None:
        return str(parameter)
    if isinstance(parameter, Setting):
        return option.format_with_value(parameter.value)
    return option.name


@cache
def _options_by_parameter() -> dict[str, Option]:
    """Return the options of all commands, with the name of the parameter that each sets as key."""
    from mrshc.app.cli import COMMANDS  # an import at the top would be circular

    options: dict[str, Option] = {}
    for command in COMMANDS:
        hints: dict[str, Any] = expand_options(command).__annotations__
        for name, hint in hints.items():
            kind, *annotations = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            declared = next((a for a in annotations if isinstance(a, OptionInfo)), None)
            if declared is None:  # an argument, not an option
                continue
            parameter = next(
                (a.parameter for a in annotations if isinstance(a, SetsParameter)), name
            )
            # Several commands may have an option that sets this parameter. The option of the first
            # command is used, since these options have the same meaning in all commands.
            names = declared_names(declared)
            options.setdefault(parameter, _parse_declaration(name, kind, names))
    return options


def _parse_declaration(field: str, kind: Any, names: list[str]) -> Option:
    """Return an option, given its declared names, such as "--in-memory/--out-of-core".

    If no long name is declared, the name of the option is derived from `field`, the name of the
    function parameter. `kind` is the type of this parameter.
    """
    long_names = [name for name in names if name.startswith("--")]
    on, _, off = (long_names or ["--" + field.replace("_", "-")])[0].partition("/")
    return Option(name=on, is_flag=bool in (kind, *get_args(kind)), off_name=off or None)
