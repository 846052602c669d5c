"""Transformers that change values or select features, and what all steps share."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from mrshc.validation import check_integer, check_number, check_option, check_values

# Squares of much larger numbers overflow, and no measurements are so large.
LARGEST = 1e150


class Step(TransformerMixin, BaseEstimator):
    """A step that accepts what estimators accept, keeps single precision, and allows NaN.

    Subclasses define `_learn`, `_apply` and `_describe`.
    """

    # How the step is applied to new samples if only a saved result is available: to each value
    # ("values"), to each sample with all its features ("samples"), not at all since it only selects
    # features ("selection"), only if no value is missing ("imputation"), or never ("impossible").
    new_samples: str = "values"
    # Fitted attributes of shape (n_features_in_,) that `transform` needs.
    learnt: ClassVar[tuple[str, ...]] = ()
    takes_logarithms = False
    labels: list[str]
    # The steps by name, from which those of a saved result are made again.
    classes: ClassVar[dict[str, type[Step]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Step.classes[cls.__name__] = cls

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from data what the step needs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._learn(check_values(self, X))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return data after the step.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the features of the fit.

        Returns
        -------
        X_transformed : ndarray
            The data after the step.
        """
        check_is_fitted(self)
        return self._apply(check_values(self, X, reset=False))

    def describe(self) -> str:
        """Return what the step does, and has done if it is fitted.

        Returns
        -------
        description : str
            Description without a full stop, such as "floor 100, ceiling 16000".
        """
        return self._describe()

    def _learn(self, X: np.ndarray) -> None:
        raise NotImplementedError

    def _apply(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _describe(self) -> str:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def label(self, j: Any) -> str:
        """Return feature j for a message: its name, or its position if it has no name."""
        if "labels" in self.__dict__:  # set by `prepare`, as earlier steps may remove features
            return self.labels[j]
        names = getattr(self, "feature_names_in_", None)
        return str(j) if names is None else repr(str(names[j]))


class Filter(Step, SelectorMixin):
    """A step that selects the features of the mask `support_`."""

    new_samples = "selection"
    support_: np.ndarray

    def _apply(self, X: np.ndarray) -> np.ndarray:
        return X[:, self.support_]

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


class Thresholds(OneToOneFeatureMixin, Step):
    """Replace values below a floor by the floor, and values above a ceiling by the ceiling.

    Parameters
    ----------
    floor, ceiling : float or None, default=None
        Smallest and largest value after the step; None for no bound.

    Examples
    --------
    >>> from mrshc.preprocessing import Thresholds
    >>> Thresholds(100, 16000).fit_transform([[-20.0, 300.0], [17000.0, 100.0]])
    array([[  100.,   300.],
           [16000.,   100.]])
    """

    def __init__(self, floor: float | None = None, ceiling: float | None = None) -> None:
        self.floor = floor
        self.ceiling = ceiling

    def _describe(self) -> str:
        bounds = (("floor", self.floor), ("ceiling", self.ceiling))
        return ", ".join(f"{k} {v:.6g}" for k, v in bounds if v is not None) or "no thresholds"

    def _learn(self, X: np.ndarray) -> None:
        self._bounds()

    def _apply(self, X: np.ndarray) -> np.ndarray:
        low, high = self._bounds()
        return X.clip(X.dtype.type(low), X.dtype.type(high))

    def _bounds(self) -> tuple[float, float]:
        low = _number_or_none("floor", self.floor, -np.inf)
        high = _number_or_none("ceiling", self.ceiling, np.inf)
        if low > high:
            raise ValueError(
                f"floor must not be above ceiling, got {self.floor!r} and {self.ceiling!r}. "
                "Exchange them."
            )
        return low, high


class RangeFilter(Filter):
    """Select the features with a large range of observed values.

    Parameters
    ----------
    min_ratio : float or None, default=None
        Features with max / min above this number are selected. Values must then be positive.
    min_difference : float or None, default=None
        Features with max - min above this number are selected.

    Attributes
    ----------
    support_ : ndarray of shape (n_features_in_,)
        Mask of the selected features.

    Examples
    --------
    >>> from mrshc.preprocessing import RangeFilter
    >>> X = [[100.0, 1000.0, 100.0], [900.0, 1800.0, 500.0]]
    >>> RangeFilter(5, 500).fit(X).get_support()
    array([ True, False, False])
    """

    def __init__(self, min_ratio: float | None = None, min_difference: float | None = None) -> None:
        self.min_ratio = min_ratio
        self.min_difference = min_difference

    def _describe(self) -> str:
        limits = (("max/min", self.min_ratio), ("max - min", self.min_difference))
        conditions = [f"{what} > {limit:.6g}" for what, limit in limits if limit is not None]
        return " and ".join(conditions) or "no condition on the range"

    def _learn(self, X: np.ndarray) -> None:
        # fmin and fmax ignore NaN; comparisons with NaN are False, so that features without an
        # observed value are not selected.
        low = np.fmin.reduce(X, axis=0).astype(np.float64)
        high = np.fmax.reduce(X, axis=0).astype(np.float64)
        self.support_ = np.ones(X.shape[1], dtype=bool)
        if self.min_ratio is not None:
            if (low <= 0).any():
                first = (low <= 0).argmax()
                raise ValueError(
                    "min_ratio needs positive values, but the smallest value of feature "
                    f"{self.label(first)} is {low[first]:.6g}. Raise it to a floor first, such as "
                    "floor=100 for Affymetrix intensities, or leave min_ratio out."
                )
            self.support_ &= high / low > _number_or_none("min_ratio", self.min_ratio, 0.0)
        if self.min_difference is not None:
            limit = _number_or_none("min_difference", self.min_difference, 0.0)
            self.support_ &= high - low > limit


class Log2(OneToOneFeatureMixin, Step):
    """Take the logarithm to base 2 of all values.

    Parameters
    ----------
    pseudocount : float, default=0.0
        Number that is added before; 1 is usual for counts, which may be 0.

    Examples
    --------
    >>> from mrshc.preprocessing import Log2
    >>> Log2(pseudocount=1).fit_transform([[0.0, 1.0, 7.0]])
    array([[0., 1., 3.]])
    """

    takes_logarithms = True

    def __init__(self, pseudocount: float = 0.0) -> None:
        self.pseudocount = pseudocount

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _describe(self) -> str:
        return f"log2(x + {self.pseudocount:.6g})" if self.pseudocount else "log2"

    def _learn(self, X: np.ndarray) -> None:
        self._shifted(X)

    def _apply(self, X: np.ndarray) -> np.ndarray:
        return np.log2(self._shifted(X))

    def _shifted(self, X: np.ndarray) -> np.ndarray:
        advice = "1 is usual for counts."
        count = check_number("pseudocount", self.pseudocount, low=0, high=LARGEST, advice=advice)
        shifted = X + X.dtype.type(count)
        if (bad := shifted <= 0).any():
            raise ValueError(
                f"A logarithm needs positive values, but {format_count(bad.sum(), 'value')} of X "
                f"{'is' if bad.sum() == 1 else 'are'} not above {-count if count else 0:.6g} "
                f"(first in feature {self.label(bad.any(axis=0).argmax())}). Raise them to a "
                "floor, or add a larger pseudocount."
            )
        return shifted


class Standardize(OneToOneFeatureMixin, Step):
    """Standardise samples, features or both to mean 0 and standard deviation 1.

    The variance is the sum of squares divided by the number of observed values minus one. Constant
    samples and features become 0.

    Parameters
    ----------
    over : {"samples", "features", "both"}
        What is standardised; with "both", samples come first. New samples are standardised by the
        means and standard deviations of the features of the fit.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features_in_,)
        Means and standard deviations of the features; only if features are standardised.

    Examples
    --------
    >>> from mrshc.preprocessing import Standardize
    >>> Standardize("samples").fit_transform([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    array([[-1.,  0.,  1.],
           [ 0.,  0.,  0.]])
    """

    learnt = ("mean_", "scale_")

    def __init__(self, over: Literal["samples", "features", "both"]) -> None:
        self.over = over

    @property
    def new_samples(self) -> str:  # type: ignore[override]
        """How the step is applied to new samples."""
        return "values" if self.over == "features" else "samples"

    def _describe(self) -> str:
        what = {"both": "samples, then features,"}.get(self.over, self.over)
        return f"{what} standardised to mean 0 and standard deviation 1"

    def _learn(self, X: np.ndarray) -> None:
        if check_option("over", self.over, ("samples", "features", "both")) != "samples":
            self.mean_, self.scale_ = _mean_and_scale(self._standardize_samples(X))

    def _apply(self, X: np.ndarray) -> np.ndarray:
        X = self._standardize_samples(X)
        if self.over == "samples":
            return X
        return ((X - self.mean_) / self.scale_).astype(X.dtype)

    def _standardize_samples(self, X: np.ndarray) -> np.ndarray:
        if self.over == "features":
            return X
        mean, scale = _mean_and_scale(X.T)
        return ((X - mean[:, None]) / scale[:, None]).astype(X.dtype)


class VarianceFilter(Filter):
    """Select the features of highest variance of the observed values.

    Parameters
    ----------
    n_features : int
        Number of features. Of equal variances, the first are selected.

    Attributes
    ----------
    variances_ : ndarray of shape (n_features_in_,)
        Variances, with the number of observed values minus one as divisor.
    support_ : ndarray of shape (n_features_in_,)
        Mask of the selected features.

    Examples
    --------
    >>> from mrshc.preprocessing import VarianceFilter
    >>> VarianceFilter(1).fit_transform([[0.0, 1.0, 5.0], [0.0, 9.0, 6.0]])
    array([[1.],
           [9.]])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def _describe(self) -> str:
        return f"the {format_count(self.n_features, 'feature')} of highest variance"

    def _learn(self, X: np.ndarray) -> None:
        advice = "Lower it, or relax the filters before this one."
        q = check_integer("n_features", self.n_features, low=1, high=X.shape[1], advice=advice)
        mean, scale = _mean_and_scale(X, of_constant=0.0)
        self.variances_ = np.where(np.isnan(mean), 0.0, scale) ** 2
        self.support_ = np.zeros(X.shape[1], dtype=bool)
        self.support_[np.argsort(-self.variances_, kind="stable")[:q]] = True


class ObservedFilter(Filter):
    """Select the features with at least one observed value."""

    def _describe(self) -> str:
        return "features without any value"

    def _learn(self, X: np.ndarray) -> None:
        self.support_ = ~np.isnan(X).all(axis=0)


def format_count(count: Any, noun: str) -> str:
    """Return "1 value" or "4,247 values"; invalid counts are shown as they are."""
    number = f"{count:,}" if isinstance(count, int | np.integer) else str(count)
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"


def _number_or_none(name: str, value: float | None, default: float) -> float:
    if value is None:
        return default
    advice = "Give None for no bound."
    return check_number(name, value, low=-LARGEST, high=LARGEST, advice=advice)


def _mean_and_scale(X: np.ndarray, of_constant: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and standard deviations of the observed values of the columns.

    The mean of a constant is exact, and its standard deviation is `of_constant`.
    """
    means, scales = np.empty((2, X.shape[1]))
    width = max((1 << 20) // max(len(X), 1), 1)  # limits the memory of temporary arrays
    for start in range(0, X.shape[1], width):
        block = slice(start, start + width)
        part = X[:, block].astype(np.float64)
        observed = ~np.isnan(part)
        counts = observed.sum(axis=0)
        shift = part[observed.argmax(axis=0), np.arange(part.shape[1])]
        part -= shift
        part[~observed] = 0.0
        mean = part.sum(axis=0) / np.maximum(counts, 1)
        squares = (np.square(part - mean) * observed).sum(axis=0)
        varies = squares > 0  # squares of tiny differences underflow
        varies &= part.any(axis=0)
        means[block] = shift + np.where(varies, mean, 0.0)
        deviations = np.sqrt(squares / np.maximum(counts - 1, 1))
        scales[block] = np.where(varies, deviations, of_constant)
    return means, scales
