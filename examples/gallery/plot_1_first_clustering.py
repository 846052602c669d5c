"""
First clustering
================

Cluster the rows of a DataFrame by the method that is recommended for real data.
"""

import pandas as pd

from mrshc import AssociationHC
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1

data = make_simulation_1(random_state=1, mu=1.5)
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)

# %%
# Neither the number of genes nor the number of clusters is given.

model = AssociationHC().fit(X)
model.summary()

# %%
# The clusters are `labels_`, and the selected genes are given by `get_support`. `supported_` states
# whether genes are associated with clusters of trees that were built without them.

print(pd.Series(model.labels_, index=X.index).value_counts())
print(X.columns[model.get_support()][:8].tolist())
print(model.supported_)

# %%
# The branches are coloured by cluster, and the bar shows the simulated groups, which the fit does
# not know.

groups = pd.DataFrame({"group": [f"group {label + 1}" for label in data.labels]}, index=X.index)
pl.dendrogram(model, annotations=groups)

# %%
# `markers` lists the genes that differ between each cluster and all other samples.

model.markers(X).head()
