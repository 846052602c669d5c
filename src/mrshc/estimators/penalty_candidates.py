"""Candidates for the penalty of feature weights, and the table of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.permutations import PermutationGap
from mrshc.errors import Parameter, ParameterError
from mrshc.validation.parameters import check_number

# Candidates for the L1 bound if `l1_bound="auto"`: ten equidistant values from 1.1 to 0.7 sqrt(p),
# where p is the number of features. Bounds above sqrt(p) have no effect. The candidates are those
# of sparse hierarchical clustering in the R package sparcl, so results can be compared with results
# of sparcl.
_SMALLEST_BOUND, _LARGEST_SHARE, _N_BOUNDS = 1.1, 0.7, 10


class WeightedSolution(Protocol):
    """Feature weights for one candidate."""

    @property
    def indices(self) -> Index:
        """Indices of the features with a nonzero weight."""

    @property
    def criterion(self) -> float:
        """Value of the objective."""


def candidate_l1_bounds(l1_bound: Any, *, n_features: int) -> tuple[float, ...]:
    """Return the candidate L1 bounds for a value of the parameter `l1_bound`.

    Parameters
    ----------
    l1_bound : float, sequence of float or "auto"
        Value of the parameter.
    n_features : int
        Number of features of X.

    Raises
    ------
    ParameterError
        If `l1_bound` is an empty sequence, or if a bound is not a number between 1 and the square
        root of the number of features.
    """
    largest = float(np.sqrt(n_features))
    if isinstance(l1_bound, str) and l1_bound == "auto":
        # With two features, 0.7 sqrt(p) is less than 1.1, and 1.1 is the only candidate.
        end = max(_SMALLEST_BOUND, _LARGEST_SHARE * largest)
        return tuple(np.unique(np.linspace(_SMALLEST_BOUND, end, _N_BOUNDS)))
    advice = "Larger bounds have no effect. Give 'auto' to try several."
    return candidate_values("l1_bound", l1_bound, low=1.0, high=largest, advice=advice)


def candidate_values(
    name: str, given: Any, *, low: float, high: float, advice: str
) -> tuple[float, ...]:
    """Return the candidates of a parameter that is a number or a sequence of numbers.

    Parameters
    ----------
    name : str
        Name of the parameter.
    given : float or sequence of float
        Value of the parameter.
    low, high : float
        Smallest and largest valid value.
    advice : str
        Sentence that is added to the message of an error.

    Raises
    ------
    ParameterError
        If the sequence is empty, or if a candidate is not a valid number.
    """
    is_sequence = np.iterable(given) and not isinstance(given, str)
    candidates = list(given) if is_sequence else [given]
    if not candidates:
        raise ParameterError(
            "{name} must {allowed}, got an empty sequence.",
            name=Parameter(name),
            value=given,
            allowed="hold at least one number",
        )
    return tuple(check_number(name, each, low=low, high=high, advice=advice) for each in candidates)


def search_table(
    solutions: Sequence[WeightedSolution],
    *,
    parameter: str = "l1_bound",
    targets: tuple[int, ...],
    gap: PermutationGap | None,
    best: int,
) -> dict[str, NDArray[Any]]:
    """Return the table for the attribute `search_results_`, with one entry for each candidate.

    Parameters
    ----------
    solutions : sequence of WeightedSolution
        Feature weights for each candidate.
    parameter : str, default="l1_bound"
        Name of the parameter that differs between the candidates, an attribute of the solutions.
    targets : tuple of int
        Target number of features of each candidate; empty if the candidates are not numbers of
        features.
    gap : PermutationGap or None
        Permutation gap of each candidate; None if there is only one.
    best : int
        Position of the chosen candidate.
    """
    table = {
        parameter: np.array([getattr(s, parameter) for s in solutions]),
        "n_features": np.array([s.indices.size for s in solutions]),
        "criterion": np.array([s.criterion for s in solutions]),
        "chosen": np.arange(len(solutions)) == best,
    }
    if targets:
        table |= {"n_features_target": np.array(targets)}
        table |= {"reached": table["n_features"] == table["n_features_target"]}
    if gap is not None:
        table |= {"gap": gap.gap, "gap_sd": gap.standard_deviation}
    return table
