"""Studies of significance, stability and markers: rows, shares of draws and scores."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from mrshc.core.trees import Tree
from mrshc.study import StudyError, render_study, run_study
from mrshc.study.config import Folders, load_study
from mrshc.study.kinds import significance

DESIGNS = """
[[design]]
name = "clear"
make = "make_simulation_1"
mu = 3.0
sizes = [12, 12, 12]

[[design]]
name = "noise"
make = "make_noise"
n_features = 40
share = 0.5
"""
FILTER = """
[[method]]
name = "filter"
estimator = "HighVarianceHC"
n_features_to_select = 30
linkage = "ward"
"""
SIGNIFICANCE = (
    """
title = "x"
kind = "significance"
replicates = 4
seed = 1
n_simulations = 10
columns = ["first_split", "true_splits", "all_splits", "false_split"]
"""
    + DESIGNS
    + FILTER
)


def write(folder, text, name="x"):
    (folder / f"{name}.toml").write_text(text)
    return name


def results(folder, text, **options):
    import pandas as pd

    path = run_study(write(folder, text), folder=folder, out=folder / "out", **options)
    return pd.read_csv(path)


def test_significant_splits_are_compared_with_the_true_groups(tmp_path):
    table = results(tmp_path, SIGNIFICANCE)
    counts = table["design"].value_counts()
    assert counts["clear"] == 4
    assert counts["noise"] == 2  # half of the draws
    clear = table[table["design"] == "clear"]
    assert (clear["true_splits"] == 2).all()
    assert clear["all_splits"].all()
    assert (clear["ari"] == 1.0).all()
    noise = table[table["design"] == "noise"]
    assert noise["all_splits"].isna().all()
    # A significant split of data without groups always divides the only group.
    assert (noise["first_split"] == noise["false_split"]).all()
    page = render_study("x", folder=tmp_path, out=tmp_path / "out")
    assert "first split significant" in page


def test_an_interrupted_study_has_equal_shares_of_all_designs(tmp_path):
    study = load_study(tmp_path, write(tmp_path, SIGNIFICANCE))
    found = significance.tasks(study, Folders(data=None, out=tmp_path))
    assert [(d, draw) for d, draw, _ in found] == [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)]


def test_data_with_the_covariance_of_a_real_set(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 700)) * np.linspace(0.1, 2.0, 700)
    np.savez(tmp_path / "real.npz", X=X, y=np.zeros(20))
    text = SIGNIFICANCE.replace('make = "make_noise"\nn_features = 40', 'covariance_of = "real"')
    table = results(tmp_path, text, data=tmp_path, replicates=1)
    assert set(table["design"]) == {"clear", "noise"}
    study = load_study(tmp_path, "x")
    folders = Folders(data=tmp_path, out=tmp_path)
    data = significance._draw_with_real_covariance(study, "real", folders, 0)
    assert data.X.shape == (60, 500)
    # The 500 features with the largest variances, in their order.
    widest = np.sort(np.argsort(-X.var(axis=0))[:500])
    np.testing.assert_array_equal(data.feature_names, [f"V{j + 1}" for j in widest])
    expected = X.std(axis=0, ddof=1)[widest]
    drawn = [
        significance._draw_with_real_covariance(study, "real", folders, seed).X.var(axis=0)
        for seed in range(30)
    ]
    assert np.mean(drawn) == pytest.approx(np.mean(expected**2), rel=0.1)


def test_a_missing_real_set_is_refused(tmp_path):
    text = SIGNIFICANCE.replace('make = "make_noise"\nn_features = 40', 'covariance_of = "none"')
    with pytest.raises(StudyError, match=r"needs the data set none\.npz"):
        results(tmp_path, text, replicates=1)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0] * 4 + [1] * 4, True),
        ([0] * 8, False),
        ([0] * 3 + [1] * 5, True),  # one sample of the second group is in the wrong branch
    ],
)
def test_a_split_separates_groups_if_each_branch_has_most_of_one(labels, expected):
    points = np.array([0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3])
    tree = Tree(linkage_matrix=linkage(points[:, None], "average"))
    assert significance._separates_groups(tree, tree.root, np.array(labels)) == expected


def test_stability_with_the_true_number_of_clusters_and_one_more(tmp_path):
    text = (
        'title = "x"\nkind = "stability"\nreplicates = 2\nseed = 1\nn_resamples = 5\n'
        'columns = ["jaccard_min", "frequency_noise"]\n'
        + DESIGNS.split('[[design]]\nname = "noise"')[0]
        + FILTER
        + FILTER.replace("filter", "one more")
        + "extra_clusters = 1\n"
    )
    table = results(tmp_path, text).groupby("method").mean(numeric_only=True)
    assert table.loc["filter", "jaccard_min"] == 1.0
    assert table.loc["one more", "jaccard_min"] < 0.9
    assert table.loc["filter", "frequency_informative"] > table.loc["filter", "frequency_noise"]


def test_false_markers_are_counted(tmp_path):
    text = (
        'title = "x"\nkind = "false_markers"\nreplicates = 1\nseed = 1\nalpha = 0.05\n'
        'columns = ["n_markers"]\n'
        + DESIGNS
        + '[[method]]\nname = "association"\nestimator = "AssociationHC"\nn_clusters = 3\n'
    )
    table = results(tmp_path, text).set_index("design")
    assert table.loc["clear", "n_markers"] >= 45
    assert table.loc["clear", "n_false_markers"] <= 15
    assert table.loc["noise", "n_markers"] == table.loc["noise", "n_false_markers"]


def test_confidence_of_real_data(tmp_path):
    from mrshc.datasets import make_simulation_1

    data = make_simulation_1(0, mu=3.0, sizes=(12, 12, 12))
    np.savez(tmp_path / "clear.npz", X=data.X, y=data.labels)
    text = (
        'title = "x"\nkind = "real_confidence"\nreplicates = 1\nseed = 0\n'
        'n_simulations = 10\nn_resamples = 5\n[[set]]\nname = "clear"\n'
        + FILTER
        + "n_clusters = 3\n"
    )
    table = results(tmp_path, text, data=tmp_path)
    assert table.loc[0, "n_significant"] == 3
    assert table.loc[0, "ari_significant"] == 1.0
    assert table.loc[0, "jaccard_min"] == 1.0
    page = render_study("x", folder=tmp_path, out=tmp_path / "out")
    assert "| clear | filter | 36 | 3 | 3 | 1.00 | 1.00 to 1.00 | 3 | 1.00 |" in page


def test_names_must_be_given(tmp_path):
    with pytest.raises(StudyError, match="must give every design a name"):
        results(tmp_path, SIGNIFICANCE.replace('name = "clear"\n', ""))
