"""`mrshc study`: reproduce the tables and figures of the paper."""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import Annotated

import typer

from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of


def _complete_name(incomplete: str) -> list[str]:
    """Return the names of the studies of the package that begin with a text."""
    from mrshc.study.config import CONFIGS

    return sorted(path.stem for path in CONFIGS.glob(f"{glob.escape(incomplete)}*.toml"))


def study(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=_complete_name,
            help="Name of the study, such as table1. An unknown name is answered with a list of "
            "all names.",
        ),
    ],
    replicates: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of simulated data sets, in place of the study's own; for a trial."
        ),
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Number of workers; -1 uses all cores.")] = -1,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the real data sets, which are not part of mrshc."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder with study files (.toml); by default the studies of the paper."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; by default mrshc-study, or --folder if it is given."
        ),
    ] = None,
    render: Annotated[
        bool, typer.Option("--render", help="Do not run: only make the tables from the results.")
    ] = False,
) -> None:
    """Reproduce a table or figure from the paper, or run one of the additional simulation studies.

    Print the table, and write the table and all individual results to a folder. A study that was
    interrupted continues when it is started again.

    Example: mrshc study table1

    Example: mrshc study table1 --replicates 10 --out quick

    Example: mrshc study table1 --render --out quick
    """
    from mrshc.core.parallel import progress_bar
    from mrshc.study import render_study, run_study
    from mrshc.study.config import CONFIGS

    # The declared default of --folder is None. Otherwise, the help text would show the actual
    # default, which is a long path inside the installed package.
    folder = CONFIGS if folder is None else folder
    use_temporary_folder_of(out or Path("mrshc-study"))
    # The table is written to stdout directly, since Rich would reformat the Markdown that users
    # want to copy.
    if render:
        sys.stdout.write(render_study(name, folder=folder, out=out))
        return
    with progress_bar(f"study {name}") as progress:
        results = run_study(
            name,
            folder=folder,
            out=out,
            replicates=replicates,
            data=data,
            n_jobs=n_jobs,
            progress=progress,
        )
    sys.stdout.write(results.with_suffix(".md").read_text(encoding="utf-8"))
    sys.stdout.write(f"\nResults written to {results}\n")
