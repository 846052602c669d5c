"""What the estimators do beyond the paper: missing values, refine, evidence, robust, markers."""

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from mrshc import SHC, HighVarianceHC, MrSHC, UnsupportedClustersWarning, refine_features
from mrshc.core.trees import LINKAGES
from mrshc.datasets import make_noise, make_simulation_1, make_simulation_2
from mrshc.errors import UserError
from mrshc.metrics import classification_error_rate

EASY = make_simulation_1(0, mu=2.0)
SMALL = np.ascontiguousarray(EASY.X[:, 40:70])  # ten useful features, twenty others
NOISE = make_noise(0, n_samples=40, n_features=60).X
MODELS = {
    "MrSHC": lambda: quick(n_clusters=3),
    "SHC": lambda: SHC(10, n_clusters=3),
    "HighVarianceHC": lambda: HighVarianceHC(10, n_clusters=3),
}


def quick(n_features_to_select=10, **options):
    """A search small enough for a test."""
    options = {"max_rank": 2, "n_references": 10, "random_state": 0, **options}
    return MrSHC(n_features_to_select, **options)


def holes(X, share=0.1, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


# Missing values -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_missing_values_are_taken_and_hardly_matter(name):
    X = holes(EASY.X)
    model = MODELS[name]().set_params(n_features_to_select=50).fit(X)
    assert get_tags(model).input_tags.allow_nan
    assert classification_error_rate(EASY.labels, model.labels_) < 0.1
    np.testing.assert_array_equal(model.transform(X), X[:, model.get_support()])


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_missing_values_go_with_every_linkage(linkage):
    model = quick(linkage=linkage, n_clusters=3).fit(holes(SMALL, 0.2))
    assert is_valid_linkage(model.linkage_matrix_)
    assert is_valid_linkage(HighVarianceHC(10, linkage=linkage).fit(holes(SMALL)).linkage_matrix_)


def test_a_fifth_of_the_cells_missing_costs_little():
    errors = []
    for seed in range(3):
        data = make_simulation_1(seed, mu=1.3)
        for X in (data.X, holes(data.X, 0.2, seed)):
            labels = quick(50, rank=1, n_clusters=3).fit(X).cut(3)
            errors.append(classification_error_rate(data.labels, labels))
    assert np.mean(errors[1::2]) < np.mean(errors[::2]) + 0.1


@pytest.mark.parametrize("name", MODELS)
def test_a_feature_or_sample_of_which_nothing_is_known_is_named(name):
    X = pd.DataFrame(SMALL.copy(), columns=[f"gene {j}" for j in range(30)])
    X.iloc[:, 7] = np.nan
    with pytest.raises(ValueError, match="feature 'gene 7' of X has none"):
        MODELS[name]().fit(X)
    X = SMALL.copy()
    X[5] = np.nan
    with pytest.raises(ValueError, match="sample 5 of X has none"):
        MODELS[name]().fit(X)


def test_distances_of_the_tree_are_those_between_samples():
    X = holes(SMALL)
    for model in (quick(n_clusters=3), HighVarianceHC(10), SHC(10), SHC(10, refine=True)):
        distances = model.fit(X).sample_distances(X)
        heights = model.linkage_matrix_[:, 2]
        assert heights[-1] == pytest.approx(distances.max())
        assert heights[0] == pytest.approx(distances[np.triu_indices(60, 1)].min())


@pytest.mark.parametrize("name", MODELS)
def test_distances_need_a_fit_and_its_data(name):
    with pytest.raises(NotFittedError):
        MODELS[name]().sample_distances(SMALL)
    model = MODELS[name]().fit(SMALL)
    with pytest.raises(ValueError, match="data of the fit, with 60 samples, got 10"):
        model.sample_distances(SMALL[:10])


# Refine -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "rank"), [(make_simulation_1, 1), (make_simulation_2, 2)])
def test_refining_finds_the_features_and_the_clusters(make, rank):
    data = make(1, mu=1.3)
    model = quick(20, rank=rank, refine=True, linkage="ward").fit(data.X)
    assert model.supported_
    assert data.support[model.associated_features_].sum() >= 45
    assert data.support[model.associated_features_].mean() > 0.85
    np.testing.assert_array_equal(model.get_support(indices=True), model.associated_features_)
    np.testing.assert_array_equal(
        np.flatnonzero(model.feature_qvalues_ <= 0.05), model.associated_features_
    )
    assert model.n_features_selected_ == model.associated_features_.size
    assert classification_error_rate(data.labels, model.labels_) < 0.1
    assert model.search_results_["n_features"].tolist() == [20]


# A warning is an error in these tests: the number of clusters of a refined tree is not tested.
@pytest.mark.parametrize("selection", ["silhouette", "evidence"])
@pytest.mark.parametrize("k", [2, 3, 4, 12])
def test_a_refined_tree_is_cut_into_the_number_of_clusters_that_is_given(selection, k):
    model = quick(20, rank=1, refine=True, n_clusters=k, selection=selection).fit(EASY.X)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == k
    np.testing.assert_array_equal(model.labels_, model.cut(k))


@pytest.mark.parametrize("selection", ["silhouette", "evidence", "association"])
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("robust", [False, True])
def test_a_given_number_of_clusters_is_obtained(selection, refine, robust):
    X = NOISE.copy()
    if robust:
        X[0] *= 30.0  # an outlying sample must not be counted as a cluster
    model = quick(20, rank=1, n_clusters=4, selection=selection, refine=refine, robust=robust)
    with pytest.warns(UnsupportedClustersWarning, match="labels_ has all 4") as caught:
        model.fit(X)
    assert len([w for w in caught if w.category is UnsupportedClustersWarning]) == 1
    assert model.n_clusters_ == len(np.unique(model.labels_)) == 4
    if robust:
        assert model.outlier_samples_.tolist() == [0]
        assert np.bincount(model.labels_)[model.labels_[0]] > 1


def test_a_refined_tree_is_not_pruned_but_cut_at_its_largest_drop_ratio():
    model = quick(20, rank=1, linkage="ward", refine=True).fit(EASY.X)
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.labels_, model.cut(3))
    assert all(len(column) == 0 for column in model.split_tests_.values())
    # In squared Euclidean distances, a split of Ward's tree at height h reduces the sum of squares
    # within clusters by h^2 / 2.
    drops = model.distances_[::-1] ** 2
    assert (drops[:9] / drops[1:10]).argmax() + 2 == 3


