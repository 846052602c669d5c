"""Options that several commands share, with what they mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mrshc.errors import UserError

_READ, _PREPARE, _METHOD, _RUN = "Reading", "Preparing the data", "Method", "Running"


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


class Preset(StrEnum):
    """Chains of steps with a name."""

    dudoit2002 = "dudoit2002"


class Method(StrEnum):
    """Methods of clustering."""

    mrshc = "mrshc"
    shc = "shc"
    hc = "hc"
    hmv = "hmv"


class Linkage(StrEnum):
    """Distances between clusters."""

    single = "single"
    complete = "complete"
    average = "average"
    weighted = "weighted"
    ward = "ward"
    centroid = "centroid"
    median = "median"


class Metric(StrEnum):
    """Distances between samples."""

    sqeuclidean = "sqeuclidean"
    cityblock = "cityblock"


class Center(StrEnum):
    """What to subtract before the components are sought."""

    columns = "columns"
    grand = "grand"
    none = "none"


def _read(*names: str, help: str) -> Any:  # noqa: A002 - as typer calls it
    return typer.Option(*names, help=help, rich_help_panel=_READ)


def _prepare(*names: str, **about: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_PREPARE, **about)


def _method(*names: str, **about: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_METHOD, **about)


def _run(*names: str, **about: Any) -> Any:
    return typer.Option(*names, rich_help_panel=_RUN, **about)


File = Annotated[
    str,
    typer.Argument(
        help="A table: CSV, TSV, GCT, Parquet, .npy, .npz or .h5ad, also compressed (.gz, .bz2, "
        ".xz); - reads standard input."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]

Features = Annotated[
    Side | None,
    _read("--features", help="Where the features are, if the guess (the longer side) is wrong."),
]
Samples = Annotated[
    Path | None,
    _read("--samples", help="Second table with annotations of the samples, joined by name."),
]
Annotation = Annotated[
    list[str] | None,
    _read("--annotation", help="Column that is not data although it holds numbers; repeatable."),
]
Separator = Annotated[
    str | None, _read("--separator", help="What separates cells; found out by default.")
]
Decimal = Annotated[
    str | None, _read("--decimal", help="Decimal mark, . or ,; found out by default.")
]
Truth = Annotated[
    str | None,
    _read("--truth", help="Annotation with true classes: for scores and colours, never to fit."),
]

PresetName = Annotated[
    Preset | None,
    _prepare(
        "--preset",
        help="Steps with a name. dudoit2002: floor 100, ceiling 16000, max/min above 5, max-min "
        "above 500, log2, for raw Affymetrix intensities.",
    ),
]
Impute = Annotated[
    Over | None,
    _prepare("--impute", help="Fill gaps from the nearest features or samples. Done first."),
]
Neighbors = Annotated[int, _prepare("--neighbors", min=1, help="Neighbours to fill gaps from.")]
Floor = Annotated[float | None, _prepare("--floor", help="Raise lower values to this.")]
Ceiling = Annotated[float | None, _prepare("--ceiling", help="Lower higher values to this.")]
MinRatio = Annotated[
    float | None, _prepare("--min-ratio", help="Keep features with max/min above this.")
]
MinDifference = Annotated[
    float | None, _prepare("--min-difference", help="Keep features with max-min above this.")
]
Log2 = Annotated[bool, _prepare("--log2", help="Take logarithms.")]
Pseudocount = Annotated[
    float | None, _prepare("--pseudocount", help="Add this before the logarithm, as 1 for counts.")
]
Standardize = Annotated[
    Scaled | None,
    _prepare("--standardize", help="Give samples or features mean 0 and standard deviation 1."),
]
TopVariance = Annotated[
    int | None, _prepare("--top-variance", help="Keep so many features of highest variance.")
]

MethodName = Annotated[
    Method,
    _method(
        "--method",
        help="mrshc; shc: sparse clustering of Witten and Tibshirani; hc: classical, all features; "
        "hmv: classical, features of highest variance.",
    ),
]
NFeatures = Annotated[
    str | None,
    _method(
        "--n-features",
        "--n-features-to-select",
        "-q",
        help="Number of features, several to choose from (10,20,40), or auto.",
    ),
]
NCut = Annotated[
    int | None,
    _method("--n-clusters", "-k", min=1, help="Where to cut for scores; the number of classes."),
]
Rank = Annotated[str | None, _method("--rank", "-r", help="Number of sparse components, or auto.")]
MaxRank = Annotated[int | None, _method("--max-rank", help="Largest rank tried.  [default: 5]")]
NClusters = Annotated[
    str | None, _method("--n-clusters", "-k", help="Number of clusters, or auto.")
]
LinkageName = Annotated[Linkage, _method("--linkage", help="Distance between clusters.")]
MetricName = Annotated[Metric, _method("--metric", help="Distance between samples.")]
NReferences = Annotated[
    int | None,
    _method("--n-references", help="Reference samples of a gap statistic.  [default: 50]"),
]
StopEarly = Annotated[
    bool | None,
    _method(
        "--stop-early/--all-references",
        help="Draw no more reference samples once the verdict is clear, or always all.",
        show_default="stop early",
    ),
]
FeatureTolerance = Annotated[
    int | None,
    _method("--feature-tolerance", help="Accept so many features more or fewer.  [default: 0]"),
]
CenterName = Annotated[
    Center | None,
    _method(
        "--center",
        help="Subtract before components are sought: means of columns, one grand mean, or none.  "
        "[default: columns]",
    ),
]
L1Bound = Annotated[
    str | None, _method("--l1-bound", help="shc: bound on the weights, several, or auto.")
]
NPermutations = Annotated[
    int | None, _method("--n-permutations", help="shc: permutations to choose by.  [default: 10]")
]

Seed = Annotated[int, _run("--seed", min=0, max=2**32 - 1, help="Seed of all random draws.")]
Jobs = Annotated[int, _run("--jobs", "--n-jobs", "-j", help="Workers; -1 takes every core.")]
Quiet = Annotated[bool, _run("--quiet", help="Say nothing but errors.")]
Json = Annotated[bool, _run("--json", help="Print result.json instead of sentences.")]
Resume = Annotated[bool, _run("--resume", help="Go on with a run that was interrupted.")]
Overwrite = Annotated[bool, _run("--overwrite", help="Replace an earlier result.")]


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
