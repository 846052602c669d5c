"""Compile the loops that most tests call, once, before several processes need them.

Compiled code is stored in the folder of the kernels, and later processes load it from there.
`make test` runs this while the source is linted.
"""

import warnings

import numpy as np

from mrshc import COSA, SHC, HighVarianceHC, MrSHC, SparseKMeans


def main():
    """Fit each estimator to small data of each element type and memory layout."""
    warnings.simplefilter("ignore")  # the data have no clusters to be warned of
    X = np.random.default_rng(0).normal(size=(20, 60))
    X[:10, :20] += 3
    for data in (X, np.asfortranarray(X), X.astype(np.float32)):
        MrSHC([5, 10], max_rank=2, n_references=5, random_state=0).fit(data)
        SHC(5).fit(data)
    missing = np.where(X > 4, np.nan, X)
    rules = ({"selection": "evidence"}, {"selection": "association"})
    for options in ({"refine": True}, {"robust": True}, *rules):
        MrSHC(5, n_references=5, random_state=0, **options).fit(X)
    MrSHC(5, n_references=5, random_state=0).fit(missing)
    MrSHC(5, n_references=5, random_state=0, metric="cityblock", linkage="average").fit(X)
    MrSHC(5, n_references=5, random_state=0, metric="correlation").fit(X)
    HighVarianceHC(5).fit(X)
    SparseKMeans(2, n_features_to_select=5).fit(X)
    COSA().fit(X)


if __name__ == "__main__":
    main()
