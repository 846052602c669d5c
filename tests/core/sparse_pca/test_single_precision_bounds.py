"""Bounds in single precision exclude no column that violates or nearly violates a certificate."""

import numpy as np
import pytest

from mrshc.core.sparse_pca.certificates import NEAR_VIOLATION, Certificate, CertificateBatch

N, P = 40, 3000


def make_batch(rng, *, unit=1.0, fill_change=0.0, threshold=0.4):
    """Return a batch of certificates whose vectors are similar to each other in groups."""
    certificates = []
    for _ in range(6):
        scores = rng.normal(size=N) + 0.1 * rng.normal(size=(8, N))
        scores /= np.linalg.norm(scores, axis=1, keepdims=True)
        certificates.append(
            Certificate(
                working_set=np.arange(3),
                scores=scores,
                thresholds=threshold * unit * rng.uniform(0.9, 1.1, size=8),
                fill_change=fill_change,
                max_violations=10,
            )
        )
    return CertificateBatch.from_certificates(certificates, unit=unit)


def largest_products(batch, X, offsets, fill):
    """Return the largest product of each column with a vector of a certificate."""
    missing = np.isnan(X)
    centred = np.where(missing, fill, X.astype(np.float64) - offsets) / batch.unit
    gaps = np.sqrt(missing.sum(axis=0))
    return (np.abs(batch.vectors @ centred) + batch.shifts[:, None] * gaps).max(axis=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "read-only"])
@pytest.mark.parametrize(("unit", "offset"), [(1.0, 0.0), (1e-20, 0.0), (1e20, 0.0), (1.0, 1e4)])
@pytest.mark.parametrize("share_missing", [0.0, 0.05])
def test_columns_with_large_products_are_found(dtype, order, unit, offset, share_missing):
    rng = np.random.default_rng(0)
    batch = make_batch(rng, unit=unit, fill_change=0.01 * unit)
    X = rng.normal(size=(N, P)) / np.sqrt(N)
    # Some columns lie at the limit, up to rounding errors.
    X[:, :200] = batch.vectors[rng.integers(len(batch.vectors), size=200)].T
    X[:, :200] /= (batch.vectors @ X[:, :200]).max(axis=0) / NEAR_VIOLATION
    X = (unit * X + offset).astype(dtype, order="F" if order == "F" else "C")
    X[rng.random(X.shape) < share_missing] = np.nan
    X.flags.writeable = order != "read-only"
    offsets, fill = np.full(P, offset), 0.02 * unit
    found = batch.may_violate_in_memory(X, offsets, fill)
    products = largest_products(batch, X, offsets, fill)
    assert found[products > NEAR_VIOLATION].all()
    assert np.mean(found[products < 0.95 * NEAR_VIOLATION]) < 0.01


def test_columns_whose_bounds_overflow_are_not_excluded():
    rng = np.random.default_rng(1)
    batch = make_batch(rng)
    X = rng.normal(size=(N, 30)) * 1e-3
    X[:, 4] *= 1e45
    found = batch.may_violate_in_memory(X, np.zeros(30), 0.0)
    np.testing.assert_array_equal(np.flatnonzero(found), 4)


def test_a_threshold_of_zero_excludes_no_column():
    batch = make_batch(np.random.default_rng(2), threshold=0.0)
    X = np.random.default_rng(3).normal(size=(N, 30))
    assert batch.may_violate_in_memory(X, np.zeros(30), 0.0).all()
