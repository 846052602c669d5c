"""Compile the loops that most tests call, once, before several processes need them.

    python tests/compile_kernels.py search    # sparse components, trees and gap tests
    python tests/compile_kernels.py others    # options of the search, and other methods

Compiled code is stored in the folder of the kernels, and later processes load it from there.
`make test` runs both parts while the source is linted.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from mrshc import COSA, SHC, HighVarianceHC, MrSHC, SparseKMeans

X = np.random.default_rng(0).normal(size=(20, 60))
X[:10, :20] += 3


def fit(data, **options):
    """Fit the search with few features and few reference samples."""
    MrSHC(5, n_references=5, random_state=0, **options).fit(data)


def compile_search():
    """Fit the search to data in memory and in a file, to few and to many samples."""
    single = X.astype(np.float32)
    for data in (X, single):
        fit(data, max_rank=2)
    many = np.random.default_rng(1).normal(size=(2000, 30))
    many[:1000, :20] += 3
    fit(many, max_rank=2)
    fit(many, selection="association", linkage="ward")
    with tempfile.TemporaryDirectory() as folder:
        for data in (X, single):
            file = Path(folder, f"{data.dtype}.npy")
            np.save(file, data)
            fit(np.load(file, mmap_mode="r"))


def compile_others():
    """Fit the search with several options, and the other methods."""
    fit(X, refine=True)
    fit(X, robust=True)
    fit(X, selection="evidence")
    fit(np.where(X > 4, np.nan, X))
    fit(X, metric="cityblock", linkage="average")
    fit(X, metric="correlation")
    SHC(5).fit(X)
    HighVarianceHC(5).fit(X)
    SparseKMeans(2, n_features_to_select=5).fit(X)
    COSA().fit(X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the data have no clusters to be warned of
    {"search": compile_search, "others": compile_others}[sys.argv[1]]()