def test_a_refined_set_has_the_features_with_the_largest_differences():
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.5, 2.0, size=700)
    X = (rng.normal(size=(60, 700)) + 5.0 * (np.arange(60) < 30)[:, None]) * scales
    model = quick(20, rank=1, refine=True).fit(X)
    assert (model.n_features_selected_, model.associated_features_.size) == (500, 700)
    # All features differ between the clusters, and those with large scales differ most.
    assert scales[model.get_support()].min() > np.quantile(scales, 0.1)
    assert scales[model.get_support()].mean() > scales[~model.get_support()].mean()


def test_refining_tells_noise_from_structure():
    model = quick(20, refine=True)
    with pytest.warns(
        UnsupportedClustersWarning, match=r"not supported by held-out features.*cut\("
    ) as caught:
        model.fit(NOISE)
    assert caught[0].filename == __file__
    assert not model.supported_
    assert model.associated_features_.size == 0
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.labels_, 0)
    assert model.n_features_selected_ == 20
    assert model.feature_qvalues_.shape == (60,)
    assert np.sum(model.feature_qvalues_ <= 0.05) < 5


def test_shc_refines_too():
    data = make_simulation_1(1, mu=1.3)
    plain = SHC(20, n_clusters=3, linkage="ward").fit(data.X)
    model = SHC(20, n_clusters=3, linkage="ward", refine=True).fit(data.X)
    np.testing.assert_array_equal(model.feature_weights_, plain.feature_weights_)
    assert data.support[model.associated_features_].sum() >= 45
    np.testing.assert_array_equal(model.get_support(indices=True), model.associated_features_)
    assert classification_error_rate(data.labels, model.labels_) < 0.1
    heights = model.linkage_matrix_[:, 2]
    distances = model.sample_distances(data.X)
    assert heights[0] == pytest.approx(np.sqrt(distances[np.triu_indices(60, 1)].min()))


