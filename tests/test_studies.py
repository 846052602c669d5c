"""Studies run, go on after an interruption, score what they say, and render."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import linkage
from studies import __main__ as driver
from studies import microarray, simulations
from studies.microarray import errors_in_dendrogram
from studies.pages import replace_section
from studies.prediction import match_clusters
from studies.real_data import render_agreement

from mrshc import HighVarianceHC
from mrshc.core.trees import Tree
from mrshc.datasets import make_simulation_1

CLEAR = """
[[design]]
name = "clear"
make = "make_simulation_1"
mu = 3.0
sizes = [12, 12, 12]
"""
NOISE = """
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
TOO_MANY = FILTER.replace("filter", "too many").replace("30", "900")
REALWORLD = """
against = ["other"]
shown = ["filter", "other"]
[[set]]
name = "x"
study = "s"
[[set]]
name = "y"
study = "s"
drop_samples = ["s0"]
[[set]]
name = "raw"
raw_intensities = true
[[method]]
name = "other"
estimator = "MrSHC"
n_features_to_select = 5
rank = 1
n_references = 10
leave_out = ["y"]
[[method]]
name = "K-means"
estimator = "SparseKMeans"
n_clusters = "number of classes"
l1_bound = 2.0
impute = "mean"
"""


def config_of(kind, text, **entries):
    config = {"name": "x", "title": "x", "kind": kind, "replicates": 2, "seed": 1}
    return config | {"columns": ["n_clusters"]} | tomllib.loads(text) | entries


def results(folder, kind, text, *, n_jobs=1, **entries):
    config = config_of(kind, text, **entries)
    driver.run_study(config, data=folder, out=folder, n_jobs=n_jobs)
    text = driver.render(config, folder)
    assert (folder / "x.md").read_text(encoding="utf-8") == text
    assert not (folder / "x.partial.jsonl").exists()
    return pd.read_csv(folder / "x.csv"), text


def test_a_study_leaves_results_metadata_and_tables(tmp_path):
    table, text = results(tmp_path, "simulation", CLEAR + NOISE + FILTER + TOO_MANY)
    assert len(table) == 2 * (2 + 1)
    failed = table[table["method"] == "too many"]
    assert failed["error"].str.startswith("ValueError: n_features_to_select must be").all()
    assert "| 2 draws failed |" in text
    metadata = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert metadata["config"]["seed"] == 1
    assert "scikit-learn" in metadata["versions"]


def test_a_study_that_fails_everywhere_leaves_nothing(tmp_path):
    with pytest.raises(SystemExit, match="x failed everywhere, first with ValueError: n_feat"):
        results(tmp_path, "simulation", CLEAR + TOO_MANY)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_study_goes_on_with_the_same_results(tmp_path, monkeypatch):
    whole, again = tmp_path / "whole", tmp_path / "again"
    expected, _ = results(whole, "simulation", CLEAR + FILTER, replicates=4, n_jobs=2)
    done = []

    def score(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return simulations.score_clusters(*arguments)

    monkeypatch.setattr(driver.KINDS["simulation"], "score", score)
    with pytest.raises(KeyboardInterrupt):
        results(again, "simulation", CLEAR + FILTER, replicates=4)
    partial = again / "x.partial.jsonl"
    text = partial.read_text(encoding="utf-8")
    partial.write_text(text + "\n[[0, 3, 0], [{", encoding="utf-8")  # cut off
    with pytest.raises(SystemExit, match="is of another config or version"):
        results(again, "simulation", CLEAR.replace("3.0", "2.0") + FILTER, replicates=4)
    done[:] = [1] * 100  # two tasks are left
    pd.testing.assert_frame_equal(
        results(again, "simulation", CLEAR + FILTER, replicates=4)[0], expected
    )
    assert len(done) == 102


def test_contaminated_data_are_scored(tmp_path):
    spoilt = CLEAR.replace('"clear"', '"missing"').replace("sizes = [12, 12, 12]", "")
    moved = spoilt.replace('"missing"', '"moved"')
    spoilt += 'spoil = { how = "with_missing_cells", share = 0.1 }\n'
    moved += 'spoil = { how = "with_outlying_samples", share = 0.05, shift = 10.0, '
    moved += 'spread = "every feature" }\n'
    robust = '[[method]]\nname = "robust"\nestimator = "AssociationHC"\nrobust = true\n'
    text = spoilt + moved + FILTER + 'impute = "mean"\n' + robust
    table, _ = results(tmp_path, "simulation", text, replicates=1)
    table = table.set_index(["design", "method"])
    row = table.loc["moved", "robust"]
    assert (row["found_outliers"], row["false_alarms"], row["cer_others"]) == (1, 0, 0)
    assert row["precision"] > 0.8  # of the associated features, not of those to start with
    assert row["n_features"] > 40
    assert table.loc[("missing", "filter"), "cer"] < 0.1
    assert np.isnan(table.loc[("missing", "robust"), "found_outliers"])


def test_timings(tmp_path):
    text = CLEAR + FILTER + "paper = [0.25]\n" + TOO_MANY
    table, text = results(tmp_path, "timing", text)
    assert table["seconds"].notna().sum() == 2
    assert "| filter | 0.25 |  | 0." in text
    assert "2 failed, the first with: ValueError" in text


def test_significant_splits_are_compared_with_the_true_groups(tmp_path):
    real = NOISE.replace('make = "make_noise"\nn_features = 40', 'covariance_of = "real"')
    X = np.random.default_rng(0).normal(size=(20, 700)) * np.linspace(0.1, 2.0, 700)
    np.savez(tmp_path / "real.npz", X=X, y=np.zeros(20))
    entries = {"n_simulations": 10, "replicates": 4, "columns": ["first_split", "all_splits"]}
    text = CLEAR + NOISE + real.replace('"noise"', '"real"') + FILTER
    table, text = results(tmp_path, "significance", text, **entries)
    assert table["design"].value_counts().to_dict() == {"clear": 4, "noise": 2, "real": 2}
    clear = table[table["design"] == "clear"]
    assert (clear["true_splits"] == 2).all()
    assert (clear["ari"] == 1.0).all()
    # A significant split of data without groups always divides the only group.
    noise = table[table["design"] == "noise"]
    assert (noise["first_split"] == noise["false_split"]).all()
    assert "first split significant" in text


def test_data_with_the_covariance_of_a_real_set(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 700)) * np.linspace(0.1, 2.0, 700)
    np.savez(tmp_path / "real.npz", X=X)
    drawn = [
        simulations._draw_with_real_covariance(tmp_path / "real.npz", seed) for seed in range(30)
    ]
    widest = np.sort(np.argsort(-X.var(axis=0))[:500])
    np.testing.assert_array_equal(drawn[0].feature_names, [f"V{j + 1}" for j in widest])
    variances = np.mean([data.X.var(axis=0) for data in drawn], axis=0)
    # Means over 500 features and 30 draws; the standard error is about 1 %.
    assert variances.mean() == pytest.approx(X.var(axis=0, ddof=1)[widest].mean(), rel=0.1)


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
    assert simulations.separates_groups(tree, tree.root, np.array(labels)) == expected


