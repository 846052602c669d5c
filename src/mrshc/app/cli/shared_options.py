"""Options that several commands share, in groups, with what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrshc.app.cli.help_lists import (
    FORMATS_IN_BLOCKS_AND,
    FORMATS_IN_BLOCKS_OR,
    METHODS,
    SELECTION_RULES,
    TABLE_FORMATS,
)
from mrshc.app.cli.option_names import Sets, option_of
from mrshc.app.cli.options_from_dataclasses import OneOf, plain
from mrshc.errors import UserError, worded

if TYPE_CHECKING:
    from mrshc.app.cli.terminal_output import Talk
    from mrshc.io import Table


class Side(StrEnum):
    """Where the features are."""

    rows = "rows"
    columns = "columns"


class Over(StrEnum):
    """What to go over."""

    features = "features"
    samples = "samples"


class Scaled(StrEnum):
    """What to standardise."""

    samples = "samples"
    features = "features"
    both = "both"


class Center(StrEnum):
    """What to subtract before the components are sought."""

    columns = "columns"
    grand = "grand"
    none = "none"


def _in(panel: str) -> Callable[..., Any]:
    """Return what makes options of one panel of the help."""

    def option(*names: str, **about: Any) -> Any:
        return typer.Option(*names, rich_help_panel=panel, **about)

    return option


_read, _prepare = _in("Reading"), _in("Preparing the data")
_fit, _run = _in("Method"), _in("Running")

File = Annotated[
    str,
    typer.Argument(
        help=f"A table: {TABLE_FORMATS}; - reads standard input. Where {FORMATS_IN_BLOCKS_AND} "
        "do not fit into memory, they are read in blocks."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
NFeatures = Annotated[
    str | None,
    _fit(
        "--n-features",
        "--n-features-to-select",
        "-q",
        help="Number of features, several to choose from (10,20,40), or auto.",
    ),
    Sets("n_features_to_select"),
]
LinkageName = Annotated[
    str,
    _fit("--linkage", help="Distance between clusters."),
    OneOf("mrshc.core.trees.tree", "LINKAGES"),
]
MetricName = Annotated[
    str,
    _fit("--metric", help="Distance between samples."),
    OneOf("mrshc.core.trees.tree", "METRICS"),
]
SelectionName = Annotated[
    str | None,
    _fit(
        "--selection",
        help=f"mrshc: how to choose features and rank. {SELECTION_RULES}",
    ),
    OneOf("mrshc.core.selection", "RULES"),
]
Refine = Annotated[
    bool,
    _fit(
        "--refine",
        help="mrshc, shc: then find all features that go with the clusters, each tested against "
        "trees that never saw it, and build the tree on them. Use it to get the complete list, "
        "and to learn whether there are clusters at all. Costs some per cent more time.",
    ),
]
Robust = Annotated[
    bool,
    _fit(
        "--robust",
        help="mrshc: pull in unusual cells, and set outlying samples apart: they are named, and "
        "attached to the tree at the end. For heavy tails, spikes and failed arrays. Needs a "
        "copy of the data.",
    ),
]
NCut = Annotated[
    int | None,
    _fit("--n-clusters", "-k", min=1, help="Where to cut; by default the number of classes."),
]
Json = Annotated[bool, _run("--json", help="Print result.json instead of sentences.")]
Resume = Annotated[bool, _run("--resume", help="Go on with a run that was interrupted.")]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the table is read."""

    features: Annotated[
        Side | None,
        _read("--features", help="Where the features are, if the guess (longer side) is wrong."),
    ] = None
    samples: Annotated[
        Path | None,
        _read("--samples", help="Second table with annotations of the samples, joined by name."),
    ] = None
    truth: Annotated[
        str | None,
        _read(
            "--truth", help="Annotation with known classes, for scores and colours; never to fit."
        ),
    ] = None
    annotation: Annotated[
        list[str] | None,
        _read("--annotation", help="Column that is not data though it holds numbers; repeatable."),
        Sets("annotations"),
    ] = None
    separator: Annotated[
        str | None, _read("--separator", help="What separates cells; found out by default.")
    ] = None
    decimal: Annotated[
        str | None, _read("--decimal", help="Decimal mark, . or ,; found out by default.")
    ] = None
    in_memory: Annotated[
        bool | None,
        _read(
            "--in-memory/--out-of-core",
            help=f"Read all values of {FORMATS_IN_BLOCKS_OR} at once, or leave them in the file "
            "and read them in blocks, again for each pass over them. By default they are read at "
            "once if that takes no more than half of the free memory. What prepares the data, "
            "--robust and --method hc need them at once.",
        ),
    ] = None

    def table(self, file: str, talk: Talk, *, stays: bool = False) -> Table:
        """Read the table, and say what was understood; if it `stays`, its values are left there."""
        from mrshc.io import can_stay, read_table

        in_memory = self.in_memory
        if stays and in_memory is None and can_stay(file):
            in_memory = False
        with talk.working(f"Reading {file}"):
            table = read_table(
                file,
                features=None if self.features is None else self.features.value,
                samples=self.samples,
                truth=self.truth,
                annotations=self.annotation or (),
                separator=self.separator,
                decimal=self.decimal,
                in_memory=in_memory,
            )
        table = replace(table, notes=tuple(worded(note, option_of) for note in table.notes))
        talk.say(f"Read {table.source}: {table.notes[0]}")
        for note in table.notes[1:]:
            talk.say(f"  {note}")
        return table


