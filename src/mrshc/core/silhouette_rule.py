"""Choice of the rank, of the number of features and of K by silhouettes (Algorithms 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# K is found from the trees of the three smallest ranks.
_N_RANKS_FOR_K = 3


def ranks_for_k(ranks: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks whose trees are pruned without a limit while K is unknown."""
    return tuple(ranks[:_N_RANKS_FOR_K])


def reference_k(targets: Sequence[int], leaf_counts: dict[tuple[int, int], int]) -> int:
    """Return the number of clusters at which all candidates are compared.

    For each q, the largest number of leaves among its trees is taken; K is the second largest of
    these numbers, so that at least two q reach it, and never less than 2. The paper defines K for
    a single q.
    """
    largest = sorted(
        max(n for (q, _), n in leaf_counts.items() if q == target) for target in targets
    )
    return max(2, largest[-2 if len(largest) > 1 else -1])


def choose(table: dict[str, np.ndarray]) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the row of the chosen candidate, and masks of the best ranks and of removed rows.

    Candidates with fewer than K clusters are screened out. Algorithm 3 chooses the rank for each q,
    and Algorithm 4 the q. If nothing is left, the candidate with the most clusters is chosen, and
    among these the one with the largest silhouette.
    """
    silhouettes, targets = table["silhouette"], table["n_features_target"]
    best_rank, removed = np.zeros((2, silhouettes.size), dtype=bool)
    rows = np.flatnonzero(~table["screened_out"])
    if not rows.size:
        order = np.lexsort((-silhouettes, -table["n_leaves"]))
        return int(order[0]), best_rank, removed
    best = []
    for q in np.unique(targets[rows]):
        of_q = rows[targets[rows] == q]
        position, dropped = iterative_choice(silhouettes[of_q].tolist())
        removed[of_q[dropped]] = True
        best.append(int(of_q[position]))
    best_rank[best] = True
    position, dropped = iterative_choice(silhouettes[best].tolist())
    removed[np.array(best)[dropped]] = True
    return best[position], best_rank, removed


def iterative_choice(silhouettes: Sequence[float]) -> tuple[int, list[int]]:
    """Return the position that Algorithm 3 (over ranks) or 4 (over q) chooses, and those removed.

    If the silhouettes never rise, the first is chosen; if they never fall, the one after the
    largest rise. Otherwise the last local minimum is removed, and so on. End points count as
    local minima, or a single peak would never become monotone.
    """
    left, removed = list(range(len(silhouettes))), list[int]()
    while True:
        rises = np.diff([silhouettes[i] for i in left])
        if (rises <= 0).all():
            return left[0], removed
        if (rises >= 0).all():
            return left[int(rises.argmax()) + 1], removed
        is_minimum = np.append(True, rises <= 0) & np.append(rises >= 0, True)
        removed.append(left.pop(int(np.flatnonzero(is_minimum)[-1])))
