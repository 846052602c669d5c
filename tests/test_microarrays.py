"""The paper's microarray data, where they are at hand: they belong to others, who publish them."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import rand_score
from studies.microarray import errors_in_dendrogram

from mrshc import AssociationHC, HighVarianceHC, MrSHC
from mrshc.metrics import adjusted_rand_index, purity

# The trees are looked at here, not the number of clusters that pruning leaves.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning"),
]

# Claims about missing values and outlying samples do not depend on the number of candidates.
FEW_CANDIDATES = {"n_features_to_select": [20, 50, 100, 200], "max_rank": 3, "random_state": 0}

DATA = Path(os.environ.get("MRSHC_DATA", Path(__file__).parents[2] / "shared" / "data"))


def load(name):
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs the data set {path.name}; set MRSHC_DATA to the folder that has it")
    with np.load(path, allow_pickle=False) as content:
        return {key: content[key] for key in content.files}


def test_lymphoma_trees_are_those_of_the_paper():
    data = load("lymphoma")
    X, y = data["X"], data["y"]
    chosen_by_the_paper = MrSHC(140, rank=2, n_clusters=3, random_state=0).fit(X)
    assert errors_in_dendrogram(chosen_by_the_paper, y) == (4, 2, True)
    assert errors_in_dendrogram(HighVarianceHC(X.shape[1]).fit(X), y) == (5, 2, True)
    for mixed in (MrSHC(140, rank=1, n_clusters=3, random_state=0), HighVarianceHC(140)):
        assert not errors_in_dendrogram(mixed.fit(X), y)[2]


def test_van_t_veer_trees_are_those_of_the_paper():
    data = load("vantveer")
    kept = data["sample_names"] != "X54"  # a failed array, not among the paper's 77 samples
    X, y = data["X"][kept], data["y"][kept]
    assert errors_in_dendrogram(HighVarianceHC(X.shape[1]).fit(X), y) == (2, 6, True)
    k, errors, shown = errors_in_dendrogram(MrSHC(100, rank=2, random_state=0).fit(X), y)
    assert (k, shown) == (2, True)
    assert errors <= 6


def test_the_few_missing_cells_of_van_t_veer_change_nothing():
    complete, gappy = load("vantveer")["X"], load("vantveer_na")["X"]
    assert np.isnan(gappy).sum() == 135
    ours = MrSHC(**FEW_CANDIDATES).fit(gappy)
    theirs = MrSHC(**FEW_CANDIDATES).fit(complete)
    assert (ours.n_features_selected_, ours.rank_) == (theirs.n_features_selected_, theirs.rank_)
    n_moved = round(len(complete) * (1 - purity(theirs.labels_, ours.labels_)))
    assert ours.n_clusters_ == theirs.n_clusters_
    assert n_moved <= 1


def test_a_failed_array_is_flagged_and_changes_nothing_for_the_others():
    data = load("vantveer")
    failed = data["sample_names"] == "X54"
    model = MrSHC(**FEW_CANDIDATES, robust=True)
    with_it, without = clone(model).fit(data["X"]), model.fit(data["X"][~failed])
    assert data["sample_names"][with_it.outlier_samples_].tolist() == ["X54"]
    assert without.outlier_samples_.size == 0
    assert rand_score(with_it.labels_[~failed], without.labels_) == 1
    np.testing.assert_array_equal(with_it.get_support(), without.get_support())


def test_association_uses_the_500_strongest_of_thousands_of_genes():
    data = load("lymphoma")
    model = AssociationHC().fit(data["X"])
    assert model.supported_
    assert model.associated_features_.size > 2000
    assert model.n_features_selected_ == 500
    assert adjusted_rand_index(data["y"], model.cut(3)) > 0.9


def test_a_failed_array_does_not_change_the_features_of_association():
    data = load("vantveer")
    failed = data["sample_names"] == "X54"
    model = AssociationHC(robust=True)
    with_it = model.fit(data["X"]).get_support()
    assert data["sample_names"][model.outlier_samples_].tolist() == ["X54"]
    np.testing.assert_array_equal(model.fit(data["X"][~failed]).get_support(), with_it)


def pairs_of_siblings(model, tumours):
    """Count tumours whose two samples, before and after treatment, merge with each other first."""
    n = len(tumours)
    both = (pair for pair in model.children_ if pair.max() < n)
    return sum(tumours[a] == tumours[b] for a, b in both)


@pytest.mark.parametrize("linkage", ["complete", "average", "ward"])
def test_samples_of_one_tumour_are_siblings_in_spite_of_missing_values(linkage):
    data = load("perou47")
    assert np.isnan(data["X"]).sum() == 4247
    model = AssociationHC(linkage=linkage).fit(data["X"])
    assert pairs_of_siblings(model, data["tumor"]) >= 15  # of 20
