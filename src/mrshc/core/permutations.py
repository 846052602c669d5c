"""Permutation gap, by which sparse clustering chooses the penalty of feature weights.

References
----------
Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering. Journal of
the American Statistical Association 105(490), 713-726. https://doi.org/10.1198/jasa.2010.tm09415
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.parallel import ProgressCallback, StepCounter, run_in_parallel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PermutationGap:
    """The permutation gap for each of several candidates.

    The gap compares the criterion of the data, which sparse clustering maximises, with its values
    for permuted data.

    Attributes
    ----------
    gap : ndarray of shape (n_candidates,)
        Difference of two terms. The first term is the logarithm of the criterion of the data. The
        second term is the mean of the logarithm of the criterion over all permutations.
    standard_deviation : ndarray of shape (n_candidates,)
        Standard deviation of the logarithm of the criterion over all permutations.
    """

    gap: Float
    standard_deviation: Float

    @property
    def best_position(self) -> int:
        """Position of the candidate with the largest gap, counted from zero."""
        return int(np.argmax(self.gap))


def gap_over_permutations(
    permuted_criteria: Callable[..., Float],
    arguments: Mapping[str, Any],
    *,
    criteria: Sequence[float],
    n_permutations: int,
    n_jobs: int | None,
    share_memory: bool,
    progress: ProgressCallback,
) -> PermutationGap:
    """Return the permutation gap for several candidates.

    Parameters
    ----------
    permuted_criteria : callable
        Function that returns the criterion of one permutation for each candidate, as an array of
        shape (n_candidates,). The function is called with `arguments` and with the index of the
        permutation, starting at zero, as the keyword argument `permutation`.
    arguments : mapping of str to object
        Keyword arguments of the function that are the same for all permutations.
    criteria : sequence of float
        Criterion of the data for each candidate.
    n_permutations : int
        Number of permutations, at least two.
    n_jobs : int or None
        Number of parallel workers, as in joblib.
    share_memory : bool
        Whether the tasks must run in threads of this process.
    progress : callable
        Function that is called as ``progress(n_finished, n_permutations)`` after each permutation.
    """
    steps = StepCounter(total=n_permutations, report=progress)
    calls = ({**arguments, "permutation": m} for m in range(n_permutations))
    tasks = run_in_parallel(permuted_criteria, calls, n_jobs=n_jobs, share_memory=share_memory)
    logs = []
    with closing(tasks) as results:
        for permuted in results:
            logs.append(np.log(permuted))
            steps.advance(1)
    return PermutationGap(
        gap=np.log(criteria) - np.mean(logs, axis=0),
        standard_deviation=np.std(logs, axis=0, ddof=1),
    )
