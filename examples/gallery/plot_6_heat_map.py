"""
Heat map with annotations
=========================

A heat map of the selected genes with annotations of samples and genes, as a figure for a paper.
"""

import numpy as np
import pandas as pd

from mrshc import AssociationHC
from mrshc import plotting as pl
from mrshc.datasets import make_simulation_1

data = make_simulation_1(random_state=1, mu=2.0)
genes = [f"GENE{j + 1}" for j in range(data.X.shape[1])]
X = pd.DataFrame(data.X, index=data.sample_names, columns=genes)
model = AssociationHC().fit(X)

# %%
# Annotations are matched by the names of the samples, so their rows may be in any order.

rng = np.random.default_rng(0)
clinic = pd.DataFrame(
    {
        "diagnosis": [("A", "B", "C")[label] for label in data.labels],
        "age": rng.integers(30, 80, len(X)),
    },
    index=X.index,
).sample(frac=1, random_state=0)
chromosomes = pd.DataFrame({"chromosome": rng.choice(["1", "2", "X"], len(genes))}, index=genes)
pl.heatmap(model, X, annotations=clinic, feature_annotations=chromosomes)

# %%
# Other colours and limits. `pl.write_picture(figure, "figure1.pdf")` writes the figure to a file.

figure = pl.heatmap(
    model,
    X,
    annotations=clinic[["diagnosis"]],
    colours={"diagnosis": {"A": "gold", "B": "teal", "C": "crimson"}},
    palette=["black", "dimgrey", "darkgrey"],
    cmap="PuOr_r",
    limits=(-2, 2),
    size=(8, 6),
)
figure
