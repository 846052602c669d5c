"""The commands `mrshc cluster` and `mrshc compare`, which analyse a table, and `mrshc report`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrshc.app.cli.confidence_options import ConfidenceOptions
from mrshc.app.cli.gene_options import GeneOptions
from mrshc.app.cli.method_options import (
    CutOption,
    LinkageOption,
    MethodOptions,
    MethodsOption,
    MetricOption,
    NFeaturesOption,
    RobustOption,
)
from mrshc.app.cli.option_names import option_for_parameter
from mrshc.app.cli.option_values import parse_keys, parse_numbers_or_auto
from mrshc.app.cli.picture_options import PictureOptions
from mrshc.app.cli.preprocessing_options import PreprocessingOptions
from mrshc.app.cli.reading_options import FileArgument, ReadingOptions
from mrshc.app.cli.run_options import BackendOptions, JsonOption, OutOption, RunOptions
from mrshc.app.cli.signals import run_interruptibly
from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of
from mrshc.app.cli.terminal_output import TerminalOutput
from mrshc.shell.text_cleaning import clean_text
from mrshc.shell.wording import reword

if TYPE_CHECKING:
    from mrshc.app import Plan
    from mrshc.app.picture_settings import PictureSettings

# Options that do not change the result. The command that is stored with a result omits them.
_OPTIONS_WITHOUT_EFFECT = {"--overwrite", "--quiet", "--json"}
# Maximum number of cells of a printed table of classes by clusters: about as many as fit on one
# screen. The value is not tuned: it does not affect results.
_MAX_TABLE_CELLS = 150


def cluster(
    file: FileArgument,
    reading: ReadingOptions,
    preprocessing: PreprocessingOptions,
    fitting: MethodOptions,
    confidence: ConfidenceOptions,
    genes: GeneOptions,
    pictures: PictureOptions,
    running: RunOptions,
    backend_options: BackendOptions,
    out: OutOption = Path("mrshc-result"),
    json: JsonOption = False,
) -> None:
    """Find groups of samples in a table, and the features that separate them.

    Read the table, report how it was read, fit the method, and write a folder with the clusters,
    the features, the tree, pictures, and a report (report.html) to open in a browser. The tables
    and the tree are CSV, GCT and Newick files, which other programs can open.

    Example: mrshc cluster expression.tsv --out result

    Example: mrshc cluster raw.csv.gz --preset dudoit2002 --samples clinic.csv --truth subtype

    Example: mrshc cluster counts.tsv --normalize size-factors --min-count 10

    Example: mrshc cluster expression.tsv --n-clusters 4 --metric correlation --robust

    Example: mrshc cluster expression.tsv --significance --stability

    Example: mrshc cluster expression.tsv --gene-sets hallmark.gmt --gene-column symbol

    Example: mrshc cluster expression.tsv --format pdf,png (figures for a paper)

    Example: mrshc cluster expression.tsv --paper --n-features 50,100,200

    Example: mrshc cluster expression.tsv --method hmv --n-features 100 --n-clusters 4

    Example: mrshc cluster big.h5ad --out result (even if the data do not fit into memory)

    Example: mrshc cluster big.zarr --out result --dask tcp://10.0.0.1:8786

    Example: mrshc cluster big.npy --out result --device cuda
    """
    reading.refuse_missing_files(file)
    use_temporary_folder_of(out)
    from mrshc import app as analysis
    from mrshc.app.procedures import complete_procedure

    _refuse_existing(out, overwrite=running.overwrite)
    picture_settings = pictures.to_settings()
    method, parameters, procedure = complete_procedure(
        fitting.method, fitting.to_parameters() | running.to_parameters(), paper=fitting.paper
    )
    steps = preprocessing.make_steps()
    analyses = confidence.to_settings(running)
    output = TerminalOutput(quiet=running.quiet or json)
    gene_settings = genes.to_settings(output)
    options = {"dask": backend_options.dask, "device": backend_options.device}
    with analysis.open_backend(**options) as backend:
        # Data for a Dask cluster or a device need not be read into memory first, unless a
        # preprocessing step, --robust, --significance or --stability needs the data in memory.
        needs_memory = steps or fitting.robust or analyses.is_given
        prefers_out_of_core = backend_options.is_given and not needs_memory
        table = reading.read(file, output, prefers_out_of_core=prefers_out_of_core)
        output.print_sentence(procedure)
        plan = _make_plan(
            output,
            table,
            method=method,
            parameters=parameters,
            steps=steps,
            truth=reading.truth,
            backend=backend,
            confidence=analyses,
            genes=gene_settings,
            reports_scale=preprocessing.reports_scale,
        )
        run_plan(
            plan,
            out,
            output,
            pictures=picture_settings,
            overwrite=running.overwrite,
            epilogue=lambda: _print_other_analyses(plan, output),
        )
    if json:
        # JSON is UTF-8 in any locale, so the bytes of the file are written unchanged.
        sys.stdout.buffer.write((out / "result.json").read_bytes())


def compare(
    file: FileArgument,
    reading: ReadingOptions,
    preprocessing: PreprocessingOptions,
    pictures: PictureOptions,
    running: RunOptions,
    out: OutOption = Path("mrshc-comparison"),
    methods: MethodsOption = None,
    n_features: NFeaturesOption = None,
    n_clusters: CutOption = None,
    linkage: LinkageOption = "complete",
    metric: MetricOption = "sqeuclidean",
    robust: RobustOption = False,
) -> None:
    """Cluster a table by several methods and compare the results.

    The methods are, unless --methods names others: {compared methods}

    HC-HMV uses as many features as MrSHC selected. The command writes a folder with the trees of
    all methods in one picture, a table of their scores, and a report (report.html) to open in a
    browser.

    Example: mrshc compare expression.tsv --samples clinic.csv --truth subtype --out comparison

    Example: mrshc compare raw.csv.gz --preset dudoit2002 --samples clinic.csv --truth subtype
    """
    reading.refuse_missing_files(file)
    use_temporary_folder_of(out)
    from mrshc import app as analysis
    from mrshc.io.comparison_file_version import COMPARISON_FILE

    _refuse_existing(out, about_file=COMPARISON_FILE, overwrite=running.overwrite)
    picture_settings = pictures.to_settings()
    output = TerminalOutput(quiet=running.quiet)
    parameters = {
        "n_features_to_select": parse_numbers_or_auto("--n-features", n_features),
        "linkage": linkage,
        "metric": metric,
        "robust": robust or None,
        **running.to_parameters(),
    }
    # A comparison needs the data in memory, so this command has no options for other backends.
    table = reading.read(file, output)
    from mrshc.app import output_folder as outputs
    from mrshc.comparison import convert_counts_to_integers
    from mrshc.metrics import SCORE_EXPLANATIONS

    # Out-of-core data are refused before the plan is made, since making the plan would need a pass
    # over the data.
    analysis.refuse_out_of_core_comparison(table)
    steps, truth = preprocessing.make_steps(), reading.truth
    plan = _make_plan(
        output,
        table,
        method="mrshc",
        parameters=parameters,
        steps=steps,
        truth=truth,
        reports_scale=preprocessing.reports_scale,
    )
    _print_preprocessing(plan, output)
    with outputs.new_folder(out, about_file=COMPARISON_FILE, overwrite=running.overwrite) as new:
        with output.show_status("Clustering by several methods"):
            comparison = run_interruptibly(
                lambda: analysis.compare_methods(
                    plan,
                    n_clusters=n_clusters,
                    methods=parse_keys(methods),
                    announce=output.print_phase,
                )
            )
        with output.show_status("Drawing"):
            k = analysis.comparison_n_clusters(plan, n_clusters)
            outputs.write_comparison(plan, comparison, new, n_clusters=k, settings=picture_settings)
    # The scores are converted to the dtype object, so that missing scores can be shown as empty
    # cells.
    scores = convert_counts_to_integers(comparison.scores).reset_index().astype(object)
    scores = scores.where(scores.notna(), "").drop(columns="error", errors="ignore")
    output.print_table(scores.columns, scores.map(_format_score).to_numpy())
    for name, explanation in SCORE_EXPLANATIONS.items():
        if name in scores:
            output.print_sentence(f"{name}: {explanation}.")
    for sentence in analysis.comparison_notes(comparison, plan):
        output.print_sentence(sentence)
    for name, error in comparison.errors.items():
        output.print_warning(f"{name} failed: {reword(error, option_for_parameter)}")
    _print_location(out, output)


def report(
    folder: Annotated[
        Path, typer.Argument(help="Folder that mrshc cluster or mrshc compare has written.")
    ],
) -> None:
    """Write the report of a finished run again, from the files in its folder.

    Example: mrshc report result
    """
    # The temporary folder is set first, since the import below may need it.
    use_temporary_folder_of(folder / "report.html")
    from mrshc.report import write_report

    TerminalOutput().print_sentence(f"Report written to {write_report(folder)}")


def _refuse_existing(out: Path, **options: Any) -> None:
    """Raise UserError if the output folder exists and may not be replaced.

    The folder is checked before the table is read, since reading may take minutes. `options` are
    the keyword arguments of `refuse_existing`.
    """
    # The module is imported only if something exists under this name, since the import takes a
    # second, for which the user would wait before the first sentence.
    if os.path.lexists(out):
        from mrshc.app.output_folder import refuse_existing

        refuse_existing(out, **options)


def _make_plan(output: TerminalOutput, table: Any, **options: Any) -> Plan:
    """Return the plan of a run.

    The command to be stored with the result is taken from `sys.argv`. `options` are the other
    keyword arguments of `mrshc.app.make_plan`.
    """
    from mrshc import app as analysis

    # The program may have been started under another name or path, but the stored command always
    # begins with "mrshc".
    words = ["mrshc", *(word for word in sys.argv[1:] if word not in _OPTIONS_WITHOUT_EFFECT)]
    command = clean_text(shlex.join(words))
    with output.show_status("Preparing the data"):
        plan: Plan = run_interruptibly(
            lambda: analysis.make_plan(table, command=command, **options)
        )
    # The concerns of the library mention parameters, which are replaced by the corresponding
    # options of the command line. They are printed before the fit, which may take long.
    plan = replace(plan, concerns=tuple(reword(c, option_for_parameter) for c in plan.concerns))
    for concern in plan.concerns:
        output.print_warning(concern)
    return plan


def _format_score(value: Any) -> str:
    """Return a score as text: floats with three decimals, counts and text unchanged."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _print_preprocessing(plan: Plan, output: TerminalOutput) -> None:
    """Print an indented summary of the preprocessing, to follow the sentence on the table."""
    from mrshc import app as analysis

    for sentence in analysis.preprocessing_summary(plan):
        output.print_sentence(f"  {sentence}")


