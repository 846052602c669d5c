"""`mrshc demo`: cluster simulated data with known clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrshc.app.cli.analysis_commands import run_plan
from mrshc.app.cli.run_options import OutOption
from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of
from mrshc.app.cli.terminal_output import TerminalOutput

if TYPE_CHECKING:
    from mrshc.datasets import SimulatedData


def demo(
    out: OutOption = Path("mrshc-demo"),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the simulation and of the search.")
    ] = 1,
) -> None:
    """Simulate data with three known clusters, cluster the data, and write all results.

    The data are those of Simulation I of the paper: 60 samples and 500 features, of which 50
    separate the clusters. The demo uses the recommended procedure. It then compares the result with
    that of the procedure of the paper.

    Example: mrshc demo

    Example: mrshc demo --out trial --seed 7
    """
    use_temporary_folder_of(out)
    import numpy as np
    import pandas as pd

    from mrshc.app.procedures import complete_procedure
    from mrshc.datasets import make_simulation_1
    from mrshc.io import Table

    data = make_simulation_1(seed)
    # The names have dtype object, as in tables that are read from files.
    samples = np.array(data.sample_names, dtype=object)
    features = np.array(data.feature_names, dtype=object)
    # This annotation of the features shows the user which of the selected features are useful.
    kinds = np.where(data.support, "useful", "noise").astype(object)
    table = Table(
        X=data.X,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(
            {"true class": [f"C{label + 1}" for label in data.labels]}, index=samples, dtype=object
        ),
        feature_annotations=pd.DataFrame({"kind": kinds}, index=features),
        source=f"Simulation I, seed {seed}",
        notes=("Simulated.",),
    )
    output = TerminalOutput()
    n, p = data.X.shape
    output.print_sentence(
        f"Simulated {n} samples, {p} features, {data.support.sum()} of them useful."
    )
    method, parameters, procedure = complete_procedure(None, {"n_jobs": -1}, paper=False)
    output.print_sentence(procedure)
    # These imports take seconds, so the first sentences are printed before them.
    from mrshc.app import make_plan
    from mrshc.app import output_folder as outputs

    plan = make_plan(
        table,
        method=method,
        parameters=parameters,
        truth="true class",
        command=f"mrshc demo --seed {seed}",
    )
    # The result of an earlier demo is replaced; any other result is not.
    command = str(outputs.read_description(out).get("command", ""))
    is_earlier_demo = command.startswith("mrshc demo")
    _refuse_other_results(out, is_earlier_demo=is_earlier_demo)
    run_plan(
        plan,
        out,
        output,
        overwrite=is_earlier_demo,
        epilogue=lambda: _print_both_procedures(data, seed, output),
    )


def _print_both_procedures(data: SimulatedData, seed: int, output: TerminalOutput) -> None:
    """Print a table that compares the recommended procedure with that of the paper."""
    from mrshc import AssociationHC, MrSHC
    from mrshc.metrics import (
        adjusted_rand_index,
        classification_error_rate,
        feature_precision,
        feature_recall,
    )

    rows = []
    procedures = {
        "recommended": AssociationHC(n_jobs=-1),
        "paper": MrSHC(random_state=seed, n_jobs=-1),
    }
    for name, model in procedures.items():
        with output.show_status(f"Comparing with the procedure: {name}"):
            model.fit(data.X)
        support = model.get_support()
        scores = (
            classification_error_rate(data.labels, model.labels_),
            adjusted_rand_index(data.labels, model.labels_),
            feature_precision(data.support, support),
            feature_recall(data.support, support),
        )
        rows.append([name, int(support.sum()), model.n_clusters_, *(f"{s:.3f}" for s in scores)])
    output.print_sentence(
        "Both procedures on the same data (CER: classification error rate; ARI: adjusted Rand "
        "index):"
    )
    headings = ("features", "clusters", "CER", "ARI", "precision", "recall")
    output.print_table(["procedure", *headings], rows)


def _refuse_other_results(out: Path, *, is_earlier_demo: bool) -> None:
    """Raise UserError if `out` contains the result of another command."""
    from mrshc.app import output_folder as outputs
    from mrshc.errors import UserError

    if outputs.read_description(out) and not is_earlier_demo:
        raise UserError(
            f"{out} exists already and holds results other than the demo's. Choose another folder "
            "with --out."
        )
