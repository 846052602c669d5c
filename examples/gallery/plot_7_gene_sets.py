"""
Gene sets among the markers
===========================

Which gene sets have more genes in common with the markers of a cluster than a random list?
"""

import pandas as pd

from mrshc import AssociationHC, gene_set_enrichment
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1

data = make_simulation_1(random_state=1, mu=1.5)
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)
model = AssociationHC().fit(X)

# %%
# The markers with the largest effect sizes. The column `direction` of the table states whether the
# mean is higher or lower in the cluster than in the other samples.

markers = model.markers(X)
pl.markers(model, X, top=5)

# %%
# Gene sets are a mapping from names to genes. `mrshc.io.read_gene_sets("hallmark.gmt")` reads them
# from a file. Here, the first set consists of genes that differ between the groups, the second of
# genes that do not, and the third of both.

sets = {
    "RESPONSE": genes[:30],
    "HOUSEKEEPING": genes[100:140],
    "MIXED": genes[40:60],
}
table = gene_set_enrichment(markers, sets, universe=genes)
table

# %%
# The p-values rank sets. They are not evidence for the clusters, which were found in the same data.
