"""Counts and raw intensities are recognised, and other data are not mistaken for them."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mrshc.preprocessing import chain, detect_scale, prepare

DATA = Path(os.environ.get("MRSHC_DATA", Path(__file__).parents[3] / "shared" / "data"))
# Of the real data sets, these are raw: intensities of Affymetrix arrays with negative values
# (Golub et al. 1999), intensities of another array, and ratios of a cDNA array, not logarithms.
RAW_SETS = {"golub7129", "tox171", "khan-2001"}
FILES = sorted(DATA.rglob("*.npz")) if DATA.is_dir() else []
needs_data = pytest.mark.skipif(
    not FILES, reason="needs the real data sets; set MRSHC_DATA to the folder that has them"
)


def load(path):
    with np.load(path, allow_pickle=False) as content:
        return content["X"].astype(np.float64)


def counts(means, *, dispersion=5, n=30, seed=0):
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.5, 2, size=(n, 1)) * means
    return rng.negative_binomial(dispersion, dispersion / (dispersion + mu))


def lognormal_means(centre, spread, p=400):
    return np.exp(np.random.default_rng(1).normal(centre, spread, size=p))


SIMULATED_COUNTS = {
    "equal means": lambda: counts(np.full(400, 100.0)),
    "bulk": lambda: counts(lognormal_means(5, 2)),
    "low": lambda: counts(lognormal_means(1, 1.5), dispersion=1),
    "high": lambda: counts(lognormal_means(8, 0.5), dispersion=20),
    "Poisson": lambda: counts(np.full(400, 10.0), dispersion=10**6),
    "single cells": lambda: counts(lognormal_means(-2, 2, p=2000), dispersion=1, n=200),
}


@pytest.mark.parametrize("name", SIMULATED_COUNTS)
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_simulated_counts_are_recognised(name, dtype):
    X = SIMULATED_COUNTS[name]().astype(dtype)
    assert detect_scale(X).kind == "counts"
    assert detect_scale(sparse.csr_array(X)).kind == "counts"


@pytest.mark.parametrize("name", SIMULATED_COUNTS)
@pytest.mark.parametrize("normalize", ["cpm", None])
def test_logarithms_of_counts_are_not_raw(name, normalize):
    X = SIMULATED_COUNTS[name]()
    steps = chain(normalize=normalize, log2=True, pseudocount=1)
    assert detect_scale(prepare(X, steps).X).kind == "other"


def test_counts_without_logarithms_are_raw_after_normalisation():
    X = SIMULATED_COUNTS["bulk"]()
    assert detect_scale(X / X.sum(1, keepdims=True)).kind == "intensities"


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.integers(0, 3, size=(40, 500)),  # genotypes
        lambda rng: rng.integers(1, 8, size=(40, 500)),  # answers on a scale
        lambda rng: rng.random((40, 500)) < 0.02,  # rare mutations
        lambda rng: np.argsort(rng.random((40, 500)), axis=1) + 1,  # ranks have equal totals
        lambda rng: np.round(rng.normal(8, 2, size=(40, 500))).clip(0),  # rounded logarithms
        lambda rng: rng.normal(size=(40, 500)),
        lambda rng: rng.standard_t(2, size=(40, 500)),  # heavy tails on both sides
        lambda rng: rng.beta(0.4, 0.4, size=(40, 500)),  # methylation
        lambda _: np.zeros((40, 500)),
        lambda _: np.full((40, 500), np.nan),
    ],
)
def test_other_data_are_not_mistaken(make):
    assert detect_scale(np.asarray(make(np.random.default_rng(0)), float)).kind == "other"


def test_a_few_outlying_cells_are_not_intensities():
    X = np.random.default_rng(0).normal(8, 2, size=(40, 500))
    X[3, 7] = X[20, 100] = 1e6
    assert detect_scale(X).kind == "other"


def test_huge_values_do_not_overflow():
    X = np.exp(np.random.default_rng(0).normal(size=(20, 500)) * 2) * 1e200
    assert detect_scale(X).kind == "intensities"


def test_the_message_names_the_steps_that_help():
    message = detect_scale(SIMULATED_COUNTS["bulk"]()).message
    assert "Add normalize='cpm', or normalize='size-factors' if many features" in message
    intensities = np.exp(np.random.default_rng(0).normal(5, 2, size=(20, 300)))
    for shift, advice in [
        (0.0, "Add log2=True; or"),
        (
            intensities.min(),
            "Add log2=True with pseudocount=1 or another number, since",
        ),
        (
            50.0,
            "Add log2=True with floor=100 or another number, since",
        ),
    ]:
        assert advice in detect_scale(intensities - shift).message
    assert detect_scale(np.log(intensities)).message is None


@needs_data
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_real_data_sets(path):
    expected = "intensities" if path.stem in RAW_SETS else "other"
    assert detect_scale(load(path)).kind == expected


@needs_data
@pytest.mark.parametrize(
    "name", ["armstrong-2002-v2", "laiho-2007", "nutt-2003-v3", "dm-borovecki", "tcga-mixomics"]
)
def test_exponentials_of_real_logarithms_are_intensities(name):
    path = next((p for p in FILES if p.stem == name), None)
    if path is None:
        pytest.skip(f"needs the data set {name}")
    assert detect_scale(2 ** load(path)).kind == "intensities"


def recover_counts(X):
    """Return the counts behind logarithms to base 2 of scaled counts plus 1.

    In each sample, the smallest positive value is one count, so all others are multiples of it.
    """
    scaled = 2**X - 1
    K = np.array([sample / sample[sample > 1e-9].min() for sample in scaled])
    # If the values were not scaled counts, they would not be multiples.
    assert np.abs(K - np.rint(K)).max() < 0.01
    return np.rint(K)


@needs_data
@pytest.mark.parametrize("name", ["sc_celseq2", "mouse-diet"])
def test_real_counts_are_recognised(name):
    """Counts of single cells, and counts of 16S genes."""
    path = next((p for p in FILES if p.stem == name), None)
    if path is None:
        pytest.skip(f"needs the data set {name}")
    K = recover_counts(load(path))
    assert detect_scale(K).kind == "counts"
    assert detect_scale(np.log2(K + 1)).kind == "other"
    assert detect_scale(K / K.sum(axis=1, keepdims=True)).kind == "intensities"
