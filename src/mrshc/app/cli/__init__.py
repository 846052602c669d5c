"""The command line: parse options, call :mod:`mrshc.app`, and print messages.

Commands import the library only when they run, so `--help` is shown without delay.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import mrshc
from mrshc.app.cli.analysis_commands import cluster, compare, report
from mrshc.app.cli.demo_command import demo
from mrshc.app.cli.help_lists import (
    BLOCK_FORMATS_OR,
    CommandWithLists,
    GroupWithPlainHelp,
    fill_lists,
)
from mrshc.app.cli.option_names import option_for_parameter
from mrshc.app.cli.options_from_dataclasses import expand_options
from mrshc.app.cli.predict_command import predict
from mrshc.app.cli.signals import exit_process, handle_termination
from mrshc.errors import UserError
from mrshc.shell.text_cleaning import clean_text
from mrshc.shell.wording import reword

# The help lists the commands in this order. The demo comes first, since it is meant for new users.
COMMANDS: tuple[Callable[..., None], ...] = (demo, cluster, predict, compare, report)


def make_app(arguments: Sequence[str], *, all_choices: bool = False) -> typer.Typer:
    """Return the command-line application.

    The valid choices of an option are imported only if they are needed, since the import takes
    time: if the option is given, or for the help of its command.
    """
    app = typer.Typer(
        cls=GroupWithPlainHelp,
        help="""Sparse hierarchical clustering of data with few samples and many features, most of
        which are noise. Finds groups of samples, their tree, and the features that separate them.

        To try it on simulated data: mrshc demo

        To cluster your own table: mrshc cluster expression.tsv --out result

        For the options of a command: mrshc cluster --help
        """,
        # Errors in mrshc are shown with Python's plain traceback, which users can report.
        pretty_exceptions_enable=False,
    )
    app.callback()(_common_options)
    # A value may follow the name of an option after an equals sign.
    given = {word.partition("=")[0] for word in arguments}
    for command in COMMANDS:
        is_all = all_choices or "--help" in given
        checked = (None if is_all else given) if command.__name__ in given else ()
        app.command(cls=CommandWithLists)(expand_options(command, checked=checked))
    return app


def _print_version(is_wanted: bool) -> None:
    """Print the version of mrshc and exit if `is_wanted` is True."""
    if is_wanted:
        typer.echo(f"mrshc {mrshc.__version__}")
        raise typer.Exit


def _common_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Accept the options that come before the name of a command."""


def _words_to_complete() -> list[str]:
    """Return the words of the command line that a shell wants to complete; empty if there are none.

    The shell calls mrshc with these words in an environment variable, whose name depends on the
    shell.
    """
    if "_MRSHC_COMPLETE" not in os.environ:
        return []
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        return shlex.split(words)
    except ValueError:  # an open quotation mark
        return words.split()


def main() -> None:
    """Run the command line.

    The exit code is 0 on success, 1 after an unexpected error in mrshc, 130 after Ctrl-C, and 143
    after SIGTERM. It is 2 after errors that the user can correct, such as an invalid option, an
    unreadable file or a lack of memory.
    """
    _configure_output()
    handle_termination()
    try:
        words = _words_to_complete()
        # Without arguments, the help is shown.
        arguments = sys.argv[1:] or ["--help"]
        app = make_app(words or arguments, all_choices=bool(words))
        app(args=None if words else arguments)
    except SystemExit as end:
        exit_process(end.code)
    except UserError as error:
        _exit_with_message(reword(error, option_for_parameter))
    except MemoryError as error:
        _exit_with_message(_out_of_memory_message(error))
    except OSError as error:
        _exit_with_message(_os_error_message(error))


def _configure_output() -> None:
    """Avoid encoding errors in the output, and show warnings of mrshc as plain sentences."""
    # Matplotlib logs a warning if its cache is not writable. The warning is not shown, since a
    # missing cache costs a second at most.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    for stream in (sys.stdout, sys.stderr):
        # The calling program may have replaced a stream by an object without `reconfigure`.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _format_warning


def _format_warning(message: Any, category: type[Warning], *rest: Any, **more: Any) -> str:
    """Return the text of a warning: one line if it is from mrshc, otherwise Python's format."""
    if category.__module__.startswith("mrshc."):
        return f"mrshc: {message}\n"
    return _default_format_warning(message, category, *rest, **more)


_default_format_warning = warnings.formatwarning


def _exit_with_message(sentence: str) -> None:
    """Print an error message on stderr, and exit with code 2."""
    # File names and messages of libraries may contain control characters and line breaks, which
    # `clean_text` replaces.
    sys.stderr.write(f"mrshc: {clean_text(sentence)}\n")
    sys.exit(2)


def _out_of_memory_message(error: MemoryError) -> str:
    """Return a message that explains how to reduce the memory that a run needs."""
    detail = f" ({clean_text(str(error)).rstrip('.')})" if str(error) else ""
    return fill_lists(
        f"Not enough memory{detail}. Keep fewer features with --top-variance, store the table as "
        f"{BLOCK_FORMATS_OR} and add --out-of-core, or use a computer with more memory."
    )


def _os_error_message(error: OSError) -> str:
    """Return the message for an OSError; the message names the file if the file is known."""
    from mrshc.app.execution_backends import ResourceLostError
    from mrshc.core.data.files import UnreadableError

    # The messages of these two classes are already complete sentences.
    if isinstance(error, UnreadableError | ResourceLostError):
        return str(error)
    file = error.filename or "the output"
    return f"cannot read or write {file}: {error.strerror or error}."
