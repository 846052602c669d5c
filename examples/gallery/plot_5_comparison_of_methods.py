"""
Comparison of methods
=====================

Fit several methods to one data set, and score them by the same criteria.
"""

import pandas as pd
from sklearn.cluster import KMeans

from mrshc import AssociationHC, HighVarianceHC, SparseKMeans, compare
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1

data = make_simulation_1(random_state=1)
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)

# %%
# Methods are given by their keys, such as "association", or as estimators. Any clusterer with
# `labels_` can be compared, such as K-means of scikit-learn. The true groups and the informative
# genes are known here; both are optional.

comparison = compare(
    X,
    methods={
        "AssociationHC": AssociationHC(),
        "20 most variable genes": HighVarianceHC(20, linkage="ward"),
        "all genes": HighVarianceHC(500, linkage="ward"),
        "sparse K-means": SparseKMeans(n_clusters=3, n_features_to_select=50),
        "K-means": KMeans(3, n_init=10),
    },
    truth=data.labels,
    support=data.support,
    random_state=0,
)
comparison

# %%
# The trees of the methods that have one:

trees = {name: m for name, m in comparison.models.items() if hasattr(m, "linkage_matrix_")}
groups = pd.DataFrame({"group": [f"group {label + 1}" for label in data.labels]}, index=X.index)
pl.dendrograms(trees, annotations=groups)
