"""
Clusters of new samples
=======================

Assign samples that were not part of the fit to the nearest cluster.
"""

import pandas as pd

from mrshc import AssociationHC
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1

data = make_simulation_1(random_state=1, mu=1.5, sizes=(25, 25, 25))
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)
is_new = pd.Series(range(len(X)), index=X.index) % 5 == 4
model = AssociationHC().fit(X[~is_new])
pl.dendrogram(model)

# %%
# Genes are matched by name. They may be in another order, and genes that were not selected may be
# missing.

new = X.loc[is_new, X.columns[model.get_support()][::-1]]
clusters = pd.Series(model.predict(new), index=new.index, name="cluster")
pd.crosstab(clusters, pd.Series(data.labels[is_new], index=new.index, name="simulated group"))

# %%
# The distances to the centres of all clusters. If the two smallest distances of a sample are
# similar, the sample lies between two clusters.

pd.DataFrame(model.cluster_distances(new), index=new.index).head().round(1)
