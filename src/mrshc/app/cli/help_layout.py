"""Plain layout of help texts, which is readable on terminals of 80 columns.

The layout of Typer has columns for short names and types, which leave little space for the text.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# Options that most users need. The help lists them before all others.
MOST_USED = ("out", "samples", "truth", "n_clusters", "method", "n_features", "methods", "help")
_MOST_USED_TITLE, _OTHER_TITLE = "Most used", "Others"
# Columns of names, which are followed by the text in the same line, or in the next line if they are
# longer.
_NAME_WIDTH = 26
# Lines with more characters are hard to read.
_MAX_WIDTH = 100
_EXAMPLE = "Example: "


def terminal_width() -> int:
    """Return the number of columns for help texts: that of the terminal, but at most 100."""
    return min(shutil.get_terminal_size().columns, _MAX_WIDTH)


def format_command_help(command: Any, context: Any, *, width: int) -> str:
    """Return the help of a command: usage, description, arguments, options by group, examples."""
    description, examples = split_help(command)
    usage = [context.command_path, *usage_pieces(command, context)]
    parts = [f"Usage: {' '.join(usage)}"]
    parts += [_wrap(paragraph, width) for paragraph in description]
    for title, records in grouped_records(command, context):
        parts.append(_format_section(title, records, width=width))
    if examples:
        lines = (_wrap(example, width, first="  ", others="      ") for example in examples)
        parts.append("Examples:\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def split_help(command: Any) -> tuple[list[str], list[str]]:
    """Return the paragraphs that describe a command, and its examples."""
    paragraphs = [paragraph for paragraph in (command.help or "").split("\n\n") if paragraph]
    examples = [p.removeprefix(_EXAMPLE) for p in paragraphs if p.startswith(_EXAMPLE)]
    return [p for p in paragraphs if not p.startswith(_EXAMPLE)], examples


def usage_pieces(command: Any, context: Any) -> list[str]:
    """Return what follows the name of a command in its usage line."""
    arguments = [p for p in command.get_params(context) if _is_argument(p)]
    # An argument that may be left out is in brackets.
    names = ((_argument_name(p), p.required) for p in arguments)
    return ["[OPTIONS]", *(name if is_required else f"[{name}]" for name, is_required in names)]


def format_group_help(group: Any, context: Any, *, width: int) -> str:
    """Return the help of the program: usage, description, commands and options."""
    parts = [f"Usage: {context.command_path} [OPTIONS] COMMAND [ARGUMENTS]"]
    parts += [_wrap(paragraph, width) for paragraph in (group.help or "").split("\n\n")]
    commands = (group.get_command(context, name) for name in group.list_commands(context))
    # The first paragraph of a help text is a summary.
    summaries = [(c.name, " ".join((c.help or "").split("\n\n")[0].split())) for c in commands]
    parts.append(_format_section("Commands", summaries, width=width))
    options = [p.get_help_record(context) for p in group.get_params(context)]
    parts.append(_format_section("Options", [o for o in options if o], width=width))
    return "\n\n".join(parts) + "\n"


def _format_section(title: str, records: Iterable[Sequence[str]], *, width: int) -> str:
    """Return a section of a help text."""
    indent = " " * (_NAME_WIDTH + 2)
    lines = [f"{title}:"]
    for names, text in records:
        if len(names) + 4 <= len(indent):
            lines.append(_wrap(text, width, first=f"  {names}".ljust(len(indent)), others=indent))
        else:
            lines += [f"  {names}", _wrap(text, width, first=indent, others=indent)]
    return "\n".join(lines)


def _wrap(text: str, width: int, *, first: str = "", others: str = "") -> str:
    """Return a text in lines of the given width, with one indent of the first and one of others.

    Words are not broken at hyphens, since the names of options contain them.
    """
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def grouped_records(command: Any, context: Any) -> Iterator[tuple[str, list[Sequence[str]]]]:
    """Yield the title of each group of parameters, and the help records of its parameters."""
    groups: dict[str, list[Sequence[str]]] = {"Arguments": [], _MOST_USED_TITLE: []}
    for parameter in sorted(command.get_params(context), key=_position):
        record = parameter.get_help_record(context)
        if record is not None:
            names, text = record
            is_argument = _is_argument(parameter)
            names = _argument_name(parameter) if is_argument else _shorten_types(names)
            groups.setdefault(_group_of(parameter), []).append((names, text))
    # Options without a group of their own come last.
    groups[_OTHER_TITLE] = groups.pop(_OTHER_TITLE, [])
    for title, records in groups.items():
        if records:
            yield title, records


def _position(parameter: Any) -> int:
    """Return the position of an option among the most used ones; others come after them."""
    return MOST_USED.index(parameter.name) if parameter.name in MOST_USED else len(MOST_USED)


def _is_argument(parameter: Any) -> bool:
    """Return whether a parameter is an argument, not an option."""
    return bool(parameter.param_type_name == "argument")


def _argument_name(parameter: Any) -> str:
    """Return the name of an argument in help texts."""
    return str(parameter.metavar or parameter.name.upper())


def _shorten_types(names: str) -> str:
    """Return the names of an option with shorter names of types."""
    # The text of the option states its range, and that it may be given repeatedly.
    return names.replace(" range>", ">").replace("<list[str]>", "<str>")


def _group_of(parameter: Any) -> str:
    """Return the title of the group of a parameter."""
    if _is_argument(parameter):
        return "Arguments"
    if parameter.name in MOST_USED:
        return _MOST_USED_TITLE
    return getattr(parameter, "rich_help_panel", None) or _OTHER_TITLE
