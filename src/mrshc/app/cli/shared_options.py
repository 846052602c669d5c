"""Options of the commands, with their help texts; most options are collected in groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mrshc.app.cli.help_lists import (
    ALL_METHODS,
    BLOCK_FORMATS_AND,
    BLOCK_FORMATS_OR,
    METHODS,
    SELECTION_RULES,
    TABLE_FORMATS,
)
from mrshc.app.cli.option_names import SetsParameter, option_for_parameter
from mrshc.app.cli.options_from_dataclasses import ChoiceFrom, enum_to_text
from mrshc.errors import Parameter, UserError, reword

if TYPE_CHECKING:
    from mrshc.app import ConfidenceSettings, GeneSettings
    from mrshc.app.cli.terminal_output import TerminalOutput
    from mrshc.io import Table


class FeatureAxis(StrEnum):
    """Whether the features are the rows or the columns of a table."""

    rows = "rows"
    columns = "columns"


class ImputationAxis(StrEnum):
    """Whether missing values are imputed from the nearest features or from the nearest samples."""

    features = "features"
    samples = "samples"


class StandardizedAxis(StrEnum):
    """Whether samples, features or both are standardised; with "both", samples come first."""

    samples = "samples"
    features = "features"
    both = "both"


class Centering(StrEnum):
    """Mean to subtract before components are computed: of each column, of all cells, or none."""

    columns = "columns"
    grand = "grand"
    none = "none"


def _option_factory(panel: str) -> Callable[..., Any]:
    """Return a function that creates options for one panel of the help text."""

    def make_option(*names: str, **about: Any) -> Any:
        return typer.Option(*names, rich_help_panel=panel, **about)

    return make_option


_reading_option = _option_factory("Reading")
_preprocessing_option = _option_factory("Preparing the data")
_method_option = _option_factory("Method")
_confidence_option = _option_factory("Confidence in the clusters")
_gene_option = _option_factory("Genes")
_run_option = _option_factory("Running")

# Arguments and options that are not in a group. Options that take a number or "auto" are declared
# as strings, since typer has no type for such values. Options annotated with `ChoiceFrom` are also
# declared as strings; their valid values are imported when the command is called.
FileArgument = Annotated[
    str,
    typer.Argument(
        help=f"Table of numbers: {TABLE_FORMATS}; - reads from standard input. {BLOCK_FORMATS_AND} "
        "files that do not fit into memory are read in blocks."
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
NFeaturesOption = Annotated[
    str | None,
    _method_option(
        "--n-features",
        "--n-features-to-select",
        "-q",
        help="Number of features to select; several candidates, such as 10,20,40, of which the "
        "method chooses; or auto, for candidates by default. With selection by association: number "
        "of features of the start sets, while the tests determine how many are selected.",
    ),
    SetsParameter("n_features_to_select"),
]
MethodsOption = Annotated[
    str | None,
    _method_option(
        "--methods",
        help=f"Methods to compare, with commas between them, out of: {ALL_METHODS}. Methods "
        "without a tree need --n-clusters or --truth.",
    ),
    SetsParameter("methods"),
]
LinkageOption = Annotated[
    str,
    _method_option("--linkage", help="Distance between clusters, by which they are merged."),
    ChoiceFrom("mrshc.core.trees.tree", "LINKAGES"),
]
OptionalLinkageOption = Annotated[
    str | None,
    _method_option(
        "--linkage",
        help="Distance between clusters, by which they are merged (default ward for mrshc; "
        "complete with --paper, with --metric cityblock, and for other methods; average for cosa).",
    ),
    ChoiceFrom("mrshc.core.trees.tree", "LINKAGES"),
]
MetricOption = Annotated[
    str,
    _method_option(
        "--metric",
        help="Distance between samples. correlation is 1 minus the correlation of two samples "
        "over the selected features, at least 3; it is not available for shc.",
    ),
    ChoiceFrom("mrshc.core.trees.tree", "METRICS"),
]
OptionalMetricOption = Annotated[
    str | None,
    _method_option(
        "--metric",
        help="Distance between samples (default sqeuclidean). correlation is 1 minus the "
        "correlation of two samples over the selected features, at least 3; it is not available "
        "for shc. cosa has a distance of its own.",
    ),
    ChoiceFrom("mrshc.core.trees.tree", "METRICS"),
]
SelectionOption = Annotated[
    str | None,
    _method_option(
        "--selection",
        help=f"mrshc: rule by which number of features and rank are chosen. {SELECTION_RULES}",
    ),
    ChoiceFrom("mrshc.core.selection", "RULES"),
]
ComparedSelectionOption = Annotated[
    str | None,
    _method_option(
        "--selection",
        help="mrshc: rule by which number of features and rank are chosen (default silhouette, as "
        "in the paper). mrshc-association and mrshc-evidence have their own.",
    ),
    ChoiceFrom("mrshc.core.selection", "RULES"),
]
RefineOption = Annotated[
    bool,
    _method_option(
        "--refine",
        help="mrshc, shc: find all features that are associated with the clusters, each tested "
        "against trees built without it, and build the tree on them. Gives the complete list of "
        "features, and tests whether held-out features support the clusters. Takes a few per cent "
        "more time.",
    ),
]
RobustOption = Annotated[
    bool,
    _method_option(
        "--robust",
        help="mrshc: winsorise unusual values, and set outlying samples apart: they are listed, "
        "and attached to the tree at the end. For heavy tails, spikes and failed arrays. Needs "
        "memory for a copy of the data.",
    ),
]
CutOption = Annotated[
    int | None,
    _method_option(
        "--n-clusters",
        "-k",
        min=1,
        help="Number of clusters into which every tree is cut; by default the number of classes "
        "in --truth.",
    ),
]
JsonOption = Annotated[
    bool, _run_option("--json", help="Print result.json on standard output, and nothing else.")
]
FormatOption = Annotated[
    str | None,
    _run_option(
        "--format",
        help="File formats of the pictures, with commas between them: png (300 dots per inch), svg "
        "and pdf. By default, all pictures are png, and trees are also svg.",
    ),
]
ResumeOption = Annotated[
    bool,
    _run_option(
        "--resume", help="Continue an interrupted run, with the same table, options and --out."
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading the table."""

    features: Annotated[
        FeatureAxis | None,
        _reading_option(
            "--features",
            help="Whether features are in rows or in columns; by default, the longer side.",
        ),
    ] = None
    # The two tables may list the samples in different orders, so samples are matched by name.
    samples: Annotated[
        Path | None,
        _reading_option(
            "--samples",
            help="Second table (text or Excel) with annotations of the samples, matched by name; "
            "some samples may be absent from it.",
        ),
    ] = None
    samples_sheet: Annotated[
        str | None,
        _reading_option(
            "--samples-sheet",
            help="Sheet with the annotations, by name or number, if --samples is an Excel "
            "workbook; by default, the first. The workbook may be that of the table.",
        ),
    ] = None
    truth: Annotated[
        str | None,
        _reading_option(
            "--truth",
            help="Annotation of the samples with known classes, for scores and colours; the fit "
            "does not use it.",
        ),
    ] = None
    annotation: Annotated[
        list[str] | None,
        _reading_option(
            "--annotation",
            help="Column, or row if the features are in rows, that is an annotation although it "
            "holds numbers, such as age; may be given repeatedly.",
        ),
        SetsParameter("annotations"),
    ] = None
    separator: Annotated[
        str | None,
        _reading_option(
            "--separator", help="Character between cells; detected by default, if the file is text."
        ),
    ] = None
    decimal: Annotated[
        str | None,
        _reading_option("--decimal", help="Decimal mark, . or a comma; detected by default."),
    ] = None
    sheet: Annotated[
        str | None,
        _reading_option(
            "--sheet", help="Sheet of an Excel workbook, by name or number; by default, the first."
        ),
    ] = None
    na_values: Annotated[
        list[str] | None,
        _reading_option(
            "--na-values",
            help="Text or number that stands for a missing value, such as ND or -999, in addition "
            "to empty cells, NA, NaN and null; may be given repeatedly.",
        ),
    ] = None
    keep_numeric: Annotated[
        bool,
        _reading_option(
            "--keep-numeric",
            help="Keep columns and rows of numbers among the values even if they look like "
            "annotations, such as age or batch. Without it, they are an error; see --annotation.",
        ),
    ] = False
    # None: the size of the data and the free memory determine whether data are read into memory.
    in_memory: Annotated[
        bool | None,
        _reading_option(
            "--in-memory/--out-of-core",
            help=f"Read all values of a {BLOCK_FORMATS_OR} file into memory, or leave them in the "
            "file and read them in blocks, once for each pass over the data. By default they are "
            "read into memory if they take no more than half of the free memory. Preprocessing, "
            "--robust and --method hc need them in memory.",
        ),
    ] = None

    def refuse_missing_files(self, file: str) -> None:
        """Raise TableError if the table or the table of annotations does not exist.

        The check is made before slow modules are imported.
        """
        from mrshc.io.streams import refuse_missing_file

        for path in (file, self.samples):
            if path is not None:
                refuse_missing_file(path)
        if self.samples is None or file == "-" or not self.samples.samefile(file):
            return
        # Another sheet of the same workbook is another table.
        if self.samples_sheet in (None, self.sheet or "1"):
            raise UserError(
                f"--samples must name a table of annotations, but {file} is the table of values. "
                "If the annotations are in another sheet of the workbook, name it with "
                "--samples-sheet; otherwise write them to a file of their own."
            )

    def read(
        self,
        file: str,
        output: TerminalOutput,
        *,
        prefers_out_of_core: bool = False,
        min_samples: int | None = None,
    ) -> Table:
        """Read and return the table, and print how it was interpreted.

        Parameters
        ----------
        file : str
            Path of the table, or "-" for standard input.
        output : TerminalOutput
            Object that prints the sentences.
        prefers_out_of_core : bool, default=False
            Whether values are left in the file if the file can be read in blocks and the user gave
            neither --in-memory nor --out-of-core.
        min_samples : int or None, default=None
            Smallest number of samples that is accepted; None for the number that a clustering
            needs.
        """
        from mrshc.io import can_read_in_blocks, read_table

        # An explicit --in-memory or --out-of-core takes precedence.
        in_memory = self.in_memory
        if prefers_out_of_core and in_memory is None and can_read_in_blocks(file):
            in_memory = False
        with output.show_status(f"Reading {file}"):
            table = read_table(
                file,
                features=None if self.features is None else self.features.value,
                samples=self.samples,
                samples_sheet=self.samples_sheet,
                truth=self.truth,
                annotations=self.annotation or (),
                separator=self.separator,
                decimal=self.decimal,
                sheet=self.sheet,
                na_values=self.na_values or (),
                keep_numeric=self.keep_numeric,
                in_memory=in_memory,
                **({} if min_samples is None else {"min_samples": min_samples}),
            )
        # The notes from the library mention parameters, which are replaced by the corresponding
        # options of the command line.
        notes = tuple(reword(note, option_for_parameter) for note in table.notes)
        table = replace(table, notes=notes)
        output.print_sentence(f"Read {table.source}: {table.notes[0]}")
        for note in table.notes[1:]:
            output.print_sentence(f"  {note}")
        return table


