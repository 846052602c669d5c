import re

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from mrshc import MrSHC
from mrshc.datasets import make_simulation_1
from mrshc.exports import newick

TOKEN = re.compile(r"'(?:[^']|'')*'|[(),;]|:[^,();]+|[^(),:;']+")


def read(text):
    """Read Newick with a stack: the sets of names below each node, and the depth of each leaf."""
    stack, clades, depths = [[]], [], {}
    for token in TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            inside = stack.pop()
            leaves = [leaf for child in inside for leaf in child]
            clades.append(frozenset(leaves))
            stack[-1].append(leaves)
        elif token.startswith(":"):
            for leaf in stack[-1][-1]:
                depths[leaf] = depths.get(leaf, 0.0) + float(token[1:])
        elif token not in ",;":
            name = token[1:-1].replace("''", "'") if token.startswith("'") else token
            stack[-1].append([name])
    assert len(stack) == len(stack[0]) == 1
    return clades, depths


def clades_of(Z, names):
    below = [frozenset([name]) for name in names]
    for left, right in Z[:, :2].astype(int):
        below.append(below[left] | below[right])
    return below[len(names) :]


@pytest.mark.parametrize("method", ["complete", "average", "centroid"])
def test_the_tree_is_the_same_and_leaves_lie_equally_deep(method):
    Z = linkage(np.random.default_rng(0).normal(size=(40, 3)), method)
    names = [f"s{i}" for i in range(40)]
    clades, depths = read(newick(Z, names))
    assert set(clades) == set(clades_of(Z, names))
    np.testing.assert_allclose([depths[name] for name in names], Z[-1, 2], rtol=1e-9)


def test_names_survive_whatever_they_hold():
    names = ["plain", "it's", "a b", "(x,y):1;", "under_score", "tab\there", "größe", "1e-5", ""]
    Z = linkage(np.arange(len(names), dtype=float)[:, None] ** 2, "single")
    _, depths = read(newick(Z, names))
    assert set(depths) == {name.replace("\t", " ") for name in names}


def test_deep_trees_do_not_exhaust_the_call_stack():
    n = 20_000
    Z = np.column_stack(
        [
            np.r_[0, n + np.arange(n - 2)],
            np.arange(1, n),
            np.arange(1.0, n),
            np.arange(2, n + 1),
        ]
    )
    text = newick(Z, range(n))
    assert text.count("(") == n - 1


def test_a_fitted_tree_can_be_exported():
    data = make_simulation_1(0, mu=2.0)
    model = MrSHC(20, rank=1, random_state=0).fit(data.X)
    clades, _ = read(newick(model.linkage_matrix_, data.sample_names))
    for label in range(model.n_clusters_):
        members = {n for n, k in zip(data.sample_names, model.labels_, strict=True) if k == label}
        assert frozenset(members) in clades


def test_names_must_fit_the_tree():
    with pytest.raises(ValueError, match=r"must have the shape \(2, 4\) for 3 names, got \(1, 4\)"):
        newick([[0, 1, 1.0, 2]], ["a", "b", "c"])
