"""The command line: parses, calls, writes; no logic of its own.

Commands import what they need when they run: `--help` must not wait for it.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import typer

from mrshc.app.cli.analysis_commands import cluster, compare, report
from mrshc.app.cli.demo_command import demo
from mrshc.app.cli.help_lists import FORMATS_IN_BLOCKS_OR, CommandWithLists, with_lists
from mrshc.app.cli.option_names import option_of
from mrshc.app.cli.options_from_dataclasses import with_options
from mrshc.app.cli.signals import leave, stop_on_termination
from mrshc.app.cli.study_command import study
from mrshc.errors import LostError, UserError, worded
from mrshc.utils.text_cleaning import clean_text

COMMANDS: tuple[Callable[..., None], ...] = (demo, cluster, compare, report, study)


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands; only those among the arguments import the choices of their options."""
    app = typer.Typer(
        help="""Sparse hierarchical clustering for large and flat data: few samples, many features,
        most of them noise. Finds the groups of samples, the tree, and the short list of features
        that make the groups.

        Begin with: mrshc demo

        Then your own table, features in rows or columns: mrshc cluster expression.tsv --out result
        """,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for command in COMMANDS:
        app.command(cls=CommandWithLists)(
            with_options(command, choices=command.__name__ in arguments)
        )
    return app


def main() -> None:
    """Run the command line: exit 0 when done, 2 on the user's mistake, 1 on ours."""
    _make_output_safe()
    stop_on_termination()
    try:
        make_app(sys.argv[1:])()
    except SystemExit as end:
        leave(end.code)
    except UserError as error:
        _refuse(worded(error, option_of))
    except MemoryError as error:
        _refuse(_out_of_memory(error))
    except OSError as error:
        _refuse(_sentence(error))


def _make_output_safe() -> None:
    """Write any character in any locale, and warnings of mrshc as sentences."""
    # It warns of folders that are not writable for its cache, which costs a second at most.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # replaced streams may not have it
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _format_warning


def _format_warning(message: Any, category: type[Warning], *rest: Any, **more: Any) -> str:
    if category.__module__.startswith("mrshc."):
        return f"mrshc: {message}\n"
    return _usual_format(message, category, *rest, **more)


_usual_format = warnings.formatwarning


def _refuse(sentence: str) -> None:
    # Names of files and messages of libraries may hold anything.
    sys.stderr.write(f"mrshc: {clean_text(sentence)}\n")
    sys.exit(2)


def _out_of_memory(error: MemoryError) -> str:
    detail = f" ({clean_text(str(error)).rstrip('.')})" if str(error) else ""
    return with_lists(
        f"Not enough memory{detail}. Keep fewer features with --top-variance, store the table as "
        f"{FORMATS_IN_BLOCKS_OR} and add --out-of-core, or use a larger machine."
    )


def _sentence(error: OSError) -> str:
    from mrshc.core.data.data_matrix import UnreadableError

    if isinstance(error, UnreadableError | LostError):  # whose message is one
        return str(error)
    what = error.filename or "the output"
    return f"cannot read or write {what}: {error.strerror or error}."
