"""
Missing values and outliers
===========================

Missing values need no preparation. `robust=True` limits extreme values and sets outlying samples
apart.
"""

import pandas as pd

from mrshc import AssociationHC
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1, with_missing_cells, with_outlying_samples
from mrshc.metrics import classification_error_rate

# %%
# A tenth of the values is missing, and three samples are shifted in every gene.

clean = make_simulation_1(random_state=1, mu=1.5)
shifted = with_outlying_samples(clean, 0, share=0.05, shift=10.0, spread="every feature")
data = with_missing_cells(shifted, 0, share=0.1)
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)
print(f"{X.isna().mean().mean():.0%} missing; outlying: {list(X.index[list(data.outlying)])}")

# %%
# The outlying samples are detected, excluded from the fit, and attached to the tree afterwards.

model = AssociationHC(robust=True).fit(X)
print("detected:", list(X.index[model.outlier_samples_]))
usual = ~X.index.isin(X.index[model.outlier_samples_])
error = classification_error_rate(data.labels[usual], model.labels_[usual])
print(f"classification error rate of the other samples: {error:.3f}")

# %%
# Missing cells are grey, and outlying samples are marked.

groups = pd.DataFrame({"group": [f"group {label + 1}" for label in data.labels]}, index=X.index)
pl.heatmap(model, X, annotations=groups)