@dataclass(frozen=True, kw_only=True)
class PreprocessingOptions:
    """Options for preprocessing steps, which `mrshc.preprocessing.chain` puts in order."""

    preset: Annotated[
        str | None,
        _preprocessing_option(
            "--preset",
            help="Several steps by one name. dudoit2002, for raw Affymetrix intensities: floor 100,"
            " ceiling 16000, max/min above 5, max-min above 500, log2.",
        ),
        ChoiceFrom("mrshc.preprocessing.presets", "PRESETS"),
    ] = None
    impute: Annotated[
        ImputationAxis | None,
        _preprocessing_option(
            "--impute",
            help="Fill in missing values from the nearest features or samples, before all other "
            "steps. Without it, missing values are allowed: distances are then estimated from the "
            "observed values.",
        ),
    ] = None
    # The default of 5 is that of scikit-learn's KNNImputer.
    neighbors: Annotated[
        int,
        _preprocessing_option(
            "--neighbors", min=1, help="Number of neighbours from which --impute fills in values."
        ),
        SetsParameter("n_neighbors"),
    ] = 5
    min_count: Annotated[
        float | None,
        _preprocessing_option(
            "--min-count",
            help="Keep features with at least this value in at least --min-samples samples, such "
            "as 10 for counts.",
        ),
    ] = None
    min_samples: Annotated[
        int | None,
        _preprocessing_option(
            "--min-samples", help="Number of samples for --min-count (default 2)."
        ),
    ] = None
    normalize: Annotated[
        str | None,
        _preprocessing_option(
            "--normalize",
            help="Normalise counts, add 1 (or --pseudocount) and take log2. cpm: counts per "
            "million. size-factors: median of ratios (Anders and Huber 2010). none: use the values "
            "as they are, without a warning on counts and raw intensities.",
        ),
        ChoiceFrom("mrshc.preprocessing.presets", "NORMALIZATIONS"),
    ] = None
    floor: Annotated[
        float | None, _preprocessing_option("--floor", help="Raise lower values to this value.")
    ] = None
    ceiling: Annotated[
        float | None, _preprocessing_option("--ceiling", help="Lower higher values to this value.")
    ] = None
    min_ratio: Annotated[
        float | None,
        _preprocessing_option("--min-ratio", help="Keep features with max/min above this value."),
    ] = None
    min_difference: Annotated[
        float | None,
        _preprocessing_option(
            "--min-difference", help="Keep features with max-min above this value."
        ),
    ] = None
    log2: Annotated[bool, _preprocessing_option("--log2", help="Take logarithms to base 2.")] = (
        False
    )
    pseudocount: Annotated[
        float | None,
        _preprocessing_option(
            "--pseudocount",
            help="Take logarithms after adding this value, such as 1 for counts.",
        ),
    ] = None
    standardize: Annotated[
        StandardizedAxis | None,
        _preprocessing_option(
            "--standardize",
            help="Scale samples, features or both to mean 0 and standard deviation 1.",
        ),
    ] = None
    top_variance: Annotated[
        int | None,
        _preprocessing_option(
            "--top-variance", help="Keep this number of features, those of highest variance."
        ),
        SetsParameter("n_features"),
    ] = None

    @property
    def reports_scale(self) -> bool:
        """Whether a warning is printed if the values look like counts or raw intensities."""
        return self.normalize != "none"

    def make_steps(self) -> list[Any]:
        """Return the preprocessing transformers.

        Options that were given individually override the values in the preset.
        """
        from mrshc.preprocessing import PRESETS, chain

        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "preset"}
        # A pseudocount is used only with a logarithm, so --pseudocount implies --log2.
        given["log2"] = self.log2 or self.pseudocount is not None or None
        preset = {} if self.preset is None else PRESETS[self.preset]
        return chain(**preset | {n: enum_to_text(v) for n, v in given.items() if v is not None})


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options for the method and its parameters.

    The value None stands for the default of the estimator, which the help text gives in
    parentheses. If a default were given here, it would also be passed to methods that do not have
    the parameter. These methods would raise an error.
    """

    method: Annotated[
        str,
        _method_option("--method", help=METHODS),
        ChoiceFrom("mrshc.methods", "METHODS"),
    ] = "mrshc"
    n_features: NFeaturesOption = None
    rank: Annotated[
        str | None,
        _method_option(
            "--rank", "-r", help="mrshc: number of sparse components, or auto (the default)."
        ),
    ] = None
    max_rank: Annotated[
        int | None, _method_option("--max-rank", help="mrshc: largest rank tried (default 5).")
    ] = None
    n_clusters: Annotated[
        str | None,
        _method_option(
            "--n-clusters",
            "-k",
            help="Number of clusters, or auto (the default). A given number is always obtained. "
            "With --paper, a note states how many clusters the gap statistic supports if they are "
            "fewer; with the recommended procedure, the number is not tested.",
        ),
    ] = None
    paper: Annotated[
        bool,
        _method_option(
            "--paper",
            help="mrshc: use the procedure of Zhang and Zamar (2014), which is selection by "
            "silhouette with complete linkage. The default is selection by association with Ward's "
            "linkage, which is recommended for real data.",
        ),
    ] = False
    linkage: OptionalLinkageOption = None
    metric: OptionalMetricOption = None
    n_references: Annotated[
        int | None,
        _method_option(
            "--n-references",
            help="mrshc: number of reference samples of a gap statistic (default 50).",
        ),
    ] = None
    stop_early: Annotated[
        bool | None,
        _method_option(
            "--stop-early/--all-references",
            help="mrshc: stop drawing reference samples when the decision is clear (the default), "
            "or always draw all of them.",
        ),
    ] = None
    feature_tolerance: Annotated[
        int | None,
        _method_option(
            "--feature-tolerance",
            help="mrshc: accept a set that has up to this many features more or fewer than asked "
            "for (default 0).",
        ),
    ] = None
    center: Annotated[
        Centering | None,
        _method_option(
            "--center",
            help="mrshc: what to subtract before sparse components are computed: the means of the "
            "columns (the default), one grand mean, or nothing.",
        ),
    ] = None
    l1_bound: Annotated[
        str | None,
        _method_option(
            "--l1-bound",
            help="shc: bound on the sum of the weights; several candidates with commas between "
            "them; or auto.",
        ),
    ] = None
    penalty: Annotated[
        str | None,
        _method_option(
            "--penalty",
            help="shc: l1 (the default) bounds the sum of the weights; ssl is the penalty of the "
            "spike-and-slab lasso.",
        ),
        ChoiceFrom("mrshc.core.sparse_hc.penalties", "PENALTIES"),
    ] = None
    spike_penalty: Annotated[
        str | None,
        _method_option(
            "--spike-penalty",
            help="shc with --penalty ssl: penalty of small weights; several candidates with commas "
            "between them; or auto (the default).",
        ),
    ] = None
    slab_penalty: Annotated[
        float | None,
        _method_option(
            "--slab-penalty",
            help="shc with --penalty ssl: penalty of large weights (default 1).",
        ),
    ] = None
    n_permutations: Annotated[
        int | None,
        _method_option(
            "--n-permutations",
            help="shc: number of permutations by which the bound, the penalty or the number of "
            "features is chosen (default 10).",
        ),
    ] = None
    selection: SelectionOption = None
    refine: RefineOption = False
    robust: RobustOption = False

    def to_parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator by name; None stands for the default."""
        # The parameter `center` takes True, "grand" or False. On the command line, words are
        # clearer.
        centers = {
            None: None,
            Centering.columns: True,
            Centering.grand: "grand",
            Centering.none: False,
        }
        return {
            "n_features_to_select": parse_numbers_or_auto("--n-features", self.n_features),
            "rank": parse_number_or_auto("--rank", self.rank),
            "max_rank": self.max_rank,
            "n_clusters": parse_number_or_auto("--n-clusters", self.n_clusters),
            "linkage": self.linkage,
            "metric": self.metric,
            "n_references": self.n_references,
            "stop_early": self.stop_early,
            "feature_tolerance": self.feature_tolerance,
            "center": centers[self.center],
            "l1_bound": parse_numbers_or_auto("--l1-bound", self.l1_bound, kind=float),
            "penalty": self.penalty,
            "spike_penalty": parse_numbers_or_auto(
                "--spike-penalty", self.spike_penalty, kind=float
            ),
            "slab_penalty": self.slab_penalty,
            "n_permutations": self.n_permutations,
            **sparse_method_parameters(self.selection, refine=self.refine, robust=self.robust),
        }


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
class ConfidenceOptions:
    """Options for the analyses of significance and stability, which follow the fit.

    The value None stands for the default, which the help text gives in parentheses.
    """

    significance: Annotated[
        bool,
        _confidence_option(
            "--significance",
            help="Test which splits of the tree are clearer than splits of simulated data without "
            "clusters. The features are selected again for each simulated data set.",
        ),
    ] = False
    significance_level: Annotated[
        float | None,
        _confidence_option(
            "--significance-level",
            help="Probability that any split of data without clusters is called significant "
            "(default 0.05).",
        ),
        SetsParameter("alpha"),
    ] = None
    simulations: Annotated[
        int | None,
        _confidence_option(
            "--simulations",
            help="Largest number of simulated data sets for each test (default 100). Each takes "
            "about as long as the fit. A split below the first may need two tests, the first of "
            "which is fast.",
        ),
        SetsParameter("n_simulations"),
    ] = None
    stability: Annotated[
        bool,
        _confidence_option(
            "--stability",
            help="Repeat the fit on random subsamples of 80 % of the samples, and report how often "
            "clusters, branches and selected features recur.",
        ),
    ] = False
    resamples: Annotated[
        int | None,
        _confidence_option(
            "--resamples",
            help="Number of subsamples (default 50). Each takes about as long as the fit.",
        ),
        SetsParameter("n_resamples"),
    ] = None

    def to_settings(self, running: RunOptions) -> ConfidenceSettings:
        """Return the settings of the analyses.

        Raises UserError if a number was given for an analysis that was not requested.
        """
        from mrshc.app import ConfidenceSettings

        given = {
            "alpha": (self.significance_level, "significance"),
            "n_simulations": (self.simulations, "significance"),
            "n_resamples": (self.resamples, "stability"),
        }
        values: dict[str, Any] = {n: value for n, (value, _) in given.items() if value is not None}
        for name in values:
            analysis = given[name][1]
            if not getattr(self, analysis):
                option = option_for_parameter(Parameter(name))
                raise UserError(
                    f"{option} has no effect without --{analysis}. Add --{analysis}, or leave "
                    f"{option} out."
                )
        return ConfidenceSettings(
            significance=self.significance,
            stability=self.stability,
            random_state=running.seed,
            n_jobs=running.jobs,
            **values,
        )