def test_stability_with_the_true_number_of_clusters_and_one_more(tmp_path):
    text = CLEAR + FILTER + FILTER.replace("filter", "one more") + "extra_clusters = 1\n"
    columns = ["jaccard_min", "frequency_noise"]
    table, _ = results(tmp_path, "stability", text, n_resamples=5, columns=columns)
    table = table.groupby("method").mean(numeric_only=True)
    assert table.loc["filter", "jaccard_min"] == 1.0
    assert table.loc["one more", "jaccard_min"] < 0.9
    assert table.loc["filter", "frequency_informative"] > table.loc["filter", "frequency_noise"]


def test_false_markers_are_counted(tmp_path):
    method = '[[method]]\nname = "association"\nestimator = "AssociationHC"\nn_clusters = 3\n'
    entries = {"alpha": 0.05, "replicates": 1, "columns": ["n_markers"]}
    table, _ = results(tmp_path, "false_markers", CLEAR + NOISE + method, **entries)
    table = table.set_index("design")
    assert table.loc["clear", "n_markers"] >= 45
    assert table.loc["clear", "n_false_markers"] <= 15
    assert table.loc["noise", "n_markers"] == table.loc["noise", "n_false_markers"]


def test_methods_are_compared_over_real_data_sets(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 8 + ["b"] * 8 + ["alone"])
    X = rng.normal(size=(17, 30)) + 5 * (y == "a")[:, None] * (np.arange(30) < 5)
    np.savez(tmp_path / "y.npz", X=X, y=y, sample_names=[f"s{i}" for i in range(17)])
    np.savez(tmp_path / "raw.npz", X=np.exp2(0.4 * X + 10), y=y)
    X[3, 7] = np.nan
    np.savez(tmp_path / "x.npz", X=X, y=y)
    every = FILTER.replace("30", '"all"')
    table, text = results(tmp_path, "realworld", REALWORLD + every)
    table = table.set_index(["method", "set"])
    assert table.loc["filter", "n_samples"].tolist() == [17, 16, 17]
    assert set(table["n_classes"]) == {2}, "a class of one sample cannot be found"
    assert (table.loc["K-means", "ari"] > 0.7).all()
    assert table.loc["K-means", ["ari_found", "n_clusters"]].isna().all(axis=None)
    assert table.loc["other"].index.tolist() == ["x", "raw"]
    assert table.loc[("filter", "raw"), "n_features"] < 30  # filtered
    assert text.startswith("**3 data sets of 2 studies**\n")
    assert "| other (2 data sets) | " in text


