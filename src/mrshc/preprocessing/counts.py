"""scikit-learn transformers for counts: filter of low counts, counts per million, size factors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from mrshc.preprocessing.steps import LARGEST, NewSampleUse, Step, format_count
from mrshc.shell.wording import ParameterError, Setting
from mrshc.validation import check_integer, check_number

_MILLION = 1e6
# Smallest number of features from which size factors are computed, unless half of all features are
# fewer. The median of fewer ratios is not accurate; the value is not tuned.
_MIN_REFERENCE_FEATURES = 20


class _CountStep(Step):
    """Base class of the steps for counts, which refuse negative values."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True  # scikit-learn's tests then use positive data
        return tags

    def _validate_counts(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Return X as an array; raise ValueError if X is not numeric or a value is negative."""
        X = self._validate(X, reset=reset)
        is_negative = X < 0
        if is_negative.any():
            first = int(is_negative.any(axis=0).argmax())
            raise ValueError(
                f"Counts must not be negative, but {format_count(is_negative.sum(), 'value')} of X "
                f"{'is' if is_negative.sum() == 1 else 'are'} (first in feature "
                f"{self._feature_label(first)}). Leave this step out if the values are not counts."
            )
        return X


class LowCountFilter(_CountStep, SelectorMixin, BaseEstimator):
    """Select the features with enough counts in enough samples.

    A feature is selected if its value is at least `min_count` in at least `min_samples` samples.
    Missing values do not count as samples.

    Parameters
    ----------
    min_count : float, default=10
        Smallest value that is regarded as expressed.
    min_samples : int, default=2
        Smallest number of samples with such a value. A usual choice is the size of the smallest
        group of samples that is of interest.

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
    CountsPerMillion : Normalises counts by the totals of the samples.
    SizeFactors : Normalises counts by the median of ratios.

    Notes
    -----
    Features with low counts carry little information. Their logarithms vary mostly by chance, since
    the relative error of a count is largest if the count is small.

    Examples
    --------
    >>> from mrshc.preprocessing import LowCountFilter
    >>> X = [[12, 0, 30], [15, 2, 0], [40, 11, 25]]
    >>> LowCountFilter(min_count=10, min_samples=2).fit(X).get_support()
    array([ True, False,  True])
    """

    def __init__(self, min_count: float = 10, min_samples: int = 2) -> None:
        self.min_count = min_count
        self.min_samples = min_samples

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "selection"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Determine which features to select.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Counts; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : LowCountFilter
            Fitted transformer.

        Raises
        ------
        ValueError
            If a value is negative.
        ParameterError
            If `min_count` is negative, or if `min_samples` is not an integer from 1 to the number
            of samples.
        """
        X = self._validate_counts(X, reset=True)
        least = check_number(
            "min_count", self.min_count, low=0, high=LARGEST, advice="10 is usual."
        )
        n_needed = check_integer(
            "min_samples", self.min_samples, low=1, high=X.shape[0], advice="2 is the default."
        )
        # Comparisons with NaN are False, so missing values are not counted.
        self.support_ = np.greater_equal(X, least).sum(axis=0) >= n_needed
        return self

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "at least 10 in at least 2 samples".
        """
        samples = format_count(self.min_samples, "sample")
        return f"at least {self.min_count:.6g} in at least {samples}"

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_


class CountsPerMillion(_CountStep, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Divide each sample by its total, and multiply it by one million.

    Parameters
    ----------
    prior_count : float, default=0.0
        Count that is added to all values, so that zeros have a logarithm. It is given as a count in
        a sample with the mean total, and added after the normalisation.

    Attributes
    ----------
    added_ : ndarray of shape (n_features_in_,)
        Value that is added to each feature after the normalisation: the prior count in counts per
        million of a sample with the mean total.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    SizeFactors : Normalises counts by the median of ratios.
    Log2 : Takes logarithms, which usually follow; zeros need a prior count.

    Notes
    -----
    For counts :math:`k_{ij}` of feature j in sample i, totals :math:`N_i` with mean :math:`N`, and
    the prior count :math:`c`, the result is :math:`10^6 (k_{ij} / N_i + c / N)`. Zeros have the
    same value in all samples. With a fixed number in place of the second term, the difference
    between 0 and 1 count would be very large in samples with far less than a million counts.

    The total of a sample is the sum of its observed values. A feature with very large counts in
    some of the samples lowers all other features of these samples; size factors are not affected by
    a few such features.

    Examples
    --------
    >>> from mrshc.preprocessing import CountsPerMillion
    >>> CountsPerMillion().fit_transform([[1, 3], [30, 10]])
    array([[250000., 750000.],
           [750000., 250000.]])
    """

    learnt_arrays = ("added_",)

    def __init__(self, prior_count: float = 0.0) -> None:
        self.prior_count = prior_count

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "samples"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the value to add.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Counts; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : CountsPerMillion
            Fitted transformer.

        Raises
        ------
        ValueError
            If a value is negative, or if all values of a sample are 0.
        ParameterError
            If `prior_count` is negative.
        """
        X = self._validate_counts(X, reset=True)
        _check_prior_count(self.prior_count)
        added = _MILLION / float(_sample_totals(X).mean()) * self.prior_count
        # One value for each feature, as for the values that other steps learn.
        self.added_ = np.full(X.shape[1], added)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return counts per million.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as in `fit`.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_features)
            Counts per million. Without a prior count, the observed values of each sample have the
            sum 1,000,000.

        Raises
        ------
        ValueError
            If a value is negative, or if all values of a sample are 0.
        """
        X = self._validate_counts(X, reset=False)
        factors = _MILLION / _sample_totals(X)
        return (X * factors[:, None] + self.added_).astype(X.dtype)

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "counts per million, prior count 1".
        """
        return f"counts per million{_describe_prior_count(self.prior_count)}"


class SizeFactors(_CountStep, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Divide each sample by its size factor, the median of its ratios to a reference sample.

    Parameters
    ----------
    prior_count : float, default=0.0
        Count that is added to all values after the normalisation, so that zeros have a logarithm.

    Attributes
    ----------
    reference_ : ndarray of shape (n_features_in_,)
        The reference sample: the geometric mean of each feature in the data passed to `fit`; 0 for
        features that are not used, since one of their values is 0 or all are missing.
    size_factors_ : ndarray of shape (n_samples,)
        Size factors of the samples passed to `fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    CountsPerMillion : Normalises counts by the totals of the samples.
    Log2 : Takes logarithms, which usually follow; zeros need a prior count.

    Notes
    -----
    For counts :math:`k_{ij}` of feature j in sample i of m samples, the size factor is [1]_

    .. math:: s_i = \operatorname{median}_j \frac{k_{ij}}{(\prod_{l=1}^m k_{lj})^{1/m}},

    where the median is taken over the features that are positive in all samples of the fit. If most
    features have the same abundance in all samples, the ratios of these features all estimate the
    depth of sequencing, and a few very abundant features have no influence. Sparse data, such as
    counts of single cells, may have no feature that is positive in all samples;
    :class:`CountsPerMillion` can be used instead.

    References
    ----------
    .. [1] Anders, S. and Huber, W. (2010). Differential expression analysis for sequence count
       data. Genome Biology 11, R106. https://doi.org/10.1186/gb-2010-11-10-r106

    Examples
    --------
    >>> from mrshc.preprocessing import SizeFactors
    >>> step = SizeFactors().fit([[10, 20, 30], [20, 40, 600]])
    >>> step.size_factors_.round(3)
    array([0.707, 1.414])
    """

    learnt_arrays = ("reference_",)

    def __init__(self, prior_count: float = 0.0) -> None:
        self.prior_count = prior_count

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "samples"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the reference sample and the size factors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Counts; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : SizeFactors
            Fitted transformer.

        Raises
        ------
        ValueError
            If a value is negative, or if the size factor of a sample is not defined.
        ParameterError
            If too few features are positive in all samples, or if `prior_count` is negative.
        """
        X = self._validate_counts(X, reset=True)
        _check_prior_count(self.prior_count)
        observed = ~np.isnan(X)
        is_used = ((X > 0) | ~observed).all(axis=0) & observed.any(axis=0)
        n_used, n_needed = int(is_used.sum()), min(_MIN_REFERENCE_FEATURES, X.shape[1] // 2)
        if n_used < max(1, n_needed):
            raise ParameterError(
                "Size factors need at least {n_needed} features that are positive in all samples, "
                "but X has {n_used}. Remove samples with few counts, or use {cpm}.",
                n_needed=max(1, n_needed),
                n_used=n_used,
                cpm=Setting("normalize", "cpm"),
            )
        logs = np.log(X[:, is_used], dtype=np.float64)
        self.reference_ = np.zeros(X.shape[1])
        self.reference_[is_used] = np.exp(np.nanmean(logs, axis=0))
        self.size_factors_ = self._compute_factors(X)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return each sample divided by its size factor.

        Size factors are computed for the samples of X, with the reference sample of the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as in `fit`.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_features)
            Normalised counts.

        Raises
        ------
        ValueError
            If a value is negative, or if the size factor of a sample is not defined.
        """
        X = self._validate_counts(X, reset=False)
        return (X / self._compute_factors(X)[:, None] + self.prior_count).astype(X.dtype)

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "samples divided by size factors of 300
            features, 0.71 to 1.4, prior count 1".
        """
        factors = getattr(self, "size_factors_", None)
        span = ""
        if factors is not None:
            n_used = int((self.reference_ > 0).sum())
            span = f" of {format_count(n_used, 'feature')}"
            span += f", {factors.min():.2g} to {factors.max():.2g}"
        return f"samples divided by size factors{span}{_describe_prior_count(self.prior_count)}"

    def _compute_factors(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the size factor of each sample; raise ValueError if one is not defined."""
        is_used = self.reference_ > 0
        ratios = X[:, is_used] / self.reference_[is_used]
        is_empty = np.isnan(ratios).all(axis=1)
        factors = np.zeros(X.shape[0])
        factors[~is_empty] = np.nanmedian(ratios[~is_empty], axis=1)
        if not factors.all():
            raise ValueError(
                "Every sample needs a positive size factor, but at least half of the features that "
                f"define it are 0 or missing in sample {factors.argmin()}. Remove that sample."
            )
        return factors


def _check_prior_count(count: float) -> None:
    """Raise ParameterError if a prior count is not a number that is at least 0."""
    check_number("prior_count", count, low=0, high=LARGEST, advice="1 is usual.")


def _describe_prior_count(count: float) -> str:
    return f", prior count {count:.6g}" if count else ""


def _sample_totals(X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sum of the observed values of each sample; raise ValueError if a sum is 0."""
    totals: NDArray[np.float64] = np.asarray(np.nansum(X, axis=1, dtype=np.float64))
    if not totals.all():
        raise ValueError(
            f"Every sample needs a count above 0, but sample {totals.argmin()} has none. Remove it."
        )
    return totals
