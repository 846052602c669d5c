"""`mrshc cluster` and `mrshc compare`: from a file to an answer."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrshc.cli import options as o
from mrshc.cli.stopping import heard
from mrshc.cli.talk import Talk

if TYPE_CHECKING:
    from mrshc.analysis import Plan
    from mrshc.io import Table

# How a run is started does not change what it finds.
_IDLE = {"--resume", "--overwrite", "--quiet", "--json"}
# Of a table that people still read.
_MOST_CELLS = 150
_CENTERS: dict[o.Center, Any] = {
    o.Center.columns: True,
    o.Center.grand: "grand",
    o.Center.none: False,
}


def cluster(
    file: o.File,
    out: o.Out = Path("mrshc-result"),
    *,
    features: o.Features = None,
    samples: o.Samples = None,
    annotation: o.Annotation = None,
    separator: o.Separator = None,
    decimal: o.Decimal = None,
    truth: o.Truth = None,
    preset: o.PresetName = None,
    impute: o.Impute = None,
    neighbors: o.Neighbors = 5,
    floor: o.Floor = None,
    ceiling: o.Ceiling = None,
    min_ratio: o.MinRatio = None,
    min_difference: o.MinDifference = None,
    log2: o.Log2 = False,
    pseudocount: o.Pseudocount = None,
    standardize: o.Standardize = None,
    top_variance: o.TopVariance = None,
    method: o.MethodName = o.Method.mrshc,
    n_features: o.NFeatures = None,
    rank: o.Rank = None,
    max_rank: o.MaxRank = None,
    n_clusters: o.NClusters = None,
    linkage: o.LinkageName = o.Linkage.complete,
    metric: o.MetricName = o.Metric.sqeuclidean,
    n_references: o.NReferences = None,
    stop_early: o.StopEarly = None,
    feature_tolerance: o.FeatureTolerance = None,
    center: o.CenterName = None,
    l1_bound: o.L1Bound = None,
    n_permutations: o.NPermutations = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    quiet: o.Quiet = False,
    json: o.Json = False,
    resume: o.Resume = False,
    overwrite: o.Overwrite = False,
) -> None:
    """Find groups of samples in a table, and the few features that make them.

    Reads the table, says what it understood, and leaves a folder with the clusters, the features,
    the tree and pictures, in formats that other programs open.

    Example: mrshc cluster expression.tsv --out result

    Example: mrshc cluster raw.csv.gz --preset dudoit2002 --samples clinic.csv --truth subtype

    Example: mrshc cluster expression.tsv --impute features --n-features 50,100,200 --linkage ward

    Example: mrshc cluster expression.tsv --method hmv --n-features 100 --n-clusters 4

    Example: mrshc cluster big.tsv --out result --resume (after it was interrupted)
    """
    from mrshc import analysis, outputs

    outputs.refuse_existing(out, overwrite=overwrite or resume)
    parameters = {
        "n_features_to_select": o.numbers_or_auto("--n-features", n_features),
        "rank": o.number_or_auto("--rank", rank),
        "max_rank": max_rank,
        "n_clusters": o.number_or_auto("--n-clusters", n_clusters),
        "linkage": linkage.value,
        "metric": metric.value,
        "n_references": n_references,
        "stop_early": stop_early,
        "feature_tolerance": feature_tolerance,
        "center": None if center is None else _CENTERS[center],
        "l1_bound": o.numbers_or_auto("--l1-bound", l1_bound, float),
        "n_permutations": n_permutations,
        "random_state": seed,
        "n_jobs": jobs,
    }
    talk = Talk(quiet=quiet or json)
    reading = {"samples": samples, "truth": truth, "separator": separator, "decimal": decimal}
    table = _table(file, talk, features=features, annotations=annotation or (), **reading)
    steps = _steps(
        preset=preset,
        impute=impute,
        neighbors=neighbors,
        floor=floor,
        ceiling=ceiling,
        min_ratio=min_ratio,
        min_difference=min_difference,
        log2=log2,
        pseudocount=pseudocount,
        standardize=standardize,
        top_variance=top_variance,
    )
    with talk.working("Preparing the data"):
        plan = heard(
            lambda: analysis.plan_of(
                table,
                method=method.value,
                parameters=parameters,
                steps=steps,
                truth=truth,
                command=_command(),
            )
        )
    run(plan, out, talk, resume=resume, overwrite=overwrite)
    if json:
        sys.stdout.write((out / "result.json").read_text(encoding="utf-8"))


def compare(
    file: o.File,
    out: o.Out = Path("mrshc-comparison"),
    *,
    features: o.Features = None,
    samples: o.Samples = None,
    annotation: o.Annotation = None,
    separator: o.Separator = None,
    decimal: o.Decimal = None,
    truth: o.Truth = None,
    preset: o.PresetName = None,
    impute: o.Impute = None,
    neighbors: o.Neighbors = 5,
    floor: o.Floor = None,
    ceiling: o.Ceiling = None,
    min_ratio: o.MinRatio = None,
    min_difference: o.MinDifference = None,
    log2: o.Log2 = False,
    pseudocount: o.Pseudocount = None,
    standardize: o.Standardize = None,
    top_variance: o.TopVariance = None,
    n_features: o.NFeatures = None,
    n_clusters: o.NCut = None,
    linkage: o.LinkageName = o.Linkage.complete,
    metric: o.MetricName = o.Metric.sqeuclidean,
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    quiet: o.Quiet = False,
    overwrite: o.Overwrite = False,
) -> None:
    """Cluster a table by four methods, side by side: HC, SHC, MrSHC and HC-HMV.

    Classical clustering on all features, sparse clustering of Witten and Tibshirani, multi-rank
    sparse clustering, and classical clustering on as many features of highest variance as MrSHC
    chose. Leaves their trees in one picture and their scores in one table.

    Example: mrshc compare expression.tsv --samples clinic.csv --truth subtype --out comparison

    Example: mrshc compare raw.csv.gz --preset dudoit2002 --samples clinic.csv --truth subtype
    """
    from mrshc import analysis, outputs

    outputs.refuse_existing(out, marker=outputs.ABOUT_COMPARISON, overwrite=overwrite)
    talk = Talk(quiet=quiet)
    reading = {"samples": samples, "truth": truth, "separator": separator, "decimal": decimal}
    table = _table(file, talk, features=features, annotations=annotation or (), **reading)
    steps = _steps(
        preset=preset,
        impute=impute,
        neighbors=neighbors,
        floor=floor,
        ceiling=ceiling,
        min_ratio=min_ratio,
        min_difference=min_difference,
        log2=log2,
        pseudocount=pseudocount,
        standardize=standardize,
        top_variance=top_variance,
    )
    parameters = {
        "n_features_to_select": o.numbers_or_auto("--n-features", n_features),
        "linkage": linkage.value,
        "metric": metric.value,
        "random_state": seed,
        "n_jobs": jobs,
    }
    with talk.working("Preparing the data"):
        plan = heard(
            lambda: analysis.plan_of(
                table, parameters=parameters, steps=steps, truth=truth, command=_command()
            )
        )
    for sentence in analysis.preparation(plan):
        talk.say(f"  {sentence}")
    with outputs.new_folder(out, marker=outputs.ABOUT_COMPARISON, overwrite=overwrite) as work:
        with talk.working("Clustering by four methods"):
            comparison = heard(lambda: analysis.compare_methods(plan, n_clusters=n_clusters))
        with talk.working("Drawing"):
            outputs.write_comparison(plan, comparison, work / "result")
    scores = comparison.scores.reset_index().convert_dtypes().astype(object).fillna("")
    talk.show(scores.columns, scores.map(_cell).to_numpy())
    talk.say(f"The results lie in {out}")


def _cell(value: Any) -> str:
    """Return a score as people read it."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _command() -> str:
    """Return the command that repeats this run."""
    return shlex.join(["mrshc", *(word for word in sys.argv[1:] if word not in _IDLE)])


