"""Confidence in a result: the significance of its branches and its stability under resampling."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrshc.shell.wording import ParameterError

# The settings are made before the table is read. The estimators and their checks, which are slow to
# import, are imported only for the analyses.
if TYPE_CHECKING:
    from mrshc.core.stability import StabilityResult
    from mrshc.estimators.confidence import BranchSignificance

# Share of the samples in each subsample: the default of `mrshc.stability`, which is stored with the
# result.
FRACTION = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSettings:
    """Analyses that follow the fit, and their settings.

    Attributes
    ----------
    significance : bool, default=False
        Whether the significance of the branches is computed.
    stability : bool, default=False
        Whether the stability is computed.
    alpha : float, default=0.05
        Level of the significance test.
    n_simulations : int, default=100
        Largest number of simulated data sets for each test; a node below the root may need two.
    n_resamples : int, default=50
        Number of subsamples.
    random_state : int, default=0
        Seed of both analyses.
    n_jobs : int or None, default=None
        Number of workers, which does not affect the results.
    """

    significance: bool = False
    stability: bool = False
    alpha: float = 0.05
    n_simulations: int = 100
    n_resamples: int = 50
    random_state: int = 0
    n_jobs: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether any analysis was requested."""
        return self.significance or self.stability

    def check(self, estimator: Any) -> None:
        """Raise ParameterError if a setting is invalid, or if the estimator cannot be analysed.

        The analyses check their arguments, too, but only after a fit that may have taken hours.
        """
        if not self.is_given:
            return
        from mrshc.estimators.base import HierarchicalClusterer
        from mrshc.validation import check_integer, check_n_jobs, check_number

        if not isinstance(estimator, HierarchicalClusterer):
            raise ParameterError(
                "Significance and stability are available for the trees of AssociationHC, MrSHC, "
                "SHC, COSA and HighVarianceHC, but the method is {got}. Leave them out.",
                got=type(estimator).__name__,
            )
        check_number("alpha", self.alpha, low=0.0, high=1.0, advice="The default is 0.05.")
        lowest = {"n_simulations": (10, 100), "n_resamples": (2, 50)}
        for name, (low, default) in lowest.items():
            advice = f"The default is {default}."
            check_integer(name, getattr(self, name), low=low, high=None, advice=advice)
        check_n_jobs(self.n_jobs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Confidence:
    """Results of the analyses; None for an analysis that was not requested.

    Attributes
    ----------
    significance : BranchSignificance or None, default=None
        Significance of the branches.
    stability : StabilityResult or None, default=None
        Stability of clusters, branches and features.
    """

    significance: BranchSignificance | None = None
    stability: StabilityResult | None = None


def assess(
    model: Any,
    X: Any,
    labels: NDArray[np.intp],
    *,
    settings: ConfidenceSettings,
    announce: Callable[[str], None] = lambda _: None,
) -> Confidence:
    """Return the results of the requested analyses."""
    from mrshc.estimators import branch_significance, stability

    common: Any = {"random_state": settings.random_state, "n_jobs": settings.n_jobs}
    significance = stable = None
    if settings.significance:
        announce(
            "Testing the splits of the tree: the fit is repeated on simulated data without "
            f"clusters, up to {settings.n_simulations:,} times for each test."
        )
        significance = branch_significance(
            model, X, alpha=settings.alpha, n_simulations=settings.n_simulations, **common
        )
    if settings.stability:
        announce(f"Repeating the fit on {settings.n_resamples:,} subsamples.")
        stable = stability(
            _with_clusters(model, labels),
            X,
            n_resamples=settings.n_resamples,
            fraction=FRACTION,
            **common,
        )
    return Confidence(significance=significance, stability=stable)


def _with_clusters(model: Any, labels: NDArray[np.intp]) -> Any:
    """Return a fitted model that has clusters: the model itself, or a copy with these labels.

    The number of clusters of a model without clusters was chosen after the fit. It is a parameter
    of the copy, so that refits have the same number of clusters.
    """
    if hasattr(model, "labels_"):
        return model
    twin = copy(model).set_params(n_clusters=int(labels.max()) + 1)
    twin.labels_ = labels
    return twin
