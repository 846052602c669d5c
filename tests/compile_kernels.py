"""Compile the loops that most tests call, once, before several processes need them.

    python tests/compile_kernels.py search    # sparse components, trees and gap tests
    python tests/compile_kernels.py others    # other options of the search, and other methods

Compiled code is stored in the folder of the kernels, and later processes load it from there.
`make test` runs both parts while the source is linted.
"""

import sys
import warnings

import numpy as np

from mrshc.estimators import COSA, SHC, AssociationHC, HighVarianceHC, MrSHC, SparseKMeans

X = np.random.default_rng(0).normal(size=(20, 60))
X[:10, :20] += 3
HOLES = np.where(X > 4, np.nan, X)


def compile_search():
    """Fit the search to complete data and to data with missing values."""
    for data in (X, HOLES):
        MrSHC(5, max_rank=2, n_references=5, random_state=0).fit(data)


def compile_others():
    """Fit the other methods, which have loops of their own."""
    AssociationHC().fit(X)
    HighVarianceHC(5, linkage="median").fit(X)
    SparseKMeans(2, n_features_to_select=5).fit(X)
    for data in (X, HOLES):
        SHC(5, metric="cityblock").fit(data)
        COSA().fit(data)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the data have no clusters to be warned of
    {"search": compile_search, "others": compile_others}[sys.argv[1]]()
