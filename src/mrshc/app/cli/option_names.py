"""Names of parameters of the library on the command line: the options that set them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from typer.models import OptionInfo

from mrshc.app.cli.options_from_dataclasses import expand_options
from mrshc.errors import Parameter, Setting


@dataclass(frozen=True, slots=True)
class SetsParameter:
    """Annotation of an option whose name differs from that of the parameter it sets."""

    parameter: str


@dataclass(frozen=True, slots=True)
class Option:
    """An option as it is declared.

    Attributes
    ----------
    name : str
        Long name, with its dashes.
    is_flag : bool
        Whether the option takes no value.
    off_name : str or None
        Name of the option that sets a flag to False, if there is one.
    """

    name: str
    is_flag: bool
    off_name: str | None

    def format_with_value(self, value: Any) -> str:
        """Return the option as it is typed to set a value; `...` stands for any value."""
        if self.is_flag:
            return self.off_name if value is False and self.off_name else self.name
        return self.name if value is ... else f"{self.name} {shlex.quote(str(value))}"


def option_for_parameter(parameter: Parameter) -> str:
    """Return the option that sets a parameter, or the parameter's own name if none does."""
    option = _options_by_parameter().get(parameter.name)
    if option is None:
        return str(parameter)
    if isinstance(parameter, Setting):
        return option.format_with_value(parameter.value)
    return option.name


@cache
def _options_by_parameter() -> dict[str, Option]:
    """Return the options of all commands by the parameters that they set."""
    from mrshc.app.cli import COMMANDS  # imported here, since that module imports this one

    options: dict[str, Option] = {}
    for command in COMMANDS:
        hints: dict[str, Any] = expand_options(command, choices=False).__annotations__
        for name, hint in hints.items():
            kind, *annotations = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            declared = next((a for a in annotations if isinstance(a, OptionInfo)), None)
            if declared is None:  # an argument
                continue
            parameter = next(
                (a.parameter for a in annotations if isinstance(a, SetsParameter)), name
            )
            # Within Annotated, typer stores the first name as a default until it makes the command.
            names = (declared.default, *(declared.param_decls or ()))
            # The first command wins: options of the same name mean the same in all of them.
            options.setdefault(parameter, _parse_declaration(name, kind, names))
    return options


def _parse_declaration(field: str, kind: Any, names: tuple[Any, ...]) -> Option:
    """Return an option from its declaration, such as --in-memory/--out-of-core."""
    long_names = [name for name in names if isinstance(name, str) and name.startswith("--")]
    on, _, off = (long_names or ["--" + field.replace("_", "-")])[0].partition("/")
    return Option(name=on, is_flag=bool in (kind, *get_args(kind)), off_name=off or None)