def test_shc_refined_in_noise_says_so_to_its_caller():
    model = SHC(20, n_clusters=3, refine=True)
    message = r"not supported by held-out features.*labels_ has all 3 clusters asked for\."
    with pytest.warns(UnsupportedClustersWarning, match=message) as caught:
        model.fit(NOISE)
    assert caught[0].filename == __file__
    assert not model.supported_
    np.testing.assert_array_equal(model.labels_, model.cut(3))
    for n_clusters in (None, 1):
        with pytest.warns(UnsupportedClustersWarning, match="not supported by held-out") as caught:
            model.set_params(n_clusters=n_clusters).fit(NOISE)
        assert "labels_" not in str(caught[0].message)
        assert hasattr(model, "labels_") is (n_clusters == 1)


@pytest.mark.parametrize("make", [lambda: quick(20, rank=1), lambda: SHC(20, n_clusters=3)])
def test_a_fit_forgets_what_an_earlier_one_refined(make):
    model = make().set_params(refine=True).fit(EASY.X)
    assert model.supported_
    model.set_params(refine=False).fit(EASY.X)
    for name in ("supported_", "associated_features_", "feature_qvalues_"):
        assert not hasattr(model, name)
    np.testing.assert_array_equal(model.labels_, make().fit(EASY.X).labels_)
    assert model.n_features_selected_ == 20


# Evidence -----------------------------------------------------------------------------------


def evidence(n_features_to_select=(5, 10, 20), **options):
    return quick(n_features_to_select, selection="evidence", max_rank=3, **options)


def test_evidence_chooses_the_rank_by_its_mean_then_the_number_of_features():
    for seed in range(3):
        X = make_simulation_2(seed, mu=1.5).X[:, 10:90]
        model = evidence().fit(X)
        results = model.search_results_
        means = {r: results["evidence"][results["rank"] == r].mean() for r in (1, 2, 3)}
        best = max(means, key=means.get)
        within = np.where(results["rank"] == best, results["evidence"], -np.inf)
        np.testing.assert_array_equal(np.flatnonzero(results["chosen"]), [within.argmax()])
        np.testing.assert_array_equal(results["best_rank"], results["rank"] == best)
        assert model.rank_ == best
        assert not results["screened_out"].any()
        assert model.split_tests_["node"].size == 0
        np.testing.assert_array_equal(model.labels_, model.cut(model.n_clusters_))


def test_evidence_finds_clusters_that_show_in_many_features():
    data = make_simulation_1(0, mu=2.0)
    model = evidence(20, linkage="ward").fit(data.X)
    assert model.n_clusters_ > 1
    assert classification_error_rate(data.labels, model.cut(3)) < 0.05


def test_evidence_claims_no_clusters_in_noise():
    for seed in range(5):
        model = evidence()
        with pytest.warns(UnsupportedClustersWarning, match="support no clusters") as caught:
            model.fit(make_noise(seed, n_samples=40, n_features=200).X)
        assert caught[0].filename == __file__
        assert model.n_clusters_ == 1
        np.testing.assert_array_equal(model.labels_, 0)


@pytest.mark.parametrize("k", [2, 5, 12])
def test_evidence_takes_the_number_of_clusters_that_is_given(k):
    model = evidence(n_clusters=k).fit(SMALL)
    assert model.n_clusters_ == len(np.unique(model.labels_)) == k
    np.testing.assert_array_equal(model.labels_, model.cut(k))


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_evidence_chooses_among_ranks_that_were_tried(q):
    model = evidence(q).fit(SMALL)
    assert model.search_results_["rank"].tolist() == list(range(1, q + 1))


