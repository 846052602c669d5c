"""The command line: parses, calls, writes; no logic of its own.

Commands import what they need: `--help` must not wait for it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrshc.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

app = typer.Typer(
    help="Sparse hierarchical clustering for large and flat data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:
    """Make typer expect the name of a command even while there is only one."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("mrshc-demo"),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the simulation and the search.")
    ] = 1,
) -> None:
    """Simulate data with three known clusters, find them again, and draw the tree.

    60 samples, 500 features, of which 50 make the clusters (Simulation I of the paper). Number of
    features, rank and number of clusters are all left to the method.

    Example: mrshc demo --out picture --seed 7
    """
    import numpy as np
    import pandas as pd
    from rich.console import Console

    from mrshc.datasets import make_simulation_1
    from mrshc.estimators import MrSHC
    from mrshc.metrics import classification_error_rate, feature_precision, feature_recall
    from mrshc.plotting import dendrogram, write_picture

    data = make_simulation_1(seed)
    X = pd.DataFrame(data.X, index=data.sample_names, columns=data.feature_names)
    truth = pd.Series([f"C{label + 1}" for label in data.labels], name="true class")
    console = Console()
    console.print(f"Simulated {X.shape[0]} samples, {X.shape[1]} features, 50 of them useful.")
    model = MrSHC(random_state=seed, n_jobs=-1, verbose=True).fit(X)
    console.print(
        f"Chose q = {model.n_features_selected_} features, rank r = {model.rank_}, "
        f"K = {model.n_clusters_} clusters."
    )
    found = pd.Series([f"cluster {label + 1}" for label in model.labels_], name="found")
    console.print(_confusion(pd.crosstab(truth, found)))
    support = model.get_support()
    cer = classification_error_rate(data.labels, model.labels_)
    console.print(f"Classification error rate {cer:.3f}.")
    console.print(
        f"Features: precision {feature_precision(data.support, support):.3f}, "
        f"recall {feature_recall(data.support, support):.3f}: "
        + ", ".join(np.array(data.feature_names)[support])
    )
    axes = dendrogram(
        model,
        classes=truth,
        class_title="true class",
        names=data.sample_names,
        title=f"MrSHC on {model.n_features_selected_} of {X.shape[1]} features",
    )
    picture = out / "dendrogram.png"
    write_picture(axes.figure, picture)
    console.print(f"The tree lies in {picture}", markup=False, soft_wrap=True)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="Name of the study, such as table1.")],
    replicates: Annotated[
        int | None, typer.Option(min=1, help="Draws; needs --out if not the config's number.")
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Workers; -1 takes every core.")] = -1,
    data: Annotated[Path | None, typer.Option(help="Folder of real data sets.")] = None,
    folder: Annotated[Path, typer.Option(help="Folder of configs and results.")] = Path("studies"),
    out: Annotated[
        Path | None, typer.Option(help="Results lie here, not beside the config.")
    ] = None,
    render: Annotated[
        bool, typer.Option("--render", help="Only render the results again.")
    ] = False,
) -> None:
    """Make a table of the paper again: run a study, or render its results.

    Interrupted, it goes on where it stopped when it is started again.

    Example: mrshc study table1
    Example: mrshc study table1 --replicates 10 --out quick
    Example: mrshc study table1 --render
    """
    from mrshc.progress import progress_bar
    from mrshc.study import render_study, run_study

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
    sys.stdout.write(results.with_suffix(".md").read_text())
    sys.stdout.write(f"\nThe results lie in {results}\n")


def _confusion(counts: pd.DataFrame) -> Table:
    from rich.table import Table

    table = Table(str(counts.index.name), *counts.columns)
    for name, row in counts.iterrows():
        table.add_row(str(name), *map(str, row))
    return table


def main() -> None:
    """Run the command line: exit 0 when done, 2 on the user's mistake, 1 on ours."""
    try:
        app()
    except UserError as error:
        sys.stderr.write(f"mrshc: {error}\n")
        sys.exit(2)
    except OSError as error:
        what = error.filename or "the output"
        sys.stderr.write(f"mrshc: cannot read or write {what}: {error.strerror or error}.\n")
        sys.exit(2)
