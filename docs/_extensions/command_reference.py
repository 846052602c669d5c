"""The directive `command-reference`, which documents the commands and options of mrshc.

The texts are those of `mrshc COMMAND --help`, so the page cannot differ from the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from mrshc.app.cli import COMMANDS, make_app
from mrshc.app.cli.help_layout import grouped_records, split_help, usage_pieces


class CommandReference(Directive):
    """Insert one section for each command: usage, description, examples, tables of options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [self._make_section(command.__name__) for command in COMMANDS]

    def _make_section(self, name: str) -> nodes.section:
        """Return the section of a command."""
        command, context = _load_command(name)
        description, examples = split_help(command)
        section = nodes.section(ids=[f"mrshc-{name}"], names=[f"mrshc {name}"])
        section += nodes.title(text=f"mrshc {name}")
        usage = " ".join(["mrshc", name, *usage_pieces(command, context)])
        section += nodes.literal_block(usage, usage, language="none")
        section += [nodes.paragraph(text=paragraph) for paragraph in description]
        if examples:
            text = "\n".join(_as_shell_lines(examples))
            section += nodes.literal_block(text, text, language="sh")
        for title, records in grouped_records(command, context):
            section += nodes.rubric(text=title)
            section += _make_options(records)
        self.state.document.note_explicit_target(section)
        return section


def _load_command(name: str) -> tuple[Any, Any]:
    """Return a command of mrshc with complete help texts, and its context."""
    # With this argument, the valid choices of all options are loaded.
    group = typer.main.get_command(make_app([name, "--help"]))
    parent = typer.Context(group, info_name="mrshc")
    command = group.get_command(parent, name)
    context = typer.Context(command, info_name=name, parent=parent)
    # Lists in the help texts are filled in when the help is formatted.
    command.get_help(context)
    return command, context


def _as_shell_lines(examples: Iterable[str]) -> Iterator[str]:
    """Yield the examples as lines of a shell, with remarks in parentheses as comments."""
    for example in examples:
        call, _, remark = example.partition(" (")
        yield f"{call}  # {remark.removesuffix(')')}" if remark else call


def _make_options(records: Iterable[Sequence[str]]) -> nodes.definition_list:
    """Return a list of options or arguments, each with its text."""
    items = nodes.definition_list(classes=["options"])
    for names, text in records:
        item = nodes.definition_list_item()
        item += nodes.term("", "", nodes.literal(text=names))
        item += nodes.definition("", nodes.paragraph(text=text))
        items += item
    return items


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