@pytest.mark.parametrize(("n", "p"), [(3, 4), (4, 3), (6, 5), (12, 3)])
@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_evidence_and_the_rest_take_small_tables(n, p):
    X = np.random.default_rng(n).normal(size=(n, p))
    model = MrSHC(selection="evidence", refine=True, robust=True, random_state=0).fit(X)
    assert is_valid_linkage(model.linkage_matrix_)


@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_evidence_is_zero_where_no_feature_is_left_to_ask():
    X = np.hstack([SMALL, np.ones((60, 3))])
    for q in (30, 33):
        assert evidence(q, rank=1).fit(X).search_results_["evidence"].tolist() == [0.0]


def test_evidence_in_float32_is_that_in_float64():
    X = SMALL.astype(np.float32)
    narrow, wide = (evidence().fit(table).search_results_ for table in (X, X.astype(float)))
    np.testing.assert_allclose(narrow["evidence"], wide["evidence"], rtol=1e-9)


def test_fewer_clusters_than_asked_for_are_counted_right_in_the_warning():
    data = make_simulation_1(0, mu=2.0)
    model = quick((10, 20), n_clusters=6)
    with pytest.warns(UnsupportedClustersWarning) as caught:
        model.fit(data.X)
    tests = model.split_tests_
    n_supported = int(np.sum(tests["split"] & tests["supported"])) + 1
    assert 1 < n_supported < model.n_clusters_ == 6
    assert f"finds only {n_supported} of the 6 clusters" in str(caught[0].message)


def test_a_search_by_evidence_goes_on_from_its_file(tmp_path):
    path = tmp_path / "steps"
    options = {"refine": True, "robust": True}
    undisturbed = evidence(**options).fit(SMALL)
    evidence(checkpoint=path, **options).fit(SMALL)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for kept in (1, len(lines) // 2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]))
        again = evidence(checkpoint=path, **options).fit(SMALL)
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())
        np.testing.assert_array_equal(again.linkage_matrix_, undisturbed.linkage_matrix_)
        for name, column in undisturbed.search_results_.items():
            np.testing.assert_array_equal(again.search_results_[name], column)
    with pytest.raises(UserError, match="Remove it to begin anew"):
        quick((5, 10, 20), max_rank=3, checkpoint=path, **options).fit(SMALL)


# Robust -------------------------------------------------------------------------------------


def with_failed_array(at=5, *, mu=1.5, **options):
    X = make_simulation_1(0, mu=mu, **options).X.copy()
    X[at] = 8 * np.random.default_rng(at).normal(size=500)
    return X


@pytest.mark.parametrize("refine", [False, True])
def test_an_outlying_sample_changes_nothing_for_the_others(refine):
    X = with_failed_array()
    options = {"rank": 1, "robust": True, "refine": refine}
    model = quick(30, **options).fit(X)
    alone = quick(30, **options).fit(np.delete(X, 5, axis=0))
    np.testing.assert_array_equal(model.outlier_samples_, [5])
    assert alone.outlier_samples_.size == 0
    np.testing.assert_array_equal(model.get_support(), alone.get_support())
    np.testing.assert_array_equal(model.components_, alone.components_)
    assert same_partition(np.delete(model.labels_, 5), alone.labels_)
    for name, column in alone.search_results_.items():
        np.testing.assert_array_equal(column, model.search_results_[name])
    np.testing.assert_array_equal(alone.split_tests_["drop"], model.split_tests_["drop"])
    np.testing.assert_array_equal(alone.split_tests_["n_samples"], model.split_tests_["n_samples"])
    assert is_valid_linkage(model.linkage_matrix_)
    assert is_monotonic(model.linkage_matrix_)
    assert model.n_leaves_ == 60


@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_without_robust_the_outlying_sample_is_a_cluster():
    X = with_failed_array()
    assert np.bincount(quick(30, rank=1, n_clusters=2).fit(X).cut(2)).min() == 1
    robust = quick(30, rank=1, n_clusters=3, robust=True).fit(X)
    assert np.bincount(robust.labels_).min() > 10


