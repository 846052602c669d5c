"""Options for the analyses of significance and stability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_names import SetsParameter, option_for_parameter
from mrshc.app.cli.run_options import RunOptions
from mrshc.errors import UserError
from mrshc.shell.wording import Parameter

if TYPE_CHECKING:
    from mrshc.app import ConfidenceSettings

_confidence_option = option_factory("Confidence in the clusters")


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
