"""Penalties of the feature weights of sparse hierarchical clustering, with their candidates.

A penalty makes most weights zero. Each class computes the weights for all candidates of its
parameter, and the permutation gap by which one candidate is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mrshc.core.permutations import PermutationGap
from mrshc.core.sparse_hc.feature_weights import SparseWeights, WeightPath, permutation_gap
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.sparse_hc.spike_and_slab import (
    SpikeAndSlabSettings,
    SpikeAndSlabWeights,
    spike_and_slab_gap,
    spike_and_slab_path,
)
from mrshc.core.sparse_hc.weighted_dissimilarity import WeightedDissimilarity

# Names of the penalties, as in the parameter `penalty` of `SHC`.
PENALTIES = ("l1", "ssl")


class WeightPenalty(Protocol):
    """A penalty of the feature weights, with candidates for its parameter.

    Attributes
    ----------
    parameter : str
        Name of the parameter, which is an attribute of the solutions.
    n_candidates : int
        Number of candidates.
    targets : tuple of int
        Target number of features of each candidate; empty if the candidates are not numbers of
        features.
    """

    @property
    def parameter(self) -> str:
        """Name of the parameter."""

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""

    @property
    def targets(self) -> tuple[int, ...]:
        """Target number of features of each candidate."""

    def solve(self, dissimilarity: WeightedDissimilarity) -> list[Any]:
        """Return the feature weights for each candidate."""

    def permutation_gap(
        self, pairs: PairDistances, solutions: Sequence[Any], **settings: Any
    ) -> PermutationGap:
        """Return the permutation gap for each candidate.

        Parameters
        ----------
        pairs : PairDistances
            The matrix D of the data.
        solutions : sequence
            Feature weights for each candidate, as returned by `solve`.
        **settings : object
            The arguments `n_permutations`, `entropy`, `n_jobs` and `progress` of
            :func:`~mrshc.core.sparse_hc.feature_weights.permutation_gap`.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class L1Penalty:
    """Upper bound on the L1 norm of the weights.

    Attributes
    ----------
    bounds : tuple of float
        Candidates for the bound; empty if the candidates are numbers of features.
    targets : tuple of int
        Candidates for the number of features; empty if the candidates are bounds.
    max_iter, tol : int and float
        Stopping rule of :class:`~mrshc.core.sparse_hc.feature_weights.WeightPath`.
    """

    bounds: tuple[float, ...]
    targets: tuple[int, ...]
    max_iter: int
    tol: float

    @property
    def parameter(self) -> str:
        """Name of the parameter."""
        return "l1_bound"

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.bounds) + len(self.targets)

    def solve(self, dissimilarity: WeightedDissimilarity) -> list[SparseWeights]:
        """Return the feature weights for each candidate."""
        path = WeightPath(dissimilarity, max_iter=self.max_iter, tol=self.tol)
        return [path.solve(b) for b in self.bounds] + [path.search(q) for q in self.targets]

    def permutation_gap(
        self, pairs: PairDistances, solutions: Sequence[SparseWeights], **settings: Any
    ) -> PermutationGap:
        """Return the permutation gap for each candidate; see :class:`WeightPenalty`."""
        return permutation_gap(pairs, solutions, max_iter=self.max_iter, tol=self.tol, **settings)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpikeAndSlabPenalty:
    """Penalty of the spike-and-slab lasso.

    Attributes
    ----------
    spike_penalties : tuple of float
        Candidates for the penalty of the spike.
    settings : SpikeAndSlabSettings
        Settings that all candidates share.
    """

    spike_penalties: tuple[float, ...]
    settings: SpikeAndSlabSettings

    @property
    def parameter(self) -> str:
        """Name of the parameter."""
        return "spike_penalty"

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.spike_penalties)

    @property
    def targets(self) -> tuple[int, ...]:
        """Target numbers of features; none, since the number follows from the penalty."""
        return ()

    def solve(self, dissimilarity: WeightedDissimilarity) -> list[SpikeAndSlabWeights]:
        """Return the feature weights for each candidate."""
        return spike_and_slab_path(dissimilarity, self.spike_penalties, settings=self.settings)

    def permutation_gap(
        self, pairs: PairDistances, solutions: Sequence[SpikeAndSlabWeights], **settings: Any
    ) -> PermutationGap:
        """Return the permutation gap for each candidate; see :class:`WeightPenalty`."""
        return spike_and_slab_gap(pairs, solutions, settings=self.settings, **settings)
