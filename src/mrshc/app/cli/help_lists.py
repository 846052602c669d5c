"""Lists of registered formats and methods in help texts and messages.

The command line must start without importing numpy and pandas, so the registries are imported only
when a list is shown. Until then, a help text contains a placeholder for each list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from mrshc.app.cli.completion import load_method_keys
from mrshc.app.cli.help_layout import (
    format_command_help,
    format_group_help,
    terminal_width,
    usage_pieces,
)

# Placeholders in help texts. The placeholders are enclosed in braces, since Rich interprets square
# brackets as markup.
TABLE_FORMATS = "{table formats}"
BLOCK_FORMATS_AND, BLOCK_FORMATS_OR = "{formats and}", "{formats or}"
METHODS, COMPARED_METHODS, ALL_METHODS = "{methods}", "{compared methods}", "{all methods}"


class CommandWithLists(TyperCommand):
    """A command whose help texts may contain placeholders for lists."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name of the command in its usage line."""
        return usage_pieces(self, ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text, with each placeholder replaced by its list."""
        self.help = _unwrap_paragraphs(fill_lists(self.help or ""))
        # In Typer, arguments have a help text as well; in Click, on which Typer is based, only
        # options do.
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = fill_lists(text)  # type: ignore[attr-defined]
        formatter.write(format_command_help(self, ctx, width=terminal_width()))


class GroupWithPlainHelp(TyperGroup):
    """The group of all commands, with a plain layout of its help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        self.help = _unwrap_paragraphs(self.help or "")
        formatter.write(format_group_help(self, ctx, width=terminal_width()))


def _unwrap_paragraphs(text: str) -> str:
    """Return a text without the line breaks inside its paragraphs."""
    # Typer would keep these line breaks, which are those of the source code, instead of wrapping
    # each paragraph to the width of the terminal.
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def fill_lists(text: str) -> str:
    """Return a text with every placeholder replaced by its list."""
    for placeholder, make_list in _LIST_FUNCTIONS.items():
        if placeholder in text:
            text = text.replace(placeholder, make_list())
    return text


def _list_block_formats(conjunction: str) -> str:
    """Return a list, as text, of the file formats that can be read in blocks.

    The last two formats are joined by `conjunction`, as in ".npy, .h5ad or .zarr".
    """
    from mrshc.io.formats import list_formats

    return list_formats(conjunction, in_blocks=True)


def _list_methods() -> str:
    """Return a text with the keys of all methods, each with its summary."""
    from mrshc.methods import METHODS

    return "; ".join(f"{m.key}: {m.summary or m.name}" for m in METHODS.values()) + "."


def _list_compared_methods() -> str:
    """Return a text with the label and summary of each method that `mrshc compare` fits."""
    from mrshc.methods import compared_methods

    return "; ".join(f"{m.label}: {m.summary or m.name}" for m in compared_methods()) + "."


def _list_all_methods() -> str:
    """Return a text with the keys of all methods that `mrshc compare` can fit."""
    return ", ".join(load_method_keys())


def _list_table_formats() -> str:
    """Return a list, as text, of the file formats of tables.

    Formats that can be read as streams come first, followed by the other formats.
    """
    from mrshc.io.formats import known_formats, list_formats
    from mrshc.io.streams import COMPRESSED_SUFFIXES

    # Only files that are read as streams may be compressed. Tables in the other formats are folders
    # or archives.
    others = [
        f", or {', '.join(known.labels)}, {known.container}"
        for known in known_formats()
        if known.read_stream is None
    ]
    compressed = ", ".join(COMPRESSED_SUFFIXES)
    return f"{list_formats('or', streams=True)}, also compressed ({compressed})" + "".join(others)


_LIST_FUNCTIONS: dict[str, Callable[[], str]] = {
    TABLE_FORMATS: _list_table_formats,
    BLOCK_FORMATS_AND: lambda: _list_block_formats("and"),
    BLOCK_FORMATS_OR: lambda: _list_block_formats("or"),
    METHODS: _list_methods,
    COMPARED_METHODS: _list_compared_methods,
    ALL_METHODS: _list_all_methods,
}
