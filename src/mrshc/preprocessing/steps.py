"""scikit-learn transformers that change values or select features."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mrshc.shell.wording import Parameter, ParameterError, PythonOnly, Sentence, Setting
from mrshc.validation import check_integer, check_number, check_option

# Data types of the transformed data. Data in single precision are not converted to double
# precision, which would take twice the memory.
DTYPES = (np.float64, np.float32)

# Largest permitted absolute value of a parameter. Squares of much larger numbers overflow, and no
# measurements are so large.
LARGEST = 1e150
_NO_BOUND = Sentence("{none}", none=PythonOnly("Give None for no bound."))


# How a step is applied to new samples if only a saved result is available: to each value
# ("values"), to each sample with all its features ("samples"), not at all since it only selects
# features ("selection"), only if no value is missing since it imputes values from the data of the
# fit ("imputation"), or in no way ("impossible").
NewSampleUse = Literal["values", "samples", "selection", "imputation", "impossible"]


class Step:
    """Base class of the preprocessing steps. All steps accept NaN and preserve single precision."""

    # Step classes by name, from which the steps of a saved result are made again.
    classes: ClassVar[dict[str, type[Step]]] = {}
    # Fitted attributes of shape (n_features_in_,) that `transform` needs.
    learnt_arrays: ClassVar[tuple[str, ...]] = ()
    # Names of the features in error messages. `prepare` sets these names, since the positions of
    # features change when earlier steps remove features.
    _feature_labels: list[str]
    # Whether the step takes logarithms. If so, the data are no longer on the scale of counts or raw
    # intensities, and no warning on their scale is needed.
    takes_logarithms = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Step.classes[cls.__name__] = cls

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains.

        A subclass that does not override this property cannot be applied to new samples without the
        data of the fit.
        """
        return "impossible"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Return X as an array; raise ValueError if X is not numeric or contains infinity.

        With `reset=True`, the number and the names of the features are stored. With `reset=False`,
        ValueError is also raised if the step is not fitted, or if the number or the names of the
        features differ from those of the fit.
        """
        if not reset:
            check_is_fitted(self)
        return validate_data(self, X, dtype=DTYPES, ensure_all_finite="allow-nan", reset=reset)

    def _feature_label(self, j: int | np.intp) -> str:
        """Return the name of feature j for an error message, or its position if it has no name."""
        if hasattr(self, "_feature_labels"):
            return self._feature_labels[j]
        names = getattr(self, "feature_names_in_", None)
        return str(j) if names is None else repr(str(names[j]))


class Thresholds(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace values below a floor by the floor, and values above a ceiling by the ceiling.

    Parameters
    ----------
    floor : float or None, default=None
        Smallest value after the step; None for no floor.
    ceiling : float or None, default=None
        Largest value after the step; None for no ceiling.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    dudoit2002 : Thresholds and filters for raw Affymetrix intensities.

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

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "values"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the data; nothing is estimated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : Thresholds
            Fitted transformer.

        Raises
        ------
        ParameterError
            If a bound is not a number from -1e150 to 1e150, or if `floor` is larger than `ceiling`.
        """
        self._validate(X, reset=True)
        self._check_bounds()
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return X with values beyond a threshold replaced by the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as in `fit`.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_features)
            Data with all values between the floor and the ceiling; missing values remain missing.
        """
        X = self._validate(X, reset=False)
        low, high = self._check_bounds()
        # The bounds are converted to the dtype of X. With bounds in double precision, the result
        # would be in double precision even if X is in single precision.
        return X.clip(X.dtype.type(low), X.dtype.type(high))

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "floor 100, ceiling 16000".
        """
        bounds = (("floor", self.floor), ("ceiling", self.ceiling))
        return ", ".join(f"{k} {v:.6g}" for k, v in bounds if v is not None) or "no thresholds"

    def _check_bounds(self) -> tuple[float, float]:
        """Return the floor and the ceiling; a bound that is None is replaced by an infinite bound.

        Raise ParameterError if a bound is not a number from -1e150 to 1e150, or if the floor is
        above the ceiling.
        """
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
    """Select the features with a large range.

    A feature is selected if max / min > `min_ratio` and max - min > `min_difference`, where max and
    min are the largest and the smallest observed value. A condition is omitted if its parameter is
    None. A feature without observed values meets neither condition.

    Parameters
    ----------
    min_ratio : float or None, default=None
        Features are selected only if max / min is larger than this number; None for no condition on
        max / min. If `min_ratio` is given, all observed values must be positive.
    min_difference : float or None, default=None
        Features are selected only if max - min is larger than this number; None for no condition on
        max - min.

    Attributes
    ----------
    support_ : ndarray of shape (n_features_in_,)
        Mask of the selected features.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    VarianceFilter : Selects the features of highest variance.

    Notes
    -----
    Dudoit, Fridlyand and Speed [1]_ exclude genes with max / min <= 5 or max - min <= 500.

    References
    ----------
    .. [1] Dudoit, S., Fridlyand, J. and Speed, T. P. (2002). Comparison of discrimination methods
       for the classification of tumors using gene expression data. Journal of the American
       Statistical Association 97(457), 77-87. https://doi.org/10.1198/016214502753479248

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

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "selection"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Determine which features to select.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : RangeFilter
            Fitted transformer.

        Raises
        ------
        ParameterError
            If a parameter is invalid, or if `min_ratio` is given and X contains a value that is not
            positive.
        """
        X = self._validate(X, reset=True)
        # fmin and fmax ignore NaN and, unlike nanmin and nanmax, do not warn if all values are NaN.
        low = np.fmin.reduce(X, axis=0).astype(np.float64)
        high = np.fmax.reduce(X, axis=0).astype(np.float64)
        support = np.ones(X.shape[1], dtype=bool)
        # Comparisons with NaN are False, so features without observed values are not selected.
        if self.min_ratio is not None:
            self._refuse_non_positive(low)
            support &= high / low > _check_number_or_none("min_ratio", self.min_ratio, default=0.0)
        if self.min_difference is not None:
            limit = _check_number_or_none("min_difference", self.min_difference, default=0.0)
            support &= high - low > limit
        self.support_ = support
        return self

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "max/min > 5 and max - min > 500".
        """
        limits = (("max/min", self.min_ratio), ("max - min", self.min_difference))
        conditions = [f"{what} > {limit:.6g}" for what, limit in limits if limit is not None]
        return " and ".join(conditions) or "no condition on the range"

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def _refuse_non_positive(self, low: NDArray[np.float64]) -> None:
        """Raise ParameterError if the smallest value of a feature is not positive.

        `low` contains the smallest value of each feature. The ratio max / min has no meaning if min
        is not positive.
        """
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
                floor=Setting("floor", 100, class_name="Thresholds"),
            )


class Log2(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Take the logarithm to base 2 of all values.

    Parameters
    ----------
    pseudocount : float, default=0.0
        Number that is added to all values before the logarithm is taken. The usual number for
        counts, which may be 0, is 1.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    Thresholds : Replaces values that are too small for a logarithm.

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
        tags.input_tags.positive_only = True  # scikit-learn's tests then use positive data
        return tags

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "values"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameter and the data; nothing is estimated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : Log2
            Fitted transformer.

        Raises
        ------
        ParameterError
            If `pseudocount` is invalid, or if a value plus `pseudocount` is not positive.
        """
        self._add_pseudocount(self._validate(X, reset=True))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return log2(X + pseudocount).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as in `fit`.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_features)
            Logarithms to base 2.

        Raises
        ------
        ParameterError
            If a value plus `pseudocount` is not positive.
        """
        return np.log2(self._add_pseudocount(self._validate(X, reset=False)))

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "log2(x + 1)".
        """
        return f"log2(x + {self.pseudocount:.6g})" if self.pseudocount else "log2"

    def _add_pseudocount(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return X plus the pseudocount; raise ParameterError if a sum is not positive."""
        count = check_number(
            "pseudocount", self.pseudocount, low=0, high=LARGEST, advice="1 is usual for counts."
        )
        shifted = X + X.dtype.type(count)
        not_positive = shifted <= 0
        if not_positive.any():
            first = int(not_positive.any(axis=0).argmax())
            raise ParameterError(
                "A logarithm needs positive values, but {n_values} of X {are} not above "
                "{limit:.6g} (first in feature {feature}). Raise them with {floor}, or add a "
                "larger {pseudocount}.",
                n_values=format_count(not_positive.sum(), "value"),
                are="is" if not_positive.sum() == 1 else "are",
                limit=-count if count else 0,
                feature=self._feature_label(first),
                floor=Setting("floor", ..., class_name="Thresholds"),
                pseudocount=Parameter("pseudocount"),
                value=self.pseudocount,
            )
        return shifted


class Standardize(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Standardise samples, features or both to mean 0 and standard deviation 1.

    Parameters
    ----------
    over : {"samples", "features", "both"}
        Whether samples, features or both are standardised.

        - "samples": each sample is standardised over its features.
        - "features": each feature is standardised with its mean and standard deviation in the data
          passed to `fit`.
        - "both": samples are standardised first, then features.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features_in_,)
        Means of the features. Defined only if features are standardised.
    scale_ : ndarray of shape (n_features_in_,)
        Standard deviations of the features; 1 for constant features. Defined only if features are
        standardised.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    sklearn.preprocessing.StandardScaler : Standardises features, with a different divisor.

    Notes
    -----
    The variance is the sum of squared deviations divided by the number of observed values minus
    one, as in the R function `scale`. In contrast, :class:`sklearn.preprocessing.StandardScaler`
    divides by the number of observed values. In the published lymphoma data of Dettling (2004), the
    samples are standardised in the same way as here. All observed values of constant samples and
    constant features become 0.

    Examples
    --------
    >>> from mrshc.preprocessing import Standardize
    >>> Standardize("samples").fit_transform([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    array([[-1.,  0.,  1.],
           [ 0.,  0.,  0.]])
    """

    learnt_arrays = ("mean_", "scale_")

    def __init__(self, over: Literal["samples", "features", "both"]) -> None:
        self.over = over

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "values" if self.over == "features" else "samples"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the means and standard deviations of the features if features are standardised.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : Standardize
            Fitted transformer.

        Raises
        ------
        ParameterError
            If `over` is invalid.
        """
        check_option("over", self.over, ("samples", "features", "both"))
        X = self._validate(X, reset=True)
        if self.over != "samples":
            # As in `transform`, samples are standardised before features.
            X = _standardize_rows(X) if self.over == "both" else X
            self.mean_, self.scale_ = _mean_and_scale(X)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return standardised data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as in `fit`.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_features)
            Standardised data.
        """
        X = self._validate(X, reset=False)
        if self.over != "features":
            X = _standardize_rows(X)
        if self.over != "samples":
            # The result is computed in double precision and then converted to the precision of X.
            X = ((X - self.mean_) / self.scale_).astype(X.dtype)
        return X

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "samples standardised to mean 0 and standard
            deviation 1".
        """
        objects = {"both": "samples, then features,"}.get(self.over, self.over)
        return f"{objects} standardised to mean 0 and standard deviation 1"


class ObservedFilter(Step, SelectorMixin, BaseEstimator):
    """Select the features with at least one observed value.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    NeighborImputer : Imputes missing values; requires an observed value in each feature.

    Examples
    --------
    >>> from mrshc.preprocessing import ObservedFilter
    >>> nan = float("nan")
    >>> ObservedFilter().fit_transform([[1.0, nan], [nan, nan]]).shape
    (2, 1)
    """

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "selection"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Determine which features have an observed value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : ObservedFilter
            Fitted transformer.
        """
        self._is_observed = ~np.isnan(self._validate(X, reset=True)).all(axis=0)
        return self

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            The description "features without any value".
        """
        return "features without any value"

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._is_observed


class VarianceFilter(Step, SelectorMixin, BaseEstimator):
    """Select the features of highest variance.

    Variances are computed from the observed values.

    Parameters
    ----------
    n_features : int
        Number of features to select. Among features with equal variance, those with the smallest
        indices are selected first.

    Attributes
    ----------
    variances_ : ndarray of shape (n_features_in_,)
        Variance of each feature. The divisor is the number of observed values minus one. The
        variance of a feature with fewer than two observed values is set to 0.
    support_ : ndarray of shape (n_features_in_,)
        Mask of the selected features.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    RangeFilter : Selects the features with a large range.
    mrshc.HighVarianceHC : Clusters on the features of highest variance.

    Examples
    --------
    >>> from mrshc.preprocessing import VarianceFilter
    >>> VarianceFilter(1).fit_transform([[0.0, 1.0, 5.0], [0.0, 9.0, 6.0]])
    array([[1.],
           [9.]])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "selection"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Determine which features to select.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : VarianceFilter
            Fitted transformer.

        Raises
        ------
        ParameterError
            If `n_features` is not an integer from 1 to the number of features of X.
        """
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
        # With a stable sort, features with equal variance are selected in order of their indices.
        self.support_[np.argsort(-self.variances_, kind="stable")[:q]] = True
        return self

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "the 500 features of highest variance".
        """
        return f"the {format_count(self.n_features, 'feature')} of highest variance"

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_


def _check_number_or_none(name: str, value: float | None, *, default: float) -> float:
    """Return `value` as a float, or `default` if `value` is None.

    Raise ParameterError if `value` is neither None nor a number in the allowed range.
    """
    if value is None:
        return default
    return check_number(name, value, low=-LARGEST, high=LARGEST, advice=_NO_BOUND)


def _standardize_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Return X with each row standardised to mean 0 and standard deviation 1.

    The result has the precision of X.
    """
    mean, scale = _mean_and_scale(X.T)
    return ((X - mean[:, None]) / scale[:, None]).astype(X.dtype)


def _mean_and_scale(
    X: NDArray[Any], *, constant: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the standard deviation of the observed values of each column.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Data; NaN marks a missing value.
    constant : float, default=1.0
        Value that is returned as the standard deviation of a constant column, that is, a column
        without two different observed values. With the default of 1, all columns can be divided by
        their standard deviations.

    Returns
    -------
    mean : ndarray of shape (n_columns,)
        Mean of each column; NaN if no value is observed. The mean of a constant column is equal to
        its values, without rounding error.
    scale : ndarray of shape (n_columns,)
        Standard deviation of each column. The divisor of the variance is the number of observed
        values minus one.
    """
    p = X.shape[1]
    means, scales = np.empty(p), np.empty(p)
    width = max(2**20 // len(X), 1)  # blocks limit the memory that copies take
    for block in (slice(start, start + width) for start in range(0, p, width)):
        part = X[:, block].astype(np.float64)
        observed = ~np.isnan(part)
        counts = observed.sum(axis=0)
        # Each column is shifted by one of its observed values. The mean of a constant column is
        # then exact, and columns with a large mean do not lose digits to cancellation.
        shift = part[observed.argmax(axis=0), np.arange(part.shape[1])]
        part -= shift
        part[~observed] = 0.0
        mean = part.sum(axis=0) / np.maximum(counts, 1)
        squares = (np.square(part - mean) * observed).sum(axis=0)
        # Squares of tiny differences may underflow to 0. Columns with such differences are treated
        # as constant, too.
        varies = part.any(axis=0) & (squares > 0)
        means[block] = shift + np.where(varies, mean, 0.0)
        scales[block] = np.sqrt(squares / np.maximum(counts - 1, 1))
        scales[block][~varies] = constant
    return means, scales


def format_count(count: Any, noun: str) -> str:
    """Return a count with its noun, such as "1 value" or "4,247 values".

    A step may be described before it is fitted, so `count` may be an invalid value of a parameter.
    An invalid value is converted with `str`; the error is raised later, by `fit`.
    """
    number = f"{count:,}" if isinstance(count, int | np.integer) else str(count)
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"