def test_the_method_is_chosen_without_the_study_on_which_it_is_evaluated():
    """ "filter" is best on two of three studies, so it is chosen only where both of them remain."""
    sets, groups = ["x", "y", "raw", "last"], ["s", "s", "raw", "last"]
    scores = {"filter": [0.9, 0.7, 0.6, 0.0], "other": [0.1, 0.3, 0.5, 0.8]}
    rows = [
        {"set": name, "study": group, "method": method, "ari": ari, "ari_found": 0.5}
        | {"n_features": 5, "n_clusters": 2}
        for method, values in scores.items()
        for name, group, ari in zip(sets, groups, values, strict=True)
    ]
    config = config_of("realworld", REALWORLD)
    config["method"] = [{"name": name} for name in scores]
    text = render_agreement(config, pd.DataFrame(rows))
    # Without s, the means are 0.3 and 0.65, without raw 0.533 and 0.4, without last 0.733 and 0.3.
    reached = pd.Series([0.1, 0.3, 0.6, 0.0])
    shown = f"{reached.mean():.3f} ({reached.sem():.3f}) | filter (2), other (1) |"
    assert f"| ARI at the number of classes | {shown}" in text


def test_confidence_of_real_data(tmp_path):
    data = make_simulation_1(0, mu=3.0, sizes=(12, 12, 12))
    np.savez(tmp_path / "clear.npz", X=data.X, y=data.labels)
    text = '[[set]]\nname = "clear"\n' + FILTER + "n_clusters = 3\n"
    _, text = results(tmp_path, "real_confidence", text, n_simulations=10, n_resamples=5)
    assert "| clear | filter | 36 | 3 | 3 | 1.00 | 1.00 to 1.00 | 3 | 1.00 |" in text


def test_predicted_clusters_are_compared(tmp_path):
    X = np.random.default_rng(0).normal(size=(24, 30))
    X[12:, :10] += 5
    np.savez(tmp_path / "two.npz", X=X, y=np.repeat([0, 1], 12))
    text = CLEAR + '[[set]]\nname = "two"\n' + FILTER + 'n_clusters = "number of classes"\n'
    table, text = results(tmp_path, "prediction", text, n_folds=3)
    assert table["n_clusters"].tolist() == [3, 3, 2]
    assert (table.filter(regex="share_|ari_") == 1).all(axis=None)
    assert "| two | filter | 2 | 1.000 | 1.000 | 1.000 | 1.000 |" in text


def test_clusters_are_matched_one_to_one():
    labels, others = np.array([0, 0, 1, 1, 1, 2]), np.array([1, 1, 0, 0, 1, 1])
    np.testing.assert_array_equal(match_clusters(labels, others), [1, 0, -1])


def test_trees_of_a_microarray_are_drawn_and_their_errors_counted(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(20, 30)), np.repeat(["a", "b"], 10)
    np.savez(tmp_path / "array.npz", X=X, y=y)
    text = 'file = "array.npz"\n' + FILTER + TOO_MANY
    text += '[[method]]\nname = "as many"\nestimator = "HighVarianceHC"\nas_many_as = "filter"\n'
    text += '[[figure]]\nsuffix = ""\nmethods = ["filter"]\n'
    table, text = results(tmp_path, "microarray", text)
    table = table.set_index("method")
    assert table.loc[["filter", "as many"], "n_features"].tolist() == [30, 30]
    assert "n_features_to_select must be" in table.loc["too many", "error"]
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "![x](x.png)" in text


def test_errors_are_counted_at_the_first_cut_that_shows_every_class():
    y = np.array(["a"] * 6 + ["b"] * 6)
    X = np.zeros((12, 2))
    X[:, 0] = [0, 0.1, 0.2, 0.3, 0.4, 5.0, 5.1, 5.2, 5.3, 5.4, 5.5, 90.0]
    # The outlier splits off first; the next cut separates the classes, one sample apart.
    assert errors_in_dendrogram(HighVarianceHC(1).fit(X), y) == (3, 1, True)


def test_classes_that_no_cut_shows_are_mixed():
    y = np.array(["a", "a", "a", "b"] * 10)
    X = np.column_stack([np.arange(40.0), np.zeros(40)])
    assert errors_in_dendrogram(HighVarianceHC(2).fit(X), y) == (2, 10, False)
    assert microarray._are_all_classes_shown(np.array([[4, 1], [1, 4]]))
    assert not microarray._are_all_classes_shown(np.array([[4, 4], [0, 4]])), "a tie"


def test_the_example_of_section_2(tmp_path):
    config = driver.load("section2") | {"replicates": 1, "name": "x"}
    driver.run_study(config, data=None, out=tmp_path, n_jobs=1)
    assert "mrshc, 1 draws" in driver.render(config, tmp_path)
    assert (tmp_path / "x.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "There is no study 'table9'; there are: .*table1, table2"),
        (["table1", "--replicates", "1"], "2"),  # committed results are safe from a trial
        (["lymphoma", "--out", "trial"], "needs the data set lymphoma.npz.* with --data"),
    ],
)
def test_impossible_runs_are_refused(arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["studies", *arguments])
    with pytest.raises(SystemExit, match=message):
        driver.main()


def test_tables_are_inserted_between_their_marks():
    page = "before\n<!-- t -->\nold\n<!-- end of t -->\nafter\n"
    new = "before\n<!-- t -->\n\n| new |\n\n<!-- end of t -->\nafter\n"
    assert replace_section(page, "t", "| new |\n") == new
    assert replace_section(page, "other", "| new |\n") == page
