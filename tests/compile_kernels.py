"""Compile all loops and store them, before several processes of pytest need them at once."""

import warnings

from mrshc import COSA, SHC, AssociationHC, MrSHC, SparseKMeans
from mrshc.datasets import make_simulation_1

warnings.simplefilter("ignore")  # the methods find different clusters
X = make_simulation_1(0).X[:, :60]
for model in (
    *(AssociationHC(), MrSHC(5, max_rank=2), SHC(5, metric="cityblock"), COSA()),
    SparseKMeans(2, n_features_to_select=5),
):
    model.fit(X)
