"""How the command line calls the parameters of the library: by the options that set them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from typer.models import OptionInfo

from mrshc.app.cli.options_from_dataclasses import with_options
from mrshc.errors import Parameter, Setting


@dataclass(frozen=True, slots=True)
class Sets:
    """Marks an option with the parameter that it sets, where their names differ."""

    parameter: str


@dataclass(frozen=True, slots=True)
class Option:
    """An option as it is declared."""

    name: str  # with its dashes
    is_flag: bool
    off: str | None  # what sets a flag to False, if there is such an option

    def given(self, value: Any) -> str:
        """Return the option with a value."""
        if self.is_flag:
            return self.off if value is False and self.off else self.name
        return self.name if value is ... else f"{self.name} {shlex.quote(str(value))}"


def option_of(parameter: Parameter) -> str:
    """Return the option that sets a parameter, or the parameter's own name if none does."""
    option = _options().get(parameter.name)
    if option is None:
        return str(parameter)
    return option.given(parameter.value) if isinstance(parameter, Setting) else option.name


@cache
def _options() -> dict[str, Option]:
    """Return the options of all commands by the parameters that they set."""
    from mrshc.app.cli import COMMANDS  # which imports this module

    options: dict[str, Option] = {}
    for command in COMMANDS:
        declared_options: dict[str, Any] = with_options(command, choices=False).__annotations__
        for name, hint in declared_options.items():
            kind, *about = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            declared = next((a for a in about if isinstance(a, OptionInfo)), None)
            if declared is None:
                continue
            sets = next((a.parameter for a in about if isinstance(a, Sets)), name)
            # In Annotated, typer takes the first name as a default until it makes the command.
            names = (declared.default, *(declared.param_decls or ()))
            options.setdefault(sets, _option(name, kind, names))
    return options


def _option(field: str, kind: Any, names: tuple[Any, ...]) -> Option:
    """Return an option from its declaration, such as --in-memory/--out-of-core."""
    long = [name for name in names if isinstance(name, str) and name.startswith("--")]
    on, _, off = (long or ["--" + field.replace("_", "-")])[0].partition("/")
    return Option(name=on, is_flag=bool in (kind, *get_args(kind)), off=off or None)
