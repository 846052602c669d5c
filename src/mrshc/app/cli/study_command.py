"""`mrshc study`: the tables and figures of the paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of


def study(
    name: Annotated[str, typer.Argument(help="Name of the study, such as table1.")],
    replicates: Annotated[
        int | None, typer.Option(min=1, help="Number of draws, for a trial; not the config's.")
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Workers; -1 takes every core.")] = -1,
    data: Annotated[Path | None, typer.Option(help="Folder of real data sets.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder of configs, if not the paper's studies.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; by default mrshc-study, or that of the configs."
        ),
    ] = None,
    render: Annotated[
        bool, typer.Option("--render", help="Only render the results again.")
    ] = False,
) -> None:
    """Make a table of the paper again: run a study, or render its results.

    Interrupted, it goes on where it stopped when it is started again.

    Example: mrshc study table1

    Example: mrshc study table1 --replicates 10 --out quick

    Example: mrshc study table1 --render --out quick
    """
    from mrshc.study import render_study, run_study
    from mrshc.study.config import CONFIGS
    from mrshc.utils.progress import progress_bar

    folder = CONFIGS if folder is None else folder
    use_temporary_folder_of(out or Path("mrshc-study"))
    if render:
        sys.stdout.write(render_study(name, folder=folder, out=out))
        return
    with progress_bar(f"study {name}", visible=True) as progress:
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
    sys.stdout.write(f"\nThe results lie in {results}\n")
