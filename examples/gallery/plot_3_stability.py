"""
Stability of clusters
=====================

Would other samples of the same kind give the same clusters? The fit is repeated on random
subsamples.
"""

import pandas as pd

from mrshc import AssociationHC, stability
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1

data = make_simulation_1(random_state=1, mu=1.5)
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)

# %%
# The data have three groups. First, the tree is cut into three clusters. 20 subsamples keep this
# example short; the default is 50. Clusters with a Jaccard index above 0.75 are usually called
# stable.

model = AssociationHC(n_clusters=3).fit(X)
three = stability(model, X, n_resamples=20, random_state=0)
print(three.cluster_jaccard.round(2))

# %%
# With one cluster too many, two of the clusters are unstable.

wrong = AssociationHC(n_clusters=4).fit(X)
four = stability(wrong, X, n_resamples=20, random_state=0)
print(four.cluster_jaccard.round(2))

# %%
# The consensus of each pair of samples: the share of the subsamples in which both are in the same
# cluster, in the order of the tree.

pl.consensus_matrix(wrong, four)

# %%
# How often the genes are selected:

frequency = pd.Series(three.feature_frequency, index=genes, name="share of the subsamples")
frequency.sort_values(ascending=False).head(8).to_frame()
