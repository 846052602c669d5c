"""Significance and stability that follow a fit are those of the library, and are stored."""

import numpy as np
import pandas as pd
import pytest

from mrshc import HighVarianceHC, MrSHC, branch_significance, stability
from mrshc.app import ConfidenceSettings, fit, make_plan
from mrshc.app.output_folder import write_outputs
from mrshc.core.trees import Tree
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import Table, load_result
from mrshc.io.result import write_result

DATA = make_simulation_1(4, mu=2.0, sizes=(12, 11, 10))
X = DATA.X[:, :60]
SETTINGS = {"n_simulations": 10, "n_resamples": 5, "random_state": 3}


def table(values=X, **annotations):
    samples = np.array([f"s{i}" for i in range(len(values))], dtype=object)
    features = np.array([f"g{j}" for j in range(values.shape[1])], dtype=object)
    return Table(
        X=values,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(annotations, index=samples),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )


def run(*, method="hmv", given=None, confidence=None, values=X, **annotations):
    parameters = {"n_features_to_select": 12} if given is None else given
    made = table(values, **annotations)
    return fit(make_plan(made, method=method, parameters=parameters, confidence=confidence))


@pytest.fixture(scope="module")
def both():
    """Return a result with significance and stability."""
    return run(confidence=ConfidenceSettings(significance=True, stability=True, **SETTINGS))


def test_tables_have_the_values_of_the_library(both):
    model = HighVarianceHC(12, n_clusters=both.n_clusters_).fit(X)
    stable = stability(model, X, n_resamples=5, random_state=3)
    tests = branch_significance(model, X, n_simulations=10, random_state=3)
    n = len(X)
    branches = both.branches.set_index("node")
    np.testing.assert_array_equal(both.branches["node"], np.arange(2 * n - 2, n - 1, -1))
    np.testing.assert_array_equal(branches["n_samples"][::-1], model.linkage_matrix_[:, 3])
    np.testing.assert_array_equal(branches["height"][::-1], model.linkage_matrix_[:, 2])
    np.testing.assert_array_equal(branches["support"][::-1], stable.branch_support)
    tested = branches.loc[n + tests.node]
    names = ("statistic", "p_value", "threshold", "significant", "agreement", "n_simulations")
    for name in (*names, "n_samples"):
        # Sums over a table with names run in another order.
        values = tested[name].to_numpy(dtype=float)
        np.testing.assert_allclose(values, getattr(tests, name), rtol=1e-9)
    assert branches.drop(n + tests.node)[list(names)].isna().all(axis=None)
    np.testing.assert_array_equal(both.consensus, stable.consensus)
    in_order = both.features.sort_values("position")
    np.testing.assert_array_equal(in_order["selection_frequency"], stable.feature_frequency)
    np.testing.assert_array_equal(both.samples["jaccard"], stable.cluster_jaccard[both.labels_])
    clusters = both.samples["significant_cluster"].fillna(0).to_numpy(dtype=int)
    np.testing.assert_array_equal(clusters, tests.labels + 1)
    assert both.significance == {
        "alpha": 0.05,
        "n_simulations": 10,
        "statistic": tests.statistic_name,
        "n_clusters": tests.labels.max() + 1,
    }
    assert both.stability == {
        "n_resamples": 5,
        "fraction": 0.8,
        "cluster_jaccard": stable.cluster_jaccard.tolist(),
    }


def test_an_ancestor_comes_before_its_descendants(both):
    n = len(X)
    position = {node: i for i, node in enumerate(both.branches["node"])}
    for row, merge in enumerate(both.linkage_matrix_):
        assert all(position[n + row] < position[c] for c in merge[:2] if c >= n)


