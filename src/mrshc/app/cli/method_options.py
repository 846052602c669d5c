"""Options for the method and its parameters, of one method or of a comparison.

Options that take a number or "auto" are declared as strings, since typer has no type for such
values. Options annotated with `ChoiceFrom` are also declared as strings; their valid values are
imported when the command is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from mrshc.app.cli.completion import complete_from, complete_list, load_method_keys
from mrshc.app.cli.help_lists import ALL_METHODS, METHODS
from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_names import SetsParameter
from mrshc.app.cli.option_values import parse_number_or_auto, parse_numbers_or_auto
from mrshc.app.cli.options_from_dataclasses import ChoiceFrom

_method_option = option_factory("Method")

NFeaturesOption = Annotated[
    str | None,
    _method_option(
        "--n-features",
        "--n-features-to-select",
        "-q",
        autocompletion=complete_from("auto"),
        help="Number of features to select; several candidates, such as 10,20,40, of which the "
        "method chooses; or auto, for candidates by default. Not for association, whose tests "
        "determine the number.",
    ),
    SetsParameter("n_features_to_select"),
]
MethodsOption = Annotated[
    str | None,
    _method_option(
        "--methods",
        autocompletion=complete_list(load_method_keys),
        help=f"Methods to compare, with commas between them, out of: {ALL_METHODS}. Methods "
        "without a tree need --n-clusters or --truth.",
    ),
    SetsParameter("methods"),
]
LinkageOption = Annotated[
    str,
    _method_option("--linkage", help="Distance between clusters, by which they are merged."),
    ChoiceFrom("mrshc.core.linkages", "LINKAGES"),
]
OptionalLinkageOption = Annotated[
    str | None,
    _method_option(
        "--linkage",
        help="Distance between clusters, by which they are merged (default ward for "
        "association; complete for other methods and with --metric cityblock; average for cosa).",
    ),
    ChoiceFrom("mrshc.core.linkages", "LINKAGES"),
]
MetricOption = Annotated[
    str,
    _method_option(
        "--metric",
        help="Distance between samples. correlation is 1 minus the correlation of two samples "
        "over the selected features, at least 3; it is not available for shc.",
    ),
    ChoiceFrom("mrshc.core.linkages", "METRICS"),
]
OptionalMetricOption = Annotated[
    str | None,
    _method_option(
        "--metric",
        help="Distance between samples (default sqeuclidean). correlation is 1 minus the "
        "correlation of two samples over the selected features, at least 3; it is not available "
        "for shc. cosa has a distance of its own.",
    ),
    ChoiceFrom("mrshc.core.linkages", "METRICS"),
]
RobustOption = Annotated[
    bool,
    _method_option(
        "--robust",
        help="association, mrshc: winsorise unusual values, and set outlying samples apart: they "
        "are listed, and attached to the tree at the end. For heavy tails, spikes and failed "
        "arrays. Needs memory for a copy of the data.",
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


class Centering(StrEnum):
    """Mean to subtract before components are computed: of each column, of all cells, or none."""

    columns = "columns"
    grand = "grand"
    none = "none"


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options for the method and its parameters.

    The value None stands for the default of the estimator, which the help text gives in
    parentheses. If a default were given here, it would also be passed to methods that do not have
    the parameter. These methods would raise an error.
    """

    method: Annotated[
        str | None,
        _method_option("--method", help=f"Default association. {METHODS}"),
        ChoiceFrom("mrshc.methods", "METHODS"),
    ] = None
    n_features: NFeaturesOption = None
    rank: Annotated[
        str | None,
        _method_option(
            "--rank",
            "-r",
            autocompletion=complete_from("auto"),
            help="mrshc: number of sparse components, or auto (the default).",
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
            autocompletion=complete_from("auto"),
            help="Number of clusters, or auto (the default). A given number is always obtained. "
            "With mrshc, a note states how many clusters the gap statistic supports if they are "
            "fewer; with association, the number is not tested.",
        ),
    ] = None
    paper: Annotated[
        bool,
        _method_option(
            "--paper",
            help="The procedure of Zhang and Zamar (2014), the same as --method mrshc. The default "
            "is recommended for real data.",
        ),
    ] = False
    linkage: OptionalLinkageOption = None
    metric: OptionalMetricOption = None
    n_references: Annotated[
        int | None,
        _method_option(
            "--n-references",
            help="mrshc: largest number of reference samples of a gap statistic (default 50).",
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
            autocompletion=complete_from("auto"),
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
    ] = None
    spike_penalty: Annotated[
        str | None,
        _method_option(
            "--spike-penalty",
            autocompletion=complete_from("auto"),
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
            "feature_tolerance": self.feature_tolerance,
            "center": centers[self.center],
            "l1_bound": parse_numbers_or_auto("--l1-bound", self.l1_bound, kind=float),
            "penalty": self.penalty,
            "spike_penalty": parse_numbers_or_auto(
                "--spike-penalty", self.spike_penalty, kind=float
            ),
            "slab_penalty": self.slab_penalty,
            "n_permutations": self.n_permutations,
            # A flag that was not given becomes None, since methods without the parameter would
            # reject False.
            "robust": self.robust or None,
        }
