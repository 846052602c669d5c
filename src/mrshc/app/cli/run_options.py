"""Options that control how a run is performed: seed, workers, output folder and backend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mrshc.app.cli.completion import complete_from
from mrshc.app.cli.help_lists import BLOCK_FORMATS_OR
from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_names import SetsParameter

_run_option = option_factory("Running")

OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
JsonOption = Annotated[
    bool, _run_option("--json", help="Print result.json on standard output, and nothing else.")
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that control how a run is performed."""

    seed: Annotated[
        int,
        # The limits of the seed are those of numpy's RandomState.
        _run_option("--seed", min=0, max=2**32 - 1, help="Seed of all random draws."),
        SetsParameter("random_state"),
    ] = 0
    # All cores are used by default. The estimators follow scikit-learn and use one core by default.
    jobs: Annotated[
        int,
        _run_option("--jobs", "--n-jobs", "-j", help="Number of workers; -1 uses all cores."),
        SetsParameter("n_jobs"),
    ] = -1
    quiet: Annotated[bool, _run_option("--quiet", help="Print errors and warnings only.")] = False
    overwrite: Annotated[
        bool, _run_option("--overwrite", help="Replace an earlier result in --out.")
    ] = False

    def to_parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that these options set."""
        return {"random_state": self.seed, "n_jobs": self.jobs}


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """Options for the execution backend, on which the method is fitted."""

    dask: Annotated[
        str | None,
        _run_option(
            "--dask",
            metavar="ADDRESS",
            help="Fit on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786. They read "
            f"{BLOCK_FORMATS_OR} files themselves, under the same path as here; other tables are "
            "fitted here, and only --significance and --stability use the workers. Needs the extra "
            "'dask', here and on the workers.",
        ),
    ] = None
    device: Annotated[
        str | None,
        _run_option(
            "--device",
            metavar="NAME",
            autocompletion=complete_from("cuda", "cpu"),
            help="Copy the data to a device and fit there: cuda, cuda:1 or cpu. Needs the extra "
            "'gpu'.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether a Dask cluster or a device was requested."""
        return self.dask is not None or self.device is not None
