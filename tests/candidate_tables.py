"""Tables of candidates, as a search returns them, for tests of the selection rules."""

import numpy as np


def make_table(n_features_target, rank, *, chosen=0, **columns):
    """Return a table of candidates; columns that are not given have the same value in each row.

    `chosen` is the row of the chosen candidate. The numbers of features are the wanted ones.
    """
    n = len(rank)
    table = {
        "n_features_target": np.array(n_features_target),
        "n_features": np.array(n_features_target),
        "rank": np.array(rank),
        "n_leaves": np.full(n, 2),
        "silhouette": np.zeros(n),
        "screened_out": np.zeros(n, dtype=bool),
        "best_rank": np.zeros(n, dtype=bool),
        "removed": np.zeros(n, dtype=bool),
        "chosen": np.arange(n) == chosen,
    }
    return table | {name: np.array(values) for name, values in columns.items()}