@pytest.mark.parametrize(
    ("significance", "stable"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_a_saved_result_has_what_was_computed(significance, stable, tmp_path):
    settings = ConfidenceSettings(significance=significance, stability=stable, **SETTINGS)
    result = run(confidence=settings)
    write_result(result, tmp_path)
    assert (tmp_path / "branches.csv").exists() == (significance or stable)
    assert (tmp_path / "consensus.csv.gz").exists() == stable
    loaded = load_result(tmp_path)
    assert loaded.about == result.about
    for name in ("samples", "features"):
        pd.testing.assert_frame_equal(
            getattr(loaded, name), getattr(result, name), check_dtype=False, check_names=False
        )
    assert ("significant_cluster" in loaded.samples) == significance
    assert ("jaccard" in loaded.samples) == stable
    assert ("selection_frequency" in loaded.features) == stable
    assert ("selection_frequency" in (tmp_path / "selected.gct").read_text()) == stable
    if significance or stable:
        assert ("p_value" in loaded.branches) == significance
        assert ("support" in loaded.branches) == stable
        pd.testing.assert_frame_equal(loaded.branches, result.branches)
    else:
        assert loaded.branches is None
    if stable:
        np.testing.assert_array_equal(loaded.consensus, result.consensus)
    else:
        assert loaded.consensus is None


def test_samples_in_no_significant_cluster_have_no_number(tmp_path):
    # Three outlying samples form a branch of their own, which is too small to be tested.
    values = X.copy()
    values[:3, :20] += 60.0
    settings = ConfidenceSettings(significance=True, alpha=1.0, **SETTINGS)
    result = run(confidence=settings, values=values)
    assert result.samples["significant_cluster"].isna().tolist() == [True] * 3 + [False] * 30
    write_result(result, tmp_path)
    loaded = load_result(tmp_path).samples["significant_cluster"]
    pd.testing.assert_series_equal(loaded, result.samples["significant_cluster"])


def test_methods_without_clusters_are_resampled_with_the_chosen_number():
    settings = ConfidenceSettings(stability=True, **SETTINGS)
    auto = run(confidence=settings)
    given = {"n_features_to_select": 12, "n_clusters": auto.n_clusters_}
    fixed = run(given=given, confidence=settings)
    assert auto.about["parameters"]["n_clusters"] is None
    assert auto.stability == fixed.stability
    np.testing.assert_array_equal(auto.consensus, fixed.consensus)


def test_the_result_of_the_fit_is_not_changed(both):
    alone = run()
    assert alone.about["chosen"] == both.about["chosen"]
    np.testing.assert_array_equal(alone.labels_, both.labels_)
    assert alone.significance is None
    assert alone.stability is None


def test_annotations_never_have_the_titles_of_the_new_columns():
    result = run(jaccard=np.arange(33.0), significant_cluster=np.arange(33.0))
    assert list(result.sample_annotations) == ["jaccard.2", "significant_cluster.2"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"significance": True, "alpha": 1.5}, "alpha must be"),
        ({"significance": True, "n_simulations": 9}, "n_simulations must be"),
        ({"stability": True, "n_resamples": 1}, "n_resamples must be"),
        ({"stability": True, "n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_invalid_settings_are_refused_before_the_fit(settings, message):
    confidence = ConfidenceSettings(**settings)
    with pytest.raises(UserError, match=message):
        make_plan(table(), confidence=confidence)


def test_robust_fits_with_missing_values(tmp_path):
    values = X.copy()
    rng = np.random.default_rng(0)
    values[9] += rng.normal(scale=9, size=values.shape[1])
    values[rng.random(values.shape) < 0.05] = np.nan
    settings = ConfidenceSettings(significance=True, stability=True, **SETTINGS)
    given = {"n_features_to_select": 12, "rank": 1, "n_references": 5, "robust": True}
    result = run(method="mrshc", given=given, confidence=settings, values=values)
    model = MrSHC(12, rank=1, n_references=5, robust=True).fit(values)
    assert len(model.outlier_samples_)
    write_result(result, tmp_path)
    assert load_result(tmp_path).about == result.about


@pytest.mark.usefixtures("drawn")  # without pictures
def test_the_newick_file_has_the_supports(both, tmp_path):
    phylo = pytest.importorskip("Bio.Phylo")
    write_outputs(both, tmp_path)
    tree = phylo.read(tmp_path / "tree.nwk", "newick")
    read = {
        frozenset(leaf.name for leaf in clade.get_terminals()): clade.confidence
        for clade in tree.get_nonterminals()
    }
    nodes = Tree(linkage_matrix=both.linkage_matrix_)
    for node, support in zip(both.branches["node"], both.branches["support"], strict=True):
        confidence = read.pop(frozenset(f"s{i}" for i in nodes.members(node)))
        assert confidence == (None if np.isnan(support) else pytest.approx(support, abs=1e-4))
    assert not read


def test_an_absent_table_is_noticed(both, tmp_path):
    write_result(both, tmp_path)
    (tmp_path / "branches.csv").unlink()
    with pytest.raises(UserError, match=r"is not a complete result: branches\.csv is missing"):
        load_result(tmp_path)