@dataclass(frozen=True, kw_only=True)
class Preparing:
    """What is done to the data before they are clustered."""

    preset: Annotated[
        str | None,
        _prepare(
            "--preset",
            help="Steps with a name. dudoit2002: floor 100, ceiling 16000, max/min above 5, "
            "max-min above 500, log2, for raw Affymetrix intensities.",
        ),
        OneOf("mrshc.preprocessing.presets", "PRESETS"),
    ] = None
    impute: Annotated[
        Over | None,
        _prepare(
            "--impute",
            help="Fill gaps from the nearest features or samples, before anything else. Gaps may "
            "also stay: distances are then those to be expected.",
        ),
    ] = None
    neighbors: Annotated[
        int,
        _prepare("--neighbors", min=1, help="Neighbours to fill gaps from."),
        Sets("n_neighbors"),
    ] = 5
    floor: Annotated[float | None, _prepare("--floor", help="Raise lower values to this.")] = None
    ceiling: Annotated[float | None, _prepare("--ceiling", help="Lower higher values to this.")] = (
        None
    )
    min_ratio: Annotated[
        float | None, _prepare("--min-ratio", help="Keep features with max/min above this.")
    ] = None
    min_difference: Annotated[
        float | None, _prepare("--min-difference", help="Keep features with max-min above this.")
    ] = None
    log2: Annotated[bool, _prepare("--log2", help="Take logarithms.")] = False
    pseudocount: Annotated[
        float | None,
        _prepare("--pseudocount", help="Add this before the logarithm, as 1 for counts."),
    ] = None
    standardize: Annotated[
        Scaled | None,
        _prepare("--standardize", help="Give samples or features mean 0 and deviation 1."),
    ] = None
    top_variance: Annotated[
        int | None,
        _prepare("--top-variance", help="Keep so many features of highest variance."),
        Sets("n_features"),
    ] = None

    def steps(self) -> list[Any]:
        """Return the steps; what is given by hand goes before the preset."""
        from mrshc.preprocessing import PRESETS, chain

        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "preset"}
        given["log2"] = self.log2 or self.pseudocount is not None or None
        chosen = {} if self.preset is None else PRESETS[self.preset]
        return chain(**chosen | {name: plain(v) for name, v in given.items() if v is not None})


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """The method and its parameters."""

    method: Annotated[
        str,
        _fit(
            "--method",
            help=METHODS,
        ),
        OneOf("mrshc.methods", "METHODS"),
    ] = "mrshc"
    n_features: NFeatures = None
    rank: Annotated[
        str | None, _fit("--rank", "-r", help="Number of sparse components, or auto.")
    ] = None
    max_rank: Annotated[int | None, _fit("--max-rank", help="Largest rank tried (5).")] = None
    n_clusters: Annotated[
        str | None, _fit("--n-clusters", "-k", help="Number of clusters, or auto.")
    ] = None
    linkage: LinkageName = "complete"
    metric: MetricName = "sqeuclidean"
    n_references: Annotated[
        int | None, _fit("--n-references", help="Reference samples of a gap statistic (50).")
    ] = None
    stop_early: Annotated[
        bool | None,
        _fit(
            "--stop-early/--all-references",
            help="Draw no more reference samples once the verdict is clear (so by default), or "
            "always all.",
        ),
    ] = None
    feature_tolerance: Annotated[
        int | None, _fit("--feature-tolerance", help="Accept so many features more or fewer (0).")
    ] = None
    center: Annotated[
        Center | None,
        _fit(
            "--center",
            help="Subtract before components are sought: means of columns (so by default), one "
            "grand mean, or none.",
        ),
    ] = None
    l1_bound: Annotated[
        str | None, _fit("--l1-bound", help="shc: bound on the weights, several, or auto.")
    ] = None
    n_permutations: Annotated[
        int | None, _fit("--n-permutations", help="shc: permutations to choose by (10).")
    ] = None
    selection: SelectionName = None
    refine: Refine = False
    robust: Robust = False

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator; None: not given."""
        centers = {None: None, Center.columns: True, Center.grand: "grand", Center.none: False}
        return {
            "n_features_to_select": numbers_or_auto("--n-features", self.n_features),
            "rank": number_or_auto("--rank", self.rank),
            "max_rank": self.max_rank,
            "n_clusters": number_or_auto("--n-clusters", self.n_clusters),
            "linkage": self.linkage,
            "metric": self.metric,
            "n_references": self.n_references,
            "stop_early": self.stop_early,
            "feature_tolerance": self.feature_tolerance,
            "center": centers[self.center],
            "l1_bound": numbers_or_auto("--l1-bound", self.l1_bound, float),
            "n_permutations": self.n_permutations,
            **choices(self.selection, self.refine, self.robust),
        }


@dataclass(frozen=True, kw_only=True)
class Running:
    """How the run goes."""

    seed: Annotated[
        int,
        _run("--seed", min=0, max=2**32 - 1, help="Seed of all random draws."),
        Sets("random_state"),
    ] = 0
    jobs: Annotated[
        int,
        _run("--jobs", "--n-jobs", "-j", help="Workers; -1 takes every core."),
        Sets("n_jobs"),
    ] = -1
    quiet: Annotated[bool, _run("--quiet", help="Say nothing but errors.")] = False
    overwrite: Annotated[bool, _run("--overwrite", help="Replace an earlier result.")] = False

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator that they are."""
        return {"random_state": self.seed, "n_jobs": self.jobs}


