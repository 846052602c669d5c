"""`mrshc demo`: the main job on built-in data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrshc.app.cli.analysis_commands import run
from mrshc.app.cli.shared_options import Out
from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of
from mrshc.app.cli.terminal_output import Talk


def demo(
    out: Out = Path("mrshc-demo"),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the simulation and the search.")
    ] = 1,
) -> None:
    """Simulate data with three known clusters, find them again, and leave the results.

    60 samples, 500 features, of which 50 make the clusters (Simulation I of the paper). Number of
    features, rank and number of clusters are all left to the method.

    Example: mrshc demo --out picture --seed 7
    """
    use_temporary_folder_of(out)
    import numpy as np
    import pandas as pd

    from mrshc.app import output_folder as outputs
    from mrshc.app import plan_of
    from mrshc.datasets import make_simulation_1
    from mrshc.io import Table

    data = make_simulation_1(seed)
    samples = np.array(data.sample_names, dtype=object)
    features = np.array(data.feature_names, dtype=object)
    useful = np.where(data.support, "useful", "noise").astype(object)
    table = Table(
        X=data.X,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(
            {"true class": [f"C{label + 1}" for label in data.labels]}, index=samples, dtype=object
        ),
        feature_annotations=pd.DataFrame({"kind": useful}, index=features),
        source=f"Simulation I, seed {seed}",
        notes=("Simulated.",),
    )
    talk = Talk()
    n, p = data.X.shape
    talk.say(f"Simulated {n} samples, {p} features, {data.support.sum()} of them useful.")
    plan = plan_of(
        table,
        parameters={"random_state": seed, "n_jobs": -1},
        truth="true class",
        command=f"mrshc demo --seed {seed}",
    )
    # Another run of the demo may be replaced, a result of the user's may not.
    made_here = str(outputs.about_of(out).get("command", "")).startswith("mrshc demo")
    _refuse_work_of_others(out, made_here=made_here)
    # It takes seconds: what was interrupted begins anew.
    run(plan, out, talk, overwrite=made_here, resumable=False)


def _refuse_work_of_others(out: Path, *, made_here: bool) -> None:
    from mrshc.app import output_folder as outputs
    from mrshc.errors import UserError

    if (outputs.about_of(out) and not made_here) or outputs.can_resume(out):
        raise UserError(
            f"{out} exists already and holds work other than the demo's. Name another folder with "
            "--out."
        )