def _table(file: str, talk: Talk, *, features: o.Side | None, **reading: Any) -> Table:
    from mrshc.io import read_table

    with talk.working(f"Reading {file}"):
        table = read_table(file, features=None if features is None else features.value, **reading)
    talk.say(f"Read {table.source}: {table.notes[0]}")
    for note in table.notes[1:]:
        talk.say(f"  {note}")
    return table


def _steps(
    *,
    preset: o.Preset | None,
    impute: o.Over | None,
    standardize: o.Scaled | None,
    log2: bool,
    pseudocount: float | None,
    **numbers: Any,
) -> list[Any]:
    from mrshc.preprocessing import PRESETS, chain

    chosen: dict[str, Any] = {} if preset is None else dict(PRESETS[preset.value])
    given = {
        "impute": None if impute is None else impute.value,
        "standardize": None if standardize is None else standardize.value,
        "log2": True if log2 or pseudocount is not None else None,
        "pseudocount": pseudocount,
        **numbers,
    }
    return chain(**chosen | {name: v for name, v in given.items() if v is not None})


def run(plan: Plan, out: Path, talk: Talk, *, resume: bool, overwrite: bool) -> None:
    """Fit, write the folder and say what was found."""
    from mrshc import analysis, outputs
    from mrshc.progress import progress_bar

    for sentence in analysis.preparation(plan):
        talk.say(f"  {sentence}")
    if resume and outputs.is_complete(out, plan.work):
        talk.say(f"{out} holds the whole result already.")
        return
    try:
        with outputs.new_folder(out, overwrite=overwrite, resume=resume) as work:
            checkpoint = work / outputs.CHECKPOINT
            result = heard(
                lambda: analysis.fit(plan, checkpoint=checkpoint, verbose=talk.shows_progress)
            )
            with progress_bar("Writing", visible=talk.shows_progress) as progress:
                outputs.write_outputs(result, work / "result", progress=progress)
    except (KeyboardInterrupt, OSError):
        if outputs.can_resume(out):
            talk.warn("What is done is kept: --resume goes on with it.")
        raise
    for sentence in analysis.summary(result):
        talk.say(sentence)
    counts = analysis.classes_in_clusters(result)
    if counts is not None and counts.size <= _MOST_CELLS:
        rows = [[name, *row] for name, row in zip(counts.index, counts.to_numpy(), strict=True)]
        talk.show([str(counts.index.name), *counts.columns], rows)
    talk.say(f"The results lie in {out}")
