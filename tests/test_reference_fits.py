"""Fits to data of many kinds are those of version 0.2.0.

Features, labels, trees and numbers of clusters must be equal, other numbers up to rounding.
"""

import gzip
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from mrshc.estimators import (
    COSA,
    SHC,
    AssociationHC,
    HighVarianceHC,
    MrSHC,
    SparseKMeans,
    branch_significance,
    stability,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # many of the data have no clusters

FOLDER = Path(__file__).parent / "reference"
FITS = json.loads(gzip.decompress((FOLDER / "fits.json.gz").read_bytes()))
_spec = importlib.util.spec_from_file_location("reference_cases", FOLDER / "reference_cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
ESTIMATORS = {
    "mrshc": MrSHC,
    "association": AssociationHC,
    "shc": SHC,
    "hmv": HighVarianceHC,
    "cosa": COSA,
    "sparse-kmeans": SparseKMeans,
}
# Whole numbers, and the nodes of trees.
EXACT = (
    *("features", "labels_", "n_clusters_", "rank_", "supported_", "associated_features_"),
    *("outlier_samples_", "n_iter_", "predicted", "search n_features_target"),
    *("search n_features", "search rank", "search n_leaves", "search chosen"),
    *("search best_rank", "search removed", "search n_associated", "tests node", "markers node"),
    *("markers feature", "significance node", "significance labels", "significance n_simulations"),
)


SLOW = ("association", "paper", "association, 20,000 features")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in cases.CASES],
)
def test_the_fit_is_that_of_version_0_2_0(name):
    method, parameters, data = cases.CASES[name]
    X = data()
    model = ESTIMATORS[method](**parameters).fit(X)
    found = cases.describe(name, model, X, (branch_significance, stability))
    assert found.keys() == FITS[name].keys()
    for key, expected in FITS[name].items():
        values, expected = np.array(found[key], dtype=float), np.array(expected, dtype=float)
        if key in EXACT:
            np.testing.assert_array_equal(values, expected, err_msg=key)
            continue
        if key == "linkage_matrix_":
            np.testing.assert_array_equal(values[:, [0, 1, 3]], expected[:, [0, 1, 3]])
        known = np.abs(expected[np.isfinite(expected)])
        size = known.max(initial=0.0)
        np.testing.assert_allclose(values, expected, rtol=1e-8, atol=1e-9 * size, err_msg=key)


def test_every_recorded_fit_is_compared():
    assert FITS.keys() == cases.CASES.keys()
    assert len(FITS) > 100
