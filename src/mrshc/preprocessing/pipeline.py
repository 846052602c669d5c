"""Several steps in a row, with a log of what each did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array

from mrshc.core.array_types import Index
from mrshc.core.parallel import Progress
from mrshc.errors import refused
from mrshc.preprocessing.imputation import NeighborImputer
from mrshc.preprocessing.presets import PRESETS
from mrshc.preprocessing.steps import (
    DTYPES,
    Log2,
    RangeFilter,
    Standardize,
    Step,
    Thresholds,
    VarianceFilter,
)


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What one step did."""

    step: str  # as Python writes it
    description: str  # in words, such as "floor 100, ceiling 16000"
    n_features_before: int
    n_features_after: int
    n_values_changed: int  # cells of the features left that differ from before


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Data ready for clustering, and how they came to be."""

    X: NDArray[Any]  # (n_samples, n_features_left)
    kept: Index  # (n_features_left,), which of the original features they are, increasing
    log: tuple[StepReport, ...]  # one report for each step


def dudoit2002() -> list[Any]:
    """Return the steps that make raw Affymetrix intensities ready for clustering.

    Floor 100 and ceiling 16000; genes with max / min > 5 and max - min > 500; log2. It is the chain
    of Dudoit et al. (2002) without its standardisation: with it, hierarchical clustering of the
    leukaemia data has a classification error rate of 0.155, without it the 0.106 of the literature.

    Returns
    -------
    list of transformers
        For :func:`prepare`, or for `sklearn.pipeline.make_pipeline(*dudoit2002())`.

    Examples
    --------
    >>> from mrshc.preprocessing import dudoit2002
    >>> dudoit2002()
    [Thresholds(ceiling=16000, floor=100), RangeFilter(min_difference=500, min_ratio=5), Log2()]
    """
    return chain(**PRESETS["dudoit2002"])


def chain(
    *,
    impute: Literal["features", "samples"] | None = None,
    neighbors: int = 5,
    floor: float | None = None,
    ceiling: float | None = None,
    min_ratio: float | None = None,
    min_difference: float | None = None,
    log2: bool = False,
    pseudocount: float = 0.0,
    standardize: Literal["samples", "features", "both"] | None = None,
    top_variance: int | None = None,
) -> list[Any]:
    """Return the steps that were asked for, in the order in which they make sense.

    Gaps are filled first, since filters need all values; thresholds and filters see the data as
    measured, before the logarithm. Samples are standardised before features are compared by their
    variance, features after it: then all have the same.

    Examples
    --------
    >>> from mrshc.preprocessing import chain
    >>> chain(log2=True, pseudocount=1.0, top_variance=500)
    [Log2(pseudocount=1.0), VarianceFilter(n_features=500)]
    """
    filtered = min_ratio is not None or min_difference is not None
    steps: dict[Any, bool] = {
        NeighborImputer(neighbors, impute or "features"): impute is not None,
        Thresholds(floor, ceiling): floor is not None or ceiling is not None,
        RangeFilter(min_ratio, min_difference): filtered,
        Log2(pseudocount): log2,
        Standardize("samples"): standardize in ("samples", "both"),
        VarianceFilter(1 if top_variance is None else top_variance): top_variance is not None,
        Standardize("features"): standardize in ("features", "both"),
    }
    return [step for step, wanted in steps.items() if wanted]


def prepare(
    X: Any,
    steps: Iterable[Any],
    *,
    feature_names: Sequence[Any] | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """Run preprocessing steps, and keep a log of what each did.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples in rows; NaN marks a missing value.
    steps : iterable of transformers
        Those of this module, or any of scikit-learn's that keeps or selects features. They are
        copied, not fitted themselves.
    feature_names : sequence of length n_features, optional
        Names by which errors call features; those of a data frame, or else positions, if left out.
    progress : callable, optional
        Called with the number of steps done and the number of all after each step.

    Returns
    -------
    Prepared
        The data, which features are left, and a report for each step.

    Examples
    --------
    >>> from mrshc.preprocessing import dudoit2002, prepare
    >>> X = [[90.0, 100.0, 800.0, 20.0], [900.0, 1600.0, 900.0, 3200.0]]
    >>> prepared = prepare(X, dudoit2002())
    >>> prepared.kept
    array([0, 1, 3])
    >>> for step in prepared.log:
    ...     print(step.description, step.n_features_before, step.n_features_after)
    floor 100, ceiling 16000 4 4
    max/min > 5 and max - min > 500 4 3
    log2 3 3
    """
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    # Microarrays often name two features alike, and scikit-learn would refuse such a table.
    twice = hasattr(X, "columns") and len(set(X.columns)) < len(X.columns)
    values = X.to_numpy() if twice else X
    array = check_array(values, dtype=DTYPES, ensure_all_finite="allow-nan", input_name="X")
    if names is not None and len(names) != array.shape[1]:
        raise refused(
            "feature_names",
            len(names),
            allowed=f"hold one name for each of the {array.shape[1]} features of X",
        )
    called = [str(j) if names is None else repr(str(names[j])) for j in range(array.shape[1])]
    kept = np.arange(array.shape[1])
    steps = list(steps)
    log = []
    for done, step in enumerate(steps, start=1):
        array, left, report = _apply_step(clone(step), array, called=[called[j] for j in kept])
        kept = kept[left]
        log.append(report)
        if progress is not None:
            progress(done, len(steps))
    return Prepared(X=array, kept=kept, log=tuple(log))


def _apply_step(
    step: Any, before: NDArray[Any], *, called: list[str]
) -> tuple[NDArray[Any], Index, StepReport]:
    """Return the data after a step, which columns are left, and a report."""
    p = before.shape[1]
    if isinstance(step, Step):
        step._feature_labels = called
    step.fit(before)
    left = step.get_support(indices=True) if hasattr(step, "get_support") else np.arange(p)
    description = step.describe() if hasattr(step, "describe") else repr(step)
    if len(left) < 2:
        raise ValueError(
            f"The step '{description}' removed {p - len(left):,} of {p:,} features, and at least 2 "
            "are needed to go on. Relax it, or check the unit of X, such as raw intensities or "
            "logarithms."
        )
    after = np.asarray(step.transform(before))
    if after.shape[1] != len(left):
        raise ValueError(
            f"Steps must keep or select features, but '{description}' made {after.shape[1]:,} of "
            f"{p:,}. Run it before or after."
        )
    same = before if len(left) == p else before[:, left]
    changed = (same != after) & ~(np.isnan(same) & np.isnan(after))
    report = StepReport(
        step=repr(step),
        description=description,
        n_features_before=p,
        n_features_after=len(left),
        n_values_changed=int(changed.sum()),
    )
    return after, left, report