def test_distances_of_a_robust_fit_are_those_of_its_tree():
    """Of the samples that are not outlying: their tree was built without the outlying ones."""
    X = with_failed_array(mu=1.0, noise="t3")
    model = quick(50, rank=1, robust=True).fit(X)
    alone = quick(50, rank=1, robust=True).fit(np.delete(X, 5, axis=0))
    distances = np.delete(np.delete(model.sample_distances(X), 5, axis=0), 5, axis=1)
    expected = alone.sample_distances(np.delete(X, 5, axis=0))
    np.testing.assert_allclose(distances, expected, rtol=1e-9)


def test_a_robust_fit_takes_missing_values_and_heavy_tails():
    data = make_simulation_1(1, mu=1.5, noise="t3")
    model = quick(30, rank=1, robust=True, n_clusters=3).fit(holes(data.X))
    assert classification_error_rate(data.labels, model.cut(3)) < 0.15


def test_outliers_of_an_earlier_fit_are_forgotten():
    model = quick(30, rank=1, robust=True).fit(with_failed_array())
    assert model.outlier_samples_.size == 1
    assert model.set_params(robust=False, n_clusters=2).fit(EASY.X) is model
    assert not hasattr(model, "outlier_samples_")


@pytest.mark.parametrize("linkage", LINKAGES)
def test_robust_goes_with_every_linkage(linkage):
    model = quick(30, rank=1, robust=True, linkage=linkage, n_clusters=2).fit(with_failed_array())
    np.testing.assert_array_equal(model.outlier_samples_, [5])
    assert is_valid_linkage(model.linkage_matrix_)
    assert np.bincount(model.labels_).min() > 1 or model.n_clusters_ == 1


# The same answer ----------------------------------------------------------------------------

VARIANTS = [
    {"refine": True},
    {"selection": "evidence"},
    {"robust": True},
    {"refine": True, "robust": True, "selection": "evidence"},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: " ".join(v))
def test_workers_layout_and_precision_do_not_matter(variant):
    X = holes(SMALL, 0.05).astype(np.float32)
    model = quick([5, 10], **variant)
    plain = clone(model).fit(X)
    for other in (
        clone(model).set_params(n_jobs=2).fit(X),
        clone(model).fit(np.asfortranarray(X)),
        clone(model).fit(X.astype(float)),
    ):
        np.testing.assert_array_equal(plain.get_support(), other.get_support())
        np.testing.assert_array_equal(plain.labels_, other.labels_)
        np.testing.assert_allclose(plain.linkage_matrix_, other.linkage_matrix_, rtol=1e-5)