@dataclass(frozen=True, kw_only=True)
class Placing:
    """Where the fit takes place."""

    dask: Annotated[
        str | None,
        _run(
            "--dask",
            metavar="ADDRESS",
            help="Fit on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786. They read "
            f"{FORMATS_IN_BLOCKS_OR} themselves: the file must have the same path for them. Of "
            "other tables, only the search is spread. Needs the extra 'dask', there and here.",
        ),
    ] = None
    device: Annotated[
        str | None,
        _run(
            "--device",
            metavar="NAME",
            help="Copy the values to this device and fit there: cuda, cuda:1 or cpu. Needs the "
            "extra 'gpu'.",
        ),
    ] = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether values need not come into this process."""
        return self.dask is not None or self.device is not None


def choices(selection: str | None, refine: bool, robust: bool) -> dict[str, Any]:
    """Return parameters that not every method has; None: not given."""
    return {
        "selection": selection,
        "refine": refine or None,
        "robust": robust or None,
    }


def number_or_auto(option: str, text: str | None) -> int | str | None:
    """Return a whole number or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{option} must be a whole number or auto, got {text!r}.") from None


def numbers_or_auto(option: str, text: str | None, kind: type = int) -> Any:
    """Return a number, several of them, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise UserError(
            f"{option} must be {what}, several with commas between them, or auto, got {text!r}."
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers
