"""The command line: parse options, call :mod:`mrshc.app`, and print messages.

Commands import the library only when they run, so `--help` is shown without delay.
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
from mrshc.app.cli.help_lists import BLOCK_FORMATS_OR, CommandWithLists, fill_lists
from mrshc.app.cli.option_names import option_for_parameter
from mrshc.app.cli.options_from_dataclasses import expand_options
from mrshc.app.cli.signals import exit_process, handle_termination
from mrshc.app.cli.study_command import study
from mrshc.errors import ResourceLostError, UserError, reword
from mrshc.utils.text_cleaning import clean_text

# The help lists the commands in this order. The demo comes first, since it is meant for new users.
COMMANDS: tuple[Callable[..., None], ...] = (demo, cluster, compare, report, study)


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the command-line application.

    `arguments` are the arguments of the command line, without the name of the program. The valid
    choices of an option are imported only if its command is among `arguments`, since the import
    takes time.
    """
    app = typer.Typer(
        help="""Sparse hierarchical clustering of data with few samples and many features, most of
        which are noise. Finds groups of samples, their tree, and the features that separate them.

        To try it on simulated data: mrshc demo

        To cluster your own table: mrshc cluster expression.tsv --out result

        For the options of a command: mrshc cluster --help
        """,
        no_args_is_help=True,
        add_completion=False,
        # Errors in mrshc are shown with Python's plain traceback, which users can report.
        pretty_exceptions_enable=False,
    )
    for command in COMMANDS:
        app.command(cls=CommandWithLists)(
            expand_options(command, choices=command.__name__ in arguments)
        )
    return app


def main() -> None:
    """Run the command line.

    The exit code is 0 on success, 1 after an unexpected error in mrshc, 130 after Ctrl-C, and 143
    after SIGTERM. It is 2 after errors that the user can correct, such as an invalid option, an
    unreadable file or a lack of memory.
    """
    _configure_output()
    handle_termination()
    try:
        make_app(sys.argv[1:])()
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
    from mrshc.core.data.data_matrix import UnreadableError

    # The messages of these two classes are already complete sentences.
    if isinstance(error, UnreadableError | ResourceLostError):
        return str(error)
    file = error.filename or "the output"
    return f"cannot read or write {file}: {error.strerror or error}."
