"""The command line: parses, calls, writes; no logic of its own.

Commands import what they need when they run: `--help` must not wait for it.
"""

from __future__ import annotations

import sys

import typer

from mrshc.cli.analyse import cluster, compare, report
from mrshc.cli.demonstrate import demo
from mrshc.cli.stopping import leave
from mrshc.cli.studies import study
from mrshc.errors import LostError, UserError

app = typer.Typer(
    help="""Sparse hierarchical clustering for large and flat data: few samples, many features,
    most of them noise. Finds the groups of samples, the tree, and the short list of features that
    make the groups.

    Begin with: mrshc demo

    Then your own table, features in rows or columns: mrshc cluster expression.tsv --out result
    """,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, cluster, compare, report, study):
    app.command()(command)


def main() -> None:
    """Run the command line: exit 0 when done, 2 on the user's mistake, 1 on ours."""
    try:
        app()
    except SystemExit as end:
        leave(end.code)
    except UserError as error:
        sys.stderr.write(f"mrshc: {error}\n")
        sys.exit(2)
    except OSError as error:
        sys.stderr.write(f"mrshc: {_sentence(error)}\n")
        sys.exit(2)


def _sentence(error: OSError) -> str:
    from mrshc.core.source import UnreadableError

    if isinstance(error, UnreadableError | LostError):  # whose message is one
        return str(error)
    what = error.filename or "the output"
    return f"cannot read or write {what}: {error.strerror or error}."