def _print_location(out: Path, output: TerminalOutput) -> None:
    """Print the path of the output folder and the path of the report."""
    output.print_sentence(f"Results written to {out}; open {out / 'report.html'}")


def run_plan(
    plan: Plan,
    out: Path,
    output: TerminalOutput,
    *,
    pictures: PictureSettings | None = None,
    overwrite: bool = False,
    epilogue: Callable[[], None] = lambda: None,
) -> None:
    """Fit the method of a plan, write the output folder, and print a summary."""
    from mrshc import app as analysis
    from mrshc.app import output_folder as outputs
    from mrshc.app.picture_settings import PictureSettings
    from mrshc.core.parallel import no_progress, progress_bar

    settings = PictureSettings() if pictures is None else pictures
    _print_preprocessing(plan, output)
    hide = no_progress() if output.is_quiet else nullcontext()
    with hide, outputs.new_folder(out, overwrite=overwrite) as new:
        fitted = run_interruptibly(lambda: analysis.fit_estimator(plan))
        confidence = run_interruptibly(
            lambda: analysis.assess_confidence(plan, fitted, announce=output.print_phase)
        )
        with output.show_status("Describing clusters and features"):
            result = run_interruptibly(lambda: analysis.describe_fit(plan, fitted, confidence))
        with progress_bar("Writing") as progress:
            outputs.write_outputs(result, new, settings=settings, progress=progress)
    # The concerns of the plan were printed before the fit.
    _print_result(result, output, known_caveats=plan.concerns)
    if output.is_quiet:
        # Without --quiet, the summary contains these findings.
        for finding in (*fitted.warnings, *analysis.confidence_warnings(result)):
            output.print_warning(finding)
    epilogue()
    _print_location(out, output)