def test_new_parameters_are_parameters():
    model = MrSHC(selection="evidence", refine=True, robust=True)
    assert clone(model).get_params() == model.get_params()
    defaults = MrSHC().get_params()
    assert (defaults["selection"], defaults["refine"], defaults["robust"]) == (
        "silhouette",
        False,
        False,
    )
    assert SHC().get_params()["refine"] is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"selection": "gap"},
            "selection must be one of 'silhouette', 'association', 'evidence', got",
        ),
        ({"refine": 1}, "refine must be one of False, True, got 1"),
        ({"refine": "yes"}, "refine must be one of"),
        ({"robust": None}, "robust must be one of False, True, got None"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(SMALL)
    if "refine" in options:
        with pytest.raises(ValueError, match=message):
            SHC(5, **options).fit(SMALL)


# Markers ------------------------------------------------------------------------------------

COLUMNS = {
    "contrast": "O",
    "node": "i",
    "inside": "O",
    "outside": "O",
    "n_inside": "i",
    "n_outside": "i",
    "feature": "i",
    "selected": "b",
    "mean_inside": "f",
    "mean_outside": "f",
    "effect_size": "f",
    "p_value": "f",
    "q_value": "f",
    "direction": "O",
}


@pytest.mark.parametrize("name", MODELS)
def test_every_cluster_and_every_split_has_its_markers(name):
    model = MODELS[name]().fit(SMALL)
    labels = model.labels_
    k = len(np.unique(labels))
    table = model.markers(SMALL, alpha=1.0)
    assert list(table.columns) == list(COLUMNS)
    kinds = [table[c].dtype.kind for c in COLUMNS]
    assert ["O" if kind in "OTU" else kind for kind in kinds] == list(COLUMNS.values())
    assert len(table) == 30 * (2 * k - 1)
    clusters = table[table.contrast == "cluster"].drop_duplicates("node")
    assert clusters.inside.tolist() == [str(c) for c in range(k)]
    for row in clusters.itertuples():
        members = np.flatnonzero(labels == int(row.inside))
        assert (row.n_inside, row.n_outside) == (members.size, 60 - members.size)
        x = SMALL[:, row.feature]
        assert row.mean_inside == pytest.approx(x[members].mean())
        assert row.mean_outside == pytest.approx(np.delete(x, members).mean())
    splits = table[table.contrast == "split"].drop_duplicates("node")
    assert splits.node.tolist() == sorted(splits.node, reverse=True)
    assert splits.node.iloc[0] == 2 * 60 - 2
    for row in splits.itertuples():
        inside, outside = (set(side.split(", ")) for side in (row.inside, row.outside))
        assert not inside & outside
        assert row.n_inside == np.isin(labels, [int(c) for c in inside]).sum()
    for _, block in table.groupby(["contrast", "node"]):
        assert np.all(np.diff(np.abs(block.effect_size)) <= 0)
        assert sorted(block.feature) == list(range(30))
        np.testing.assert_array_equal(block.selected, model.get_support()[block.feature])
    few = model.markers(SMALL, alpha=0.01)
    assert few.q_value.max() <= 0.01
    expected = table[table.q_value <= 0.01].reset_index(drop=True)
    pd.testing.assert_frame_equal(few, expected)


def test_useful_features_mark_the_clusters_and_others_do_not():
    for model in (quick(50, rank=1), HighVarianceHC(500, n_clusters=3, linkage="ward")):
        table = model.fit(EASY.X).markers(EASY.X)
        found = table.groupby("contrast").feature.unique()
        assert np.isin(np.arange(50), found["split"]).mean() > 0.9
        assert np.mean(found["split"] >= 50) < 0.2


def test_chance_clusters_of_noise_have_few_markers():
    flagged = []
    for seed in range(8):
        X = make_noise(seed, n_features=200).X
        model = HighVarianceHC(40, n_clusters=3).fit(X)
        table = model.markers(X)
        flagged.append(table.selected.sum())
    assert np.mean(np.array(flagged) > 0) <= 0.25


def test_markers_of_another_cut_need_no_clusters_of_the_fit():
    model = HighVarianceHC(10).fit(SMALL)
    with pytest.raises(ValueError, match="markers needs clusters"):
        model.markers(SMALL)
    table = model.markers(SMALL, k=4, alpha=1.0)
    assert set(table[table.contrast == "cluster"].inside) == set("0123")
    with pytest.raises(ValueError, match="k must be a whole number"):
        model.markers(SMALL, k=0)
    with pytest.raises(ValueError, match="alpha must be a number in"):
        model.markers(SMALL, k=2, alpha=2.0)
    with pytest.raises(ValueError, match="with 60 samples, got 59"):
        model.markers(SMALL[1:], k=2)
    with pytest.raises(NotFittedError):
        HighVarianceHC(10).markers(SMALL)


def test_a_single_cluster_has_no_markers_but_the_columns():
    model = HighVarianceHC(10, n_clusters=1).fit(SMALL)
    table = model.markers(SMALL)
    assert len(table) == 0
    assert list(table.columns) == list(COLUMNS)
    pd.testing.assert_series_equal(table.dtypes, model.markers(SMALL, k=2, alpha=1.0).dtypes)


def test_names_of_features_come_with_their_markers():
    frame = pd.DataFrame(SMALL, columns=[f"gene {j}" for j in range(30)])
    model = HighVarianceHC(10, n_clusters=3, linkage="ward")
    plain = model.fit(SMALL).markers(SMALL)
    expected = plain.assign(feature=[f"gene {j}" for j in plain.feature])
    pd.testing.assert_frame_equal(model.fit(frame).markers(frame), expected)
    # Entrez identifiers are numbers, which scikit-learn does not store.
    numbers = frame.set_axis(np.arange(100, 130), axis=1)
    found = model.fit(numbers).markers(numbers)
    assert found.feature.tolist() == (plain.feature + 100).tolist()
    empty = model.set_params(n_clusters=1).fit(frame).markers(frame)
    pd.testing.assert_series_equal(empty.dtypes, expected.dtypes)


def test_the_direction_of_a_marker_is_the_sign_of_its_difference():
    table = HighVarianceHC(10, n_clusters=3).fit(SMALL).markers(SMALL, alpha=1.0)
    assert set(table.direction) == {"up", "down"}
    np.testing.assert_array_equal(table.direction == "up", table.effect_size > 0)
    X = np.column_stack([SMALL, np.zeros(60)])
    constant = HighVarianceHC(10, n_clusters=3).fit(X).markers(X, alpha=1.0).query("feature == 30")
    assert set(constant.direction) == {"none"}


def test_every_sample_may_be_a_cluster_of_its_own():
    table = HighVarianceHC(10, n_clusters=60).fit(SMALL).markers(SMALL, alpha=1.0)
    assert len(table) == 30 * (60 + 59)
    assert np.isfinite(table.q_value).all()
    pairs = table[(table.n_inside == 1) & (table.n_outside == 1)]
    assert np.all(pairs[~pairs.selected].p_value == 1.0)
    assert pairs.effect_size.isna().all()


def test_outlying_samples_take_no_part_in_markers():
    X = with_failed_array()
    model = quick(30, rank=1, robust=True, n_clusters=3).fit(X)
    alone = quick(30, rank=1, robust=True, n_clusters=3).fit(np.delete(X, 5, axis=0))
    table, expected = model.markers(X), alone.markers(np.delete(X, 5, axis=0))
    for kind in ("cluster", "split"):  # which may be numbered otherwise
        some, others = (t[t.contrast == kind].sort_values("q_value") for t in (table, expected))
        np.testing.assert_array_equal(some.q_value, others.q_value)
        assert sorted(some.feature) == sorted(others.feature)
        assert sorted(some.n_inside + some.n_outside) == sorted(others.n_inside + others.n_outside)
    deeper = model.markers(X, k=6, alpha=1.0)
    assert len(deeper) % 500 == 0
    assert (deeper[["n_inside", "n_outside"]] > 0).all(axis=None)


def test_markers_of_missing_values_are_those_of_what_was_seen():
    X = holes(SMALL)
    for model in (quick(n_clusters=3), SHC(10, n_clusters=3), SHC(10, n_clusters=3, refine=True)):
        table = model.fit(X).markers(X, alpha=1.0)
        first = table.iloc[0]
        inside = model.labels_ == int(first.inside)
        assert first.mean_inside == pytest.approx(np.nanmean(X[inside, first.feature]))
        assert np.isfinite(table[["p_value", "q_value"]].to_numpy()).all()


def test_any_start_set_can_be_refined():
    data = make_simulation_1(1)
    start = HighVarianceHC(30).fit(data.X).get_support()
    by_mask, by_index = (
        refine_features(data.X, start),
        refine_features(data.X, np.flatnonzero(start)),
    )
    np.testing.assert_array_equal(by_mask.associated, by_index.associated)
    assert by_mask.supported
    assert data.support[by_mask.associated].sum() >= 48
    few = refine_features(data.X, range(10), max_features=20)
    assert few.features.size == 20
    assert few.associated.size > 40
    model = MrSHC(20, rank=1, refine=True, random_state=0).fit(data.X)
    chosen = np.any(model.components_ != 0, axis=0)
    np.testing.assert_array_equal(
        refine_features(data.X, chosen).associated, model.associated_features_
    )


@pytest.mark.parametrize(
    "start", [[], [-1, 2], [500], [0.5], np.zeros(500, bool), np.ones(499, bool), "abc", 3]
)
def test_a_start_set_must_be_columns(start):
    with pytest.raises(ValueError, match="start must hold columns of X, from 0 to 499"):
        refine_features(make_simulation_1(1).X, start)
