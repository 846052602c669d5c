"""Several steps one after the other, for the data of a fit and for new samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin

from mrshc.preprocessing.counts import CountsPerMillion, LowCountFilter, SizeFactors
from mrshc.preprocessing.imputation import NeighborImputer
from mrshc.preprocessing.steps import (
    Log2,
    RangeFilter,
    Standardize,
    Step,
    Thresholds,
    VarianceFilter,
)
from mrshc.validation import check_option, check_values, column_names

# The thresholds and filters of Dudoit, Fridlyand and Speed (2002), doi:10.1198/016214502753479248,
# for raw intensities of Affymetrix arrays. They also standardise samples, which is left out here:
# the clusters of the leukaemia data then agree better with the literature.
PRESETS: dict[str, dict[str, Any]] = {
    "dudoit2002": {
        "floor": 100,
        "ceiling": 16000,
        "min_ratio": 5,
        "min_difference": 500,
        "log2": True,
    },
}


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What a preprocessing step has done.

    Attributes
    ----------
    step : str
        Python code that creates the step.
    description : str
        Description, such as "floor 100, ceiling 16000".
    n_features_before, n_features_after : int
        Numbers of features.
    n_values_changed : int
        Number of values that were changed, in the features that remain.
    """

    step: str
    description: str
    n_features_before: int
    n_features_after: int
    n_values_changed: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Preprocessed data, as returned by :func:`prepare`.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features_after)
        The preprocessed data.
    kept : ndarray of int
        Positions of the remaining features in the original data.
    log : tuple of StepReport
        What each step has done.
    steps : tuple of transformers
        The fitted steps.
    n_steps_passed : ndarray of shape (n_features,)
        Number of steps that each original feature passed before one removed it.
    """

    X: np.ndarray
    kept: np.ndarray
    log: tuple[StepReport, ...]
    steps: tuple[Any, ...]
    n_steps_passed: np.ndarray


def chain(
    *,
    impute: Literal["features", "samples"] | None = None,
    neighbors: int = 5,
    min_count: float | None = None,
    min_samples: int | None = None,
    normalize: Literal["cpm", "size-factors", "none"] | None = None,
    floor: float | None = None,
    ceiling: float | None = None,
    min_ratio: float | None = None,
    min_difference: float | None = None,
    log2: bool = False,
    pseudocount: float | None = None,
    standardize: Literal["samples", "features", "both"] | None = None,
    top_variance: int | None = None,
) -> list[Any]:
    """Return preprocessing steps in a suitable order.

    Imputation is first, so that filters use all values. Filters of counts, thresholds and ranges
    refer to measured values and precede the logarithm. Samples are standardised before the variance
    filter, and features after it.

    Parameters
    ----------
    impute : {"features", "samples"} or None, default=None
        Impute missing values from the nearest features or samples.
    neighbors : int, default=5
        Number of neighbours for the imputation.
    min_count, min_samples : float and int or None, default=None
        Keep features with at least `min_count` (10) in at least `min_samples` (2) samples.
    normalize : {"cpm", "size-factors", "none"} or None, default=None
        Normalise counts by :class:`CountsPerMillion` or :class:`SizeFactors`, and take logarithms.
    floor, ceiling : float or None, default=None
        See :class:`Thresholds`.
    min_ratio, min_difference : float or None, default=None
        See :class:`RangeFilter`.
    log2 : bool, default=False
        Whether to take logarithms to base 2.
    pseudocount : float or None, default=None
        Number that is added before the logarithm: 0 by default, and 1 after a normalisation.
    standardize : {"samples", "features", "both"} or None, default=None
        See :class:`Standardize`.
    top_variance : int or None, default=None
        Keep so many features of highest variance.

    Returns
    -------
    steps : list of transformers
        Steps for :func:`prepare` or, as `*steps`, for :func:`sklearn.pipeline.make_pipeline`.

    See Also
    --------
    prepare : Runs the steps.

    Examples
    --------
    >>> from mrshc.preprocessing import chain
    >>> chain(log2=True, pseudocount=1.0, top_variance=500)
    [Log2(pseudocount=1.0), VarianceFilter(n_features=500)]
    >>> chain(min_count=10, normalize="size-factors")
    [LowCountFilter(), SizeFactors(prior_count=1.0), Log2()]
    """
    if normalize is not None:
        check_option("normalize", normalize, ("cpm", "size-factors", "none"))
    if standardize is not None:
        check_option("standardize", standardize, ("samples", "features", "both"))
    is_normalized = normalize in ("cpm", "size-factors")
    steps: list[Any] = []
    if impute is not None:
        steps.append(NeighborImputer(neighbors, impute))
    if min_count is not None or min_samples is not None:
        counts = (10 if min_count is None else min_count, 2 if min_samples is None else min_samples)
        steps.append(LowCountFilter(*counts))
    if is_normalized:
        normalization = CountsPerMillion if normalize == "cpm" else SizeFactors
        steps.append(normalization(1.0 if pseudocount is None else pseudocount))
    if floor is not None or ceiling is not None:
        steps.append(Thresholds(floor, ceiling))
    if min_ratio is not None or min_difference is not None:
        steps.append(RangeFilter(min_ratio, min_difference))
    if log2 or is_normalized:
        steps.append(Log2(0.0 if is_normalized else pseudocount or 0.0))
    if standardize in ("samples", "both"):
        steps.append(Standardize("samples"))
    if top_variance is not None:
        steps.append(VarianceFilter(top_variance))
    if standardize in ("features", "both"):
        steps.append(Standardize("features"))
    return steps


def prepare(
    X: Any, steps: Iterable[Any], *, feature_names: Sequence[Any] | None = None
) -> Prepared:
    """Apply preprocessing steps to data, and report what each has done.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data with samples in rows; NaN marks a missing value.
    steps : iterable of transformers
        Steps of this module, or scikit-learn transformers that keep or select features. Copies of
        them are fitted.
    feature_names : sequence of str or None, default=None
        Names of the features for messages; None for the column names of X.

    Returns
    -------
    prepared : Prepared
        Has the data `X`, the positions `kept` of the remaining features, and `log`, a report on
        each step with `description`, `n_features_before`, `n_features_after` and
        `n_values_changed`.

    See Also
    --------
    chain : Returns steps in a suitable order.

    Examples
    --------
    >>> from mrshc.preprocessing import chain, prepare
    >>> X = [[90.0, 100.0, 800.0, 20.0], [900.0, 1600.0, 900.0, 3200.0]]
    >>> prepared = prepare(X, chain(floor=100, min_ratio=5, log2=True))
    >>> prepared.kept
    array([0, 1, 3])
    >>> [step.description for step in prepared.log]
    ['floor 100', 'max/min > 5', 'log2']
    """
    names = column_names(X) if feature_names is None else list(feature_names)
    if len(set(names or ())) < len(names or ()) and hasattr(X, "to_numpy"):
        X = X.to_numpy()  # probes often have the same name, which scikit-learn would refuse
    array = check_values(BaseEstimator(), X)
    p = array.shape[1]
    if names is not None and len(names) != p:
        raise ValueError(
            f"feature_names must hold one name for each of the {p} features of X, got {len(names)}."
        )
    kept, n_steps_passed = np.arange(p), np.zeros(p, dtype=np.intp)
    log, fitted = [], []
    for step in map(clone, steps):
        if isinstance(step, Step):
            step.labels = [str(j) if names is None else repr(str(names[j])) for j in kept]
        before, array = array, np.asarray(step.fit(array).transform(array))
        selects = hasattr(step, "get_support")
        left = step.get_support(indices=True) if selects else np.arange(kept.size)
        description = step.describe() if isinstance(step, Step) else repr(step)
        if left.size < 2:
            raise ValueError(
                f"The step '{description}' removed {kept.size - left.size:,} of {kept.size:,} "
                "features, but at least 2 are needed. Relax it, or check whether X holds raw "
                "intensities or logarithms."
            )
        if array.shape[1] != left.size:
            raise ValueError(
                f"Steps must keep or select features, but '{description}' made "
                f"{array.shape[1]:,} features of {kept.size:,}. Apply it before or after prepare."
            )
        changed = ~np.isclose(before[:, left], array, rtol=0, atol=0, equal_nan=True)
        log.append(
            StepReport(
                step=repr(step),
                description=description,
                n_features_before=kept.size,
                n_features_after=left.size,
                n_values_changed=int(changed.sum()),
            )
        )
        fitted.append(step)
        kept = kept[left]
        n_steps_passed[kept] += 1
    return Prepared(
        X=array, kept=kept, log=tuple(log), steps=tuple(fitted), n_steps_passed=n_steps_passed
    )


def step_use(step: Any) -> str:
    """Return how a fitted step is applied to new samples, given a saved result only."""
    if isinstance(step, Step):
        return step.new_samples
    return "selection" if isinstance(step, SelectorMixin) else "impossible"


def needed_features(prepared: Any, used: np.ndarray) -> np.ndarray:
    """Return the features that new samples need, of which `used` are compared with the clusters.

    A step that is applied to samples needs all features that the data of the fit had at this step.
    """
    first = next((i for i, step in enumerate(prepared.steps) if step_use(step) == "samples"), None)
    return np.sort(used) if first is None else np.flatnonzero(prepared.n_steps_passed >= first)


def learnt_values(prepared: Any, needed: np.ndarray) -> dict[tuple[int, str], np.ndarray]:
    """Return the values that steps learnt for needed features, by step and attribute.

    A value is NaN if an earlier step removed the feature.
    """
    learnt = {}
    for i, step in enumerate(prepared.steps):
        for name in getattr(step, "learnt", ()):
            if hasattr(step, name):  # not needed with all parameters
                values = np.full(prepared.n_steps_passed.size, np.nan)
                values[prepared.n_steps_passed >= i] = getattr(step, name)
                learnt[i, name] = values[needed]
    return learnt


@dataclass(frozen=True, eq=False)
class SavedStep:
    """A fitted step, as a saved result describes it."""

    name: str
    parameters: dict[str, Any]
    use: str
    description: str
    learnt: dict[str, np.ndarray]  # values for the needed features

    def apply(self, X: np.ndarray, present: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return X, with the needed features in the mask `present`, after the step."""
        try:
            step = Step.classes[self.name](**self.parameters)
            step.n_features_in_, step.labels = X.shape[1], [repr(name) for name in names]
            for name, values in self.learnt.items():
                setattr(step, name, values[present])
            if step.new_samples == self.use:
                return step.transform(X)
        except (KeyError, TypeError, AttributeError):
            pass
        raise ValueError(
            f"This version of mrshc has no preprocessing step {self.name!r} as it is described in "
            "the result. Make the result again."
        )


def preprocess_new(
    X: np.ndarray, steps: Sequence[SavedStep], n_steps_passed: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return preprocessed new samples, and a mask of the needed features that no step removed."""
    present = np.ones(n_steps_passed.size, dtype=bool)
    for i, saved in enumerate(steps):
        if saved.use == "selection":
            X, present = X[:, n_steps_passed[present] > i], n_steps_passed > i
        elif saved.use in ("values", "samples"):
            X = saved.apply(X, present, np.asarray(names, dtype=object)[present].tolist())
        elif saved.use == "impossible" or np.isnan(X).any():
            raise ValueError(
                f"New samples must be preprocessed like the data of the result, but the step "
                f"'{saved.description}' cannot be repeated from a saved result. "
                + (
                    "Impute their missing values first, or leave these samples out."
                    if saved.use == "imputation"
                    else "Use the estimator in Python, in a pipeline with this step."
                )
            )
    return X, present