@dataclass(frozen=True, kw_only=True)
class GeneOptions:
    """Options that concern genes. They do not affect the clusters.

    The value None stands for the default, which the help text gives in parentheses.
    """

    gene_column: Annotated[
        str | None,
        _gene_option(
            "--gene-column",
            help="Description column of the features with their genes, for links, gene sets and "
            "ranked lists. By default, the names of the features are the genes.",
        ),
        SetsParameter("genes"),
    ] = None
    gene_url: Annotated[
        str | None,
        _gene_option(
            "--gene-url",
            metavar="TEMPLATE",
            help="Web page of each gene, to which the report links, such as "
            "https://example.org/{gene}; {feature} stands for the name of the feature.",
        ),
    ] = None
    gene_sets: Annotated[
        Path | None,
        _gene_option(
            "--gene-sets",
            help="File with gene sets (.gmt), to find the sets that are over-represented among the "
            "markers of each cluster.",
        ),
    ] = None
    min_set_size: Annotated[
        int | None,
        _gene_option(
            "--min-set-size",
            help="Leave out gene sets with fewer tested genes (default 10).",
        ),
        SetsParameter("min_size"),
    ] = None
    max_set_size: Annotated[
        int | None,
        _gene_option(
            "--max-set-size",
            help="Leave out gene sets with more tested genes (default 500).",
        ),
        SetsParameter("max_size"),
    ] = None

    def to_settings(self, output: TerminalOutput) -> GeneSettings:
        """Read the gene sets, print how they were read, and return the settings.

        Raises UserError if the file cannot be read, or if a size was given without gene sets.
        """
        from mrshc.app import GeneSettings
        from mrshc.io import read_gene_sets

        given = {"min_size": self.min_set_size, "max_size": self.max_set_size}
        sizes: dict[str, Any] = {n: value for n, value in given.items() if value is not None}
        if sizes and self.gene_sets is None:
            option = option_for_parameter(Parameter(next(iter(sizes))))
            raise UserError(
                f"{option} has no effect without --gene-sets. Add --gene-sets, or leave {option} "
                "out."
            )
        sets = None if self.gene_sets is None else read_gene_sets(self.gene_sets)
        if sets is not None:
            output.print_sentence(f"Read {sets.source}: {' '.join(sets.notes)}")
        return GeneSettings(column=self.gene_column, url=self.gene_url, sets=sets, **sizes)


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """Options for the execution backend, on which the method is fitted."""

    dask: Annotated[
        str | None,
        _run_option(
            "--dask",
            metavar="ADDRESS",
            help="Fit on the workers of a Dask scheduler, such as tcp://10.0.0.1:8786. They read "
            f"{BLOCK_FORMATS_OR} files themselves, under the same path as here; of other tables, "
            "only the search is distributed. Needs the extra 'dask', here and on the workers.",
        ),
    ] = None
    device: Annotated[
        str | None,
        _run_option(
            "--device",
            metavar="NAME",
            help="Copy the data to a device and fit there: cuda, cuda:1 or cpu. Needs the extra "
            "'gpu'.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether a Dask cluster or a device was requested."""
        return self.dask is not None or self.device is not None


def sparse_method_parameters(
    selection: str | None, *, refine: bool, robust: bool
) -> dict[str, Any]:
    """Return the parameters that only MrSHC or SHC has, by name.

    The value of a parameter is None if its option was not given.
    """
    # A flag that was not given becomes None, since methods without the parameter would reject
    # False.
    return {
        "selection": selection,
        "refine": refine or None,
        "robust": robust or None,
    }


def parse_number_or_auto(option: str, text: str | None) -> int | str | None:
    """Return the value of an option: a whole number, "auto", or None if the option was not given.

    Raises UserError if `text` is neither None, "auto" nor a whole number.
    """
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{option} must be a whole number or auto, got {text!r}.") from None


def parse_keys(text: str | None) -> list[str] | None:
    """Return the keys in a text, which are separated by commas; None if the text is None."""
    return None if text is None else [key.strip() for key in text.split(",")]


def parse_formats(text: str | None) -> tuple[str, ...] | None:
    """Return the file formats of pictures in a text; None if the text is None.

    Raises UserError if one of them is not a format in which pictures can be written.
    """
    from mrshc.plotting.picture_files import PICTURE_FORMATS

    formats = None if text is None else tuple(dict.fromkeys(parse_keys(text.lower()) or ()))
    for name in formats or ():
        if name not in PICTURE_FORMATS:
            raise UserError(
                f"--format must be one of {', '.join(PICTURE_FORMATS)}, or several with commas "
                f"between them, got {name!r}."
            )
    return formats


def parse_numbers_or_auto(option: str, text: str | None, *, kind: type = int) -> Any:
    """Return the value of an option: a number, a list of numbers, "auto" or None.

    Parameters
    ----------
    option : str
        Name of the option, for the error message.
    text : str or None
        One number, several numbers separated by commas, or "auto"; None if the option was not
        given.
    kind : type, default=int
        Type of the numbers.

    Raises
    ------
    UserError
        If a part of the text is not a number of the given type.
    """
    if text is None or text == "auto":
        return text
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        noun = "a whole number" if kind is int else "a number"
        raise UserError(
            f"{option} must be {noun}, several with commas between them, or auto, got {text!r}."
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers
