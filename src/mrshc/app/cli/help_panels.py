"""Panels of the help texts, under whose titles options are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer


def option_factory(panel: str) -> Callable[..., Any]:
    """Return a function that creates options for one panel of the help text."""

    def make_option(*names: str, **about: Any) -> Any:
        return typer.Option(*names, rich_help_panel=panel, **about)

    return make_option
