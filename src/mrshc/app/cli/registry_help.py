"""Help texts and sentences of the command line that list what is registered in the library.

Formats of tables, methods and selection rules come from their registries. These are imported when a
help text is shown, not before: the command line must start without numpy and pandas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from typer.core import TyperCommand

# In help texts, replaced when they are shown.
TABLE_FORMATS = "{table formats}"
FORMATS_IN_BLOCKS_AND, FORMATS_IN_BLOCKS_OR = "{formats and}", "{formats or}"
METHODS, SELECTION_RULES = "{methods}", "{selection rules}"


class CommandWithLists(TyperCommand):
    """A command whose help texts may list what is registered."""

    def format_help(self, *arguments: Any, **named: Any) -> None:
        """Write the help, with what is registered now."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = with_lists(text)  # type: ignore[attr-defined]
        super().format_help(*arguments, **named)


def with_lists(text: str) -> str:
    """Return a text in which the lists of the library are filled in."""
    for field, listed in _LISTS.items():
        if field in text:
            text = text.replace(field, listed())
    return text


def _formats_in_blocks(word: str) -> str:
    from mrshc.io.formats import listing

    return listing(word, in_blocks=True)


def _methods() -> str:
    from mrshc.methods import method_help

    return method_help()


def _selection_rules() -> str:
    from mrshc.core.selection import RULES

    return " ".join(f"{name}: {rule.summary}" for name, rule in RULES.items())


def _table_formats() -> str:
    """Return what a table may be: formats that come as streams, then those that do not."""
    from mrshc.io.formats import known_formats, listing
    from mrshc.io.streams import COMPRESSED_SUFFIXES

    others = [
        f", or {', '.join(known.listed)}, {known.container}"
        for known in known_formats()
        if known.read_stream is None
    ]
    compressed = ", ".join(COMPRESSED_SUFFIXES)
    return f"{listing('or', streams=True)}, also compressed ({compressed})" + "".join(others)


_LISTS: dict[str, Callable[[], str]] = {
    TABLE_FORMATS: _table_formats,
    FORMATS_IN_BLOCKS_AND: partial(_formats_in_blocks, "and"),
    FORMATS_IN_BLOCKS_OR: partial(_formats_in_blocks, "or"),
    METHODS: _methods,
    SELECTION_RULES: _selection_rules,
}
