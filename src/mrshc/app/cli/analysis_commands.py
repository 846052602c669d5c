"""`mrshc cluster`, `mrshc compare` and `mrshc report`: from a file to an answer."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrshc.app.cli.shared_options import (
    File,
    Fitting,
    Json,
    LinkageName,
    MetricName,
    NCut,
    NFeatures,
    Out,
    Placing,
    Preparing,
    Reading,
    Refine,
    Resume,
    Robust,
    Running,
    SelectionName,
    choices,
    numbers_or_auto,
)
from mrshc.app.cli.signals import heard
from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of
from mrshc.app.cli.terminal_output import Talk
from mrshc.utils.text_cleaning import clean_text

if TYPE_CHECKING:
    from mrshc.app import Plan

# How a run is started does not change what it finds.
_IDLE = {"--resume", "--overwrite", "--quiet", "--json"}
# Of a table that people still read.
_MOST_CELLS = 150


def cluster(
    file: File,
    reading: Reading,
    preparing: Preparing,
    fitting: Fitting,
    running: Running,
    placing: Placing,
    out: Out = Path("mrshc-result"),
    json: Json = False,
    resume: Resume = False,
) -> None:
    """Find groups of samples in a table, and the few features that make them.

    Reads the table, says what it understood, and leaves a folder with the clusters, the features,
    the tree, pictures and a report to look at, in formats that other programs open.

    Example: mrshc cluster expression.tsv --out result

    Example: mrshc cluster raw.csv.gz --preset dudoit2002 --samples clinic.csv --truth subtype

    Example: mrshc cluster expression.tsv --selection evidence --refine --robust

    Example: mrshc cluster expression.tsv --impute features --n-features 50,100,200 --linkage ward

    Example: mrshc cluster expression.tsv --method hmv --n-features 100 --n-clusters 4

    Example: mrshc cluster big.tsv --out result --resume (after it was interrupted)

    Example: mrshc cluster big.h5ad --out result (also if it does not fit into memory)

    Example: mrshc cluster big.zarr --out result --dask tcp://10.0.0.1:8786

    Example: mrshc cluster big.npy --out result --device cuda
    """
    use_temporary_folder_of(out)
    from mrshc import app as analysis
    from mrshc.app import output_folder as outputs

    outputs.refuse_existing(out, overwrite=running.overwrite or resume)
    parameters, steps = fitting.parameters() | running.parameters(), preparing.steps()
    talk = Talk(quiet=running.quiet or json)
    with analysis.place_of(dask=placing.dask, device=placing.device) as place:
        needed_here = steps or fitting.robust
        table = reading.table(file, talk, stays=placing.is_elsewhere and not needed_here)
        plan = _plan(
            talk,
            table,
            method=fitting.method,
            parameters=parameters,
            steps=steps,
            truth=reading.truth,
            place=place,
        )
        run(plan, out, talk, resume=resume, overwrite=running.overwrite)
    if json:
        sys.stdout.buffer.write((out / "result.json").read_bytes())  # JSON is UTF-8 in any locale


def compare(
    file: File,
    reading: Reading,
    preparing: Preparing,
    running: Running,
    out: Out = Path("mrshc-comparison"),
    n_features: NFeatures = None,
    n_clusters: NCut = None,
    linkage: LinkageName = "complete",
    metric: MetricName = "sqeuclidean",
    selection: SelectionName = None,
    refine: Refine = False,
    robust: Robust = False,
) -> None:
    """Cluster a table by several methods, side by side.

    {compared methods}

    HC-HMV takes as many features as MrSHC chose. Leaves their trees in one picture, their scores
    in one table, and a report.

    Example: mrshc compare expression.tsv --samples clinic.csv --truth subtype --out comparison

    Example: mrshc compare raw.csv.gz --preset dudoit2002 --samples clinic.csv --truth subtype
    """
    use_temporary_folder_of(out)
    from mrshc import app as analysis
    from mrshc.app import output_folder as outputs
    from mrshc.comparison import whole_counts
    from mrshc.report import ABOUT_COMPARISON

    outputs.refuse_existing(out, about_file=ABOUT_COMPARISON, overwrite=running.overwrite)
    talk = Talk(quiet=running.quiet)
    parameters = {
        "n_features_to_select": numbers_or_auto("--n-features", n_features),
        "linkage": linkage,
        "metric": metric,
        **choices(selection, refine, robust),
        **running.parameters(),
    }
    table = reading.table(file, talk)
    analysis.refuse_elsewhere(table)
    truth = reading.truth
    plan = _plan(talk, table, parameters=parameters, steps=preparing.steps(), truth=truth)
    for sentence in analysis.preparation(plan):
        talk.say(f"  {sentence}")
    with outputs.new_folder(out, about_file=ABOUT_COMPARISON, overwrite=running.overwrite) as work:
        with talk.working("Clustering by several methods"):
            comparison = heard(lambda: analysis.compare_methods(plan, n_clusters=n_clusters))
        with talk.working("Drawing"):
            k = analysis.clusters_compared(plan, n_clusters)
            outputs.write_comparison(plan, comparison, work / "result", n_clusters=k)
    scores = whole_counts(comparison.scores).reset_index().astype(object).fillna("")
    talk.show(scores.columns, scores.map(_cell).to_numpy())
    for sentence in analysis.notes_on(comparison, plan):
        talk.say(sentence)
    talk.say(f"The results lie in {out}; look at {out / 'report.html'}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder that cluster or compare has written.")],
) -> None:
    """Make the report of a result again.

    Example: mrshc report result
    """
    use_temporary_folder_of(folder / "report.html")
    from mrshc.report import write_report

    Talk().say(f"The report lies in {write_report(folder)}")


def _plan(talk: Talk, table: Any, **options: Any) -> Plan:
    from mrshc import app as analysis

    words = ["mrshc", *(word for word in sys.argv[1:] if word not in _IDLE)]
    command = clean_text(shlex.join(words))
    with talk.working("Preparing the data"):
        plan: Plan = heard(lambda: analysis.plan_of(table, command=command, **options))
    return plan


def _cell(value: Any) -> str:
    """Return a score as people read it."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def run(
    plan: Plan,
    out: Path,
    talk: Talk,
    *,
    resume: bool = False,
    overwrite: bool = False,
    resumable: bool = True,
) -> None:
    """Fit, write the folder and say what was found; if `resumable`, keep finished steps."""
    from mrshc import app as analysis
    from mrshc.app import output_folder as outputs
    from mrshc.report.sentences import classes_in_clusters
    from mrshc.utils.progress import progress_bar

    for sentence in analysis.preparation(plan):
        talk.say(f"  {sentence}")
    if resume and _is_complete(plan, out, overwrite=overwrite):
        talk.say(f"{out} holds the whole result already.")
        return
    try:
        with outputs.new_folder(out, overwrite=overwrite, resume=resume) as work:
            checkpoint = work / outputs.CHECKPOINT if resumable else None
            found = heard(
                lambda: analysis.fitted(plan, checkpoint=checkpoint, verbose=talk.shows_progress)
            )
            with talk.working("Describing clusters and features"):
                result = heard(lambda: analysis.described(plan, found))
            with progress_bar("Writing", visible=talk.shows_progress) as progress:
                outputs.write_outputs(result, work / "result", progress=progress)
    except (KeyboardInterrupt, SystemExit, MemoryError, OSError):
        if outputs.can_resume(out):
            options = "--resume --overwrite" if overwrite else "--resume"
            talk.warn(f"What is done is kept: {options} goes on with it.")
        raise
    for sentence in analysis.summary(result):
        talk.say(sentence)
    counts = classes_in_clusters(result)
    if counts is not None and counts.size <= _MOST_CELLS:
        rows = [[name, *row] for name, row in zip(counts.index, counts.to_numpy(), strict=True)]
        talk.show([str(counts.index.name), *counts.columns], rows)
    talk.say(f"The results lie in {out}; look at {out / 'report.html'}")


def _is_complete(plan: Plan, out: Path, *, overwrite: bool) -> bool:
    """Tell whether a folder holds the result of a plan; one with files missing may be replaced."""
    from mrshc.app import output_folder as outputs
    from mrshc.errors import UserError

    if not outputs.is_result_of(out, plan.work):
        return False
    try:
        outputs.refuse_incomplete(out)
    except UserError as error:
        if overwrite:
            return False
        raise UserError(f"{error} Give --overwrite in place of --resume.") from None
    return True