def _print_other_analyses(plan: Plan, output: TerminalOutput) -> None:
    """Print a sentence on the analyses of confidence that were not requested, if any.

    They need the data in memory, so nothing is printed for other data.
    """
    purposes = {
        "significance": "to test whether the splits are clearer than those of data without "
        "clusters, add --significance",
        "stability": "to see whether the clusters depend on single samples, add --stability",
    }
    texts = [text for name, text in purposes.items() if not getattr(plan.confidence, name)]
    if texts and plan.matrix.in_memory:
        sentence = "; ".join(texts)
        output.print_sentence(f"{sentence[0].upper()}{sentence[1:]}.")


def _print_result(
    result: Any, output: TerminalOutput, *, known_caveats: Collection[str] = ()
) -> None:
    """Print the summary of a result, and the table of classes by clusters if it is small.

    Caveats in `known_caveats` are left out.
    """
    from mrshc import app as analysis
    from mrshc.report.sentences import classes_in_clusters

    for sentence in analysis.result_summary(result, known_caveats=known_caveats):
        output.print_sentence(reword(sentence, option_for_parameter))
    counts = classes_in_clusters(result)
    if counts is not None and counts.size <= _MAX_TABLE_CELLS:
        rows = [[name, *row] for name, row in zip(counts.index, counts.to_numpy(), strict=True)]
        output.print_table([str(counts.index.name), *counts.columns], rows)
