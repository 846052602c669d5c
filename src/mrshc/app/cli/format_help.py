"""Help texts and sentences of the command line that list the formats of tables.

The lists come from the registry of formats. It is imported when a help text is shown, not before:
the command line must start without numpy and pandas.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

# In help texts, replaced when they are shown.
TABLE_FORMATS = "{table formats}"
FORMATS_IN_BLOCKS_AND, FORMATS_IN_BLOCKS_OR = "{formats and}", "{formats or}"


class CommandWithFormats(TyperCommand):
    """A command whose help texts may list formats of tables."""

    def format_help(self, *arguments: Any, **named: Any) -> None:
        """Write the help, with the formats that are known now."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = with_formats(text)  # type: ignore[attr-defined]
        super().format_help(*arguments, **named)


def with_formats(text: str) -> str:
    """Return a text in which the lists of formats are filled in."""
    if "{" not in text:
        return text
    from mrshc.io.formats import listing

    text = text.replace(TABLE_FORMATS, _table_formats())
    text = text.replace(FORMATS_IN_BLOCKS_AND, listing("and", in_blocks=True))
    return text.replace(FORMATS_IN_BLOCKS_OR, listing("or", in_blocks=True))


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
