"""Steps that change values or select features, as scikit-learn transformers."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.statistics import column_blocks
from mrshc.errors import Parameter, ParameterError, PythonOnly, Sentence, Setting
from mrshc.validation.parameters import check_integer, check_number, check_option

DTYPES = (np.float64, np.float32)

# No measurement is as large, and squares of larger numbers overflow.
_LARGEST = 1e150
_NO_BOUND = Sentence("{none}", none=PythonOnly("None asks for none."))


class Step:
    """What all steps share: numbers or NaN go in, single precision stays single."""

    _feature_labels: list[str]  # set by `prepare`: by then other steps may have removed features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Return the data of a fit (`reset`), or data that look like those of the fit."""
        if not reset:
            check_is_fitted(self)
        return validate_data(self, X, dtype=DTYPES, ensure_all_finite="allow-nan", reset=reset)

    def _feature_label(self, j: int | np.intp) -> str:
        """Return what errors call a feature."""
        if hasattr(self, "_feature_labels"):
            return self._feature_labels[j]
        names = getattr(self, "feature_names_in_", None)
        return str(j) if names is None else repr(str(names[j]))


class Thresholds(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Values below a floor are raised to it, values above a ceiling are lowered to it.

    Parameters
    ----------
    floor, ceiling : float or None, default=None
        The smallest and the largest value left; None for no bound.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the bounds and note the features; there is nothing to learn."""
        self._validate(X, reset=True)
        self._check_bounds()
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the data within the bounds."""
        X = self._validate(X, reset=False)
        low, high = self._check_bounds()
        return X.clip(X.dtype.type(low), X.dtype.type(high))

    def describe(self) -> str:
        """Return the step in words."""
        bounds = (("floor", self.floor), ("ceiling", self.ceiling))
        return ", ".join(f"{k} {v:.6g}" for k, v in bounds if v is not None) or "no thresholds"

    def _check_bounds(self) -> tuple[float, float]:
        low = _check_number_or_none("floor", self.floor, default=-np.inf)
        high = _check_number_or_none("ceiling", self.ceiling, default=np.inf)
        if low > high:
            raise ParameterError(
                "{floor} must not lie above {ceiling}, got {value[0]!r} and {value[1]!r}. {advice}",
                floor=Parameter("floor"),
                ceiling=Parameter("ceiling"),
                value=(self.floor, self.ceiling),
                advice="Exchange them.",
            )
        return low, high


class RangeFilter(Step, SelectorMixin, BaseEstimator):
    """Keeps the features that vary enough from sample to sample.

    A feature is kept if max / min > `min_ratio` and max - min > `min_difference`, over its observed
    values. Without observed values no condition is met.

    Parameters
    ----------
    min_ratio : float or None, default=None
        Largest ratio that is still too small; None asks for none. Needs positive values.
    min_difference : float or None, default=None
        Largest difference that is still too small; None asks for none.

    References
    ----------
    S. Dudoit, J. Fridlyand and T. P. Speed (2002), Comparison of discrimination methods for the
    classification of tumors using gene expression data, JASA 97: 77-87, who exclude genes with
    max / min <= 5 or max - min <= 500.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the features to keep."""
        X = self._validate(X, reset=True)
        # fmin and fmax pass over NaN, and say nothing where there is nothing else.
        low = np.fmin.reduce(X, axis=0).astype(np.float64)
        high = np.fmax.reduce(X, axis=0).astype(np.float64)
        support = np.ones(X.shape[1], dtype=bool)
        if self.min_ratio is not None:
            self._refuse_non_positive(low)
            support &= high / low > _check_number_or_none("min_ratio", self.min_ratio, default=0.0)
        if self.min_difference is not None:
            limit = _check_number_or_none("min_difference", self.min_difference, default=0.0)
            support &= high - low > limit
        self.support_ = support
        return self

    def describe(self) -> str:
        """Return the step in words."""
        limits = (("max/min", self.min_ratio), ("max - min", self.min_difference))
        conditions = [f"{what} > {limit:.6g}" for what, limit in limits if limit is not None]
        return " and ".join(conditions) or "no range asked for"

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def _refuse_non_positive(self, low: Float) -> None:
        if np.any(low <= 0):
            first = int(np.argmax(low <= 0))
            raise ParameterError(
                "{ratio} needs positive values, but the smallest value of feature {feature} is "
                "{low:.6g}. Raise it to a floor first, such as {floor} for Affymetrix intensities, "
                "or leave {ratio} out.",
                ratio=Parameter("min_ratio"),
                value=self.min_ratio,
                feature=self._feature_label(first),
                low=low[first],
                floor=Setting("floor", 100, of="Thresholds"),
            )


class Log2(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """The logarithm to base 2 of all values.

    Parameters
    ----------
    pseudocount : float, default=0.0
        Added to all values before the logarithm is taken; 1 is usual for counts.

    Examples
    --------
    >>> from mrshc.preprocessing import Log2
    >>> Log2(pseudocount=1).fit_transform([[0.0, 1.0, 7.0]])
    array([[0., 1., 3.]])
    """

    def __init__(self, pseudocount: float = 0.0) -> None:
        self.pseudocount = pseudocount

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the values and note the features; there is nothing to learn."""
        self._add_pseudocount(self._validate(X, reset=True))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the logarithms."""
        return np.log2(self._add_pseudocount(self._validate(X, reset=False)))

    def describe(self) -> str:
        """Return the step in words."""
        return f"log2(x + {self.pseudocount:.6g})" if self.pseudocount else "log2"

    def _add_pseudocount(self, X: NDArray[Any]) -> NDArray[Any]:
        count = check_number(
            "pseudocount", self.pseudocount, low=0, high=_LARGEST, advice="1 is usual for counts."
        )
        shifted = X + X.dtype.type(count)
        refused = shifted <= 0
        if refused.any():
            first = int(refused.any(axis=0).argmax())
            raise ParameterError(
                "A logarithm needs positive values, but {format_count} of X {are} not above {limit:.6g} "
                "(first in feature {feature}). Raise them with {floor}, or add a larger "
                "{pseudocount}.",
                format_count=format_count(refused.sum(), "value"),
                are="is" if refused.sum() == 1 else "are",
                limit=-count if count else 0,
                feature=self._feature_label(first),
                floor=Setting("floor", ..., of="Thresholds"),
                pseudocount=Parameter("pseudocount"),
                value=self.pseudocount,
            )
        return shifted


class Standardize(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Mean 0 and standard deviation 1 for each sample, each feature, or both.

    Parameters
    ----------
    over : {"samples", "features", "both"}
        "samples": each sample across its features. "features": each feature, with the means and
        standard deviations of the samples in `fit`. "both": samples first, then features.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        What features are centred and divided by; only if these are standardised.

    Notes
    -----
    The sum of squares is divided by the number of observed values less one, as in R's `scale` and
    as in the published lymphoma data of Dettling (2004), whose samples are standardised. What is
    constant becomes 0.

    Examples
    --------
    >>> from mrshc.preprocessing import Standardize
    >>> Standardize("samples").fit_transform([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    array([[-1.,  0.,  1.],
           [ 0.,  0.,  0.]])
    """

    def __init__(self, over: Literal["samples", "features", "both"]) -> None:
        self.over = over

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn means and standard deviations of the features, if these are asked for."""
        check_option("over", self.over, ("samples", "features", "both"))
        X = self._validate(X, reset=True)
        if self.over != "samples":
            X = _standardize_rows(X) if self.over == "both" else X
            self.mean_, self.scale_ = _mean_and_scale(X)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the standardised data."""
        X = self._validate(X, reset=False)
        if self.over != "features":
            X = _standardize_rows(X)
        if self.over != "samples":
            X = ((X - self.mean_) / self.scale_).astype(X.dtype)
        return X

    def describe(self) -> str:
        """Return the step in words."""
        what = {"both": "samples, then features,"}.get(self.over, self.over)
        return f"{what} standardised to mean 0 and standard deviation 1"


class ObservedFilter(Step, SelectorMixin, BaseEstimator):
    """Keeps the features that have at least one value.

    Examples
    --------
    >>> from mrshc.preprocessing import ObservedFilter
    >>> nan = float("nan")
    >>> ObservedFilter().fit_transform([[1.0, nan], [nan, nan]]).shape
    (2, 1)
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the features with a value."""
        self._split_observed = ~np.isnan(self._validate(X, reset=True)).all(axis=0)
        return self

    def describe(self) -> str:
        """Say what the step does."""
        return "features without any value"

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self._split_observed


class VarianceFilter(Step, SelectorMixin, BaseEstimator):
    """Keeps the features of highest variance, over their observed values.

    Parameters
    ----------
    n_features : int
        Number of features to keep. Of features with equal variance the first are kept, features
        that are constant or have less than two observed values last.

    Attributes
    ----------
    variances_ : ndarray of shape (n_features_in_,)
        Variance of each feature.

    Examples
    --------
    >>> from mrshc.preprocessing import VarianceFilter
    >>> VarianceFilter(1).fit_transform([[0.0, 1.0, 5.0], [0.0, 9.0, 6.0]])
    array([[1.],
           [9.]])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the features to keep."""
        X = self._validate(X, reset=True)
        q = check_integer(
            "n_features",
            self.n_features,
            low=1,
            high=X.shape[1],
            advice="Lower it, or relax the filters before this one.",
        )
        mean, scale = _mean_and_scale(X, constant=0.0)
        self.variances_ = np.where(np.isnan(mean), 0.0, scale) ** 2
        self.support_ = np.zeros(X.shape[1], dtype=bool)
        self.support_[np.argsort(-self.variances_, kind="stable")[:q]] = True
        return self

    def describe(self) -> str:
        """Return the step in words."""
        return f"the {format_count(self.n_features, 'feature')} of highest variance"

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_


def _check_number_or_none(name: str, value: float | None, *, default: float) -> float:
    if value is None:
        return default
    return check_number(name, value, low=-_LARGEST, high=_LARGEST, advice=_NO_BOUND)


def _standardize_rows(X: NDArray[Any]) -> NDArray[Any]:
    mean, scale = _mean_and_scale(X.T)
    return ((X - mean[:, None]) / scale[:, None]).astype(X.dtype)


def _mean_and_scale(X: NDArray[Any], *, constant: float = 1.0) -> tuple[Float, Float]:
    """Return mean and standard deviation of the observed values of each column.

    Columns without two different values have their one value as mean, exactly, and `constant` as
    standard deviation; NaN is the mean where nothing is observed.
    """
    p = X.shape[1]
    means, scales = np.empty(p), np.empty(p)
    for block in column_blocks(*X.shape):
        part = X[:, block].astype(np.float64)
        observed = ~np.isnan(part)
        counts = observed.sum(axis=0)
        # Shifted by an observed value: exact for constants, and large offsets do no harm.
        shift = part[observed.argmax(axis=0), np.arange(part.shape[1])]
        part -= shift
        part[~observed] = 0.0
        mean = part.sum(axis=0) / np.maximum(counts, 1)
        squares = (np.square(part - mean) * observed).sum(axis=0)
        varies = part.any(axis=0) & (squares > 0)
        means[block] = shift + np.where(varies, mean, 0.0)
        scales[block] = np.sqrt(squares / np.maximum(counts - 1, 1))
        scales[block][~varies] = constant
    return means, scales


def format_count(count: Any, what: str) -> str:
    """Return "1 value", "4,247 values"; a count that is no number is left to `fit` to refuse."""
    number = f"{count:,}" if isinstance(count, int | np.integer) else str(count)
    return f"{number} {what}" if count == 1 else f"{number} {what}s"
