"""Help texts and sentences of the command line that list what is registered.

Formats of tables, selection rules and methods of clustering come from their registries. These are
imported when a help text is shown, not before: the command line must start without numpy and
pandas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand

from mrshc.app.cli.option_names import option_of
from mrshc.errors import worded

# In help texts, replaced when they are shown.
TABLE_FORMATS = "{table formats}"
FORMATS_IN_BLOCKS_AND, FORMATS_IN_BLOCKS_OR = "{formats and}", "{formats or}"
SELECTION_RULES = "{selection rules}"
METHODS, COMPARED_METHODS = "{methods}", "{compared methods}"


class CommandWithLists(TyperCommand):
    """A command whose help texts may list what is registered."""

    def format_help(self, *arguments: Any, **named: Any) -> None:
        """Write the help, with what is registered now."""
        self.help = with_lists(self.help or "")
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = with_lists(text)  # type: ignore[attr-defined]
        super().format_help(*arguments, **named)


def with_lists(text: str) -> str:
    """Return a text in which the lists are filled in."""
    for token, listed in _LISTS.items():
        if token in text:
            text = text.replace(token, listed())
    return text


def _formats_in_blocks(conjunction: str) -> str:
    from mrshc.io.formats import listing

    return listing(conjunction, in_blocks=True)


def _selection_rules() -> str:
    """Return the names of the rules, each with its summary; the first is the default."""
    from mrshc.core.selection import RULES

    default = next(iter(RULES))
    return " ".join(
        f"{name}{' (so by default)' * (name == default)}: {worded(rule.summary, option_of)}"
        for name, rule in RULES.items()
    )


def _methods() -> str:
    from mrshc.methods import METHODS

    parts = [f"{m.key}: {m.summary}" if m.summary else m.key for m in METHODS.values()]
    return "; ".join(parts) + "."


def _compared_methods() -> str:
    from mrshc.methods import compared_methods

    return "; ".join(f"{m.label}: {m.summary or m.name}" for m in compared_methods()) + "."


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
    FORMATS_IN_BLOCKS_AND: lambda: _formats_in_blocks("and"),
    FORMATS_IN_BLOCKS_OR: lambda: _formats_in_blocks("or"),
    SELECTION_RULES: _selection_rules,
    METHODS: _methods,
    COMPARED_METHODS: _compared_methods,
}
