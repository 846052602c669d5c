"""Transformers for counts: a filter, counts per million, size factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from mrshc.preprocessing.steps import LARGEST, Filter, Step, format_count
from mrshc.validation import check_integer, check_number


class _CountStep(Step):
    """A step that refuses negative values."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _refuse_negative(self, X: np.ndarray) -> None:
        if (bad := X < 0).any():
            raise ValueError(
                f"Counts must not be negative, but {format_count(bad.sum(), 'value')} of X "
                f"{'is' if bad.sum() == 1 else 'are'} (first in feature "
                f"{self.label(bad.any(axis=0).argmax())}). Leave this step out if the values are "
                "not counts."
            )


class LowCountFilter(_CountStep, Filter):
    """Select the features with enough counts in enough samples.

    The logarithms of low counts vary mostly by chance. Missing values do not count as samples.

    Parameters
    ----------
    min_count : float, default=10
        Smallest value that is regarded as expressed.
    min_samples : int, default=2
        Smallest number of samples with such a value, for example the size of the smallest group
        that is of interest.

    Attributes
    ----------
    support_ : ndarray of shape (n_features_in_,)
        Mask of the selected features.

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

    def _describe(self) -> str:
        samples = format_count(self.min_samples, "sample")
        return f"at least {self.min_count:.6g} in at least {samples}"

    def _learn(self, X: np.ndarray) -> None:
        self._refuse_negative(X)
        least = check_number("min_count", self.min_count, low=0, high=LARGEST)
        n_needed = check_integer("min_samples", self.min_samples, low=1, high=X.shape[0])
        self.support_ = (least <= X).sum(axis=0) >= n_needed  # False for NaN


class CountsPerMillion(OneToOneFeatureMixin, _CountStep):
    """Divide each sample by its total, and multiply it by one million.

    A feature with very large counts in some samples lowers all other features of these samples;
    :class:`SizeFactors` avoids this.

    Parameters
    ----------
    prior_count : float, default=0.0
        Count of a sample with the mean total that is added afterwards, so that zeros have a
        logarithm, which is the same in all samples.

    Attributes
    ----------
    added_ : ndarray of shape (n_features_in_,)
        What is added: the prior count, in counts per million of a sample with the mean total.

    Examples
    --------
    >>> from mrshc.preprocessing import CountsPerMillion
    >>> CountsPerMillion().fit_transform([[1, 3], [30, 10]])
    array([[250000., 750000.],
           [750000., 250000.]])
    """

    new_samples = "samples"
    learnt = ("added_",)

    def __init__(self, prior_count: float = 0.0) -> None:
        self.prior_count = prior_count

    def _describe(self) -> str:
        return f"counts per million{_describe_prior_count(self.prior_count)}"

    def _learn(self, X: np.ndarray) -> None:
        prior = check_number("prior_count", self.prior_count, low=0, high=LARGEST)
        self.added_ = np.full(X.shape[1], 1e6 / float(self._totals(X).mean()) * prior)

    def _apply(self, X: np.ndarray) -> np.ndarray:
        return (X * (1e6 / self._totals(X))[:, None] + self.added_).astype(X.dtype)

    def _totals(self, X: np.ndarray) -> np.ndarray:
        self._refuse_negative(X)
        totals = np.asarray(np.nansum(X, axis=1, dtype=np.float64))
        if not totals.all():
            raise ValueError(
                f"Every sample needs a count above 0, but sample {totals.argmin()} has none. "
                "Remove it."
            )
        return totals


class SizeFactors(OneToOneFeatureMixin, _CountStep):
    r"""Divide each sample by its size factor, the median of its ratios to a reference sample.

    The size factor of sample i of m samples is [1]_

    .. math:: s_i = \operatorname{median}_j \frac{k_{ij}}{(\prod_{l=1}^m k_{lj})^{1/m}},

    over the features that are positive in all samples of the fit. Sparse data, such as counts of
    single cells, may have none; :class:`CountsPerMillion` can be used instead.

    Parameters
    ----------
    prior_count : float, default=0.0
        Count that is added afterwards, so that zeros have a logarithm.

    Attributes
    ----------
    reference_ : ndarray of shape (n_features_in_,)
        The reference sample: geometric means of the features that are used, and 0 for the others.
    size_factors_ : ndarray of shape (n_samples,)
        Size factors of the samples of the fit.

    References
    ----------
    .. [1] Anders, S. and Huber, W. (2010). Differential expression analysis for sequence count
       data. Genome Biology 11, R106. https://doi.org/10.1186/gb-2010-11-10-r106

    Examples
    --------
    >>> from mrshc.preprocessing import SizeFactors
    >>> SizeFactors().fit([[10, 20, 30], [20, 40, 600]]).size_factors_.round(3)
    array([0.707, 1.414])
    """

    new_samples = "samples"
    learnt = ("reference_",)
    # The median of fewer ratios is not accurate; half of all features suffice if these are few.
    _MIN_FEATURES = 20

    def __init__(self, prior_count: float = 0.0) -> None:
        self.prior_count = prior_count

    def _describe(self) -> str:
        span = ""
        if hasattr(self, "size_factors_"):
            n_used, factors = int((self.reference_ > 0).sum()), self.size_factors_
            span = f" of {format_count(n_used, 'feature')}"
            span += f", {factors.min():.2g} to {factors.max():.2g}"
        return f"samples divided by size factors{span}{_describe_prior_count(self.prior_count)}"

    def _learn(self, X: np.ndarray) -> None:
        self._refuse_negative(X)
        check_number("prior_count", self.prior_count, low=0, high=LARGEST)
        observed = ~np.isnan(X)
        is_used = ((X > 0) | ~observed).all(axis=0) & observed.any(axis=0)
        n_needed = max(1, min(self._MIN_FEATURES, X.shape[1] // 2))
        if is_used.sum() < n_needed:
            raise ValueError(
                f"Size factors need at least {n_needed} features that are positive in all samples, "
                f"but X has {is_used.sum()}. Remove samples with few counts, or use "
                "normalize='cpm'."
            )
        self.reference_ = np.zeros(X.shape[1])
        logs = np.log(X[:, is_used], dtype=np.float64)
        self.reference_[is_used] = np.exp(np.nanmean(logs, axis=0))
        self.size_factors_ = self._factors(X)

    def _apply(self, X: np.ndarray) -> np.ndarray:
        self._refuse_negative(X)
        return (X / self._factors(X)[:, None] + self.prior_count).astype(X.dtype)

    def _factors(self, X: np.ndarray) -> np.ndarray:
        is_used = self.reference_ > 0
        ratios = X[:, is_used] / self.reference_[is_used]
        factors, is_known = np.zeros(len(X)), ~np.isnan(ratios).all(axis=1)
        factors[is_known] = np.nanmedian(ratios[is_known], axis=1)
        if not factors.all():
            raise ValueError(
                "Every sample needs a positive size factor, but at least half of the features that "
                f"define it are 0 or missing in sample {factors.argmin()}. Remove that sample."
            )
        return factors


def _describe_prior_count(count: float) -> str:
    return f", prior count {count:.6g}" if count else ""
