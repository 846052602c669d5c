"""
Significance of splits
======================

Is a split clearer than the splits of data without clusters? The test simulates such data and
repeats the selection of the genes on them.
"""

import pandas as pd

from mrshc import AssociationHC, branch_significance
from mrshc import plotting as pl
from mrshc.datasets import make_noise, make_simulation_1

data = make_simulation_1(random_state=1, mu=2.0, sizes=(12, 12, 12))
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)
model = AssociationHC().fit(X)

# %%
# 20 simulations keep this example short; the default is 100. The splits are tested from the root
# downwards, and a split is tested only if the split above it is significant.

tests = branch_significance(model, X, n_simulations=20, random_state=0)
pd.DataFrame(
    {
        "samples": tests.n_samples,
        "p-value": tests.p_value,
        "threshold": tests.threshold,
        "significant": tests.significant,
    }
)

# %%
# The tree with the p-values of the tested splits:

pl.dendrogram(model, significance=tests)

# %%
# The same test on data in which blocks of genes are correlated, but which have no clusters.
# Held-out genes support the clusters, because correlated genes are structure, too. The split is
# not significant.

noise = make_noise(random_state=2, n_samples=36, n_features=200, noise_correlation=0.5)
without = AssociationHC().fit(noise.X)
tests = branch_significance(without, noise.X, n_simulations=20, random_state=0)
print("supported by held-out features:", without.supported_)
print("p-value of the first split:", round(float(tests.p_value[0]), 2))
