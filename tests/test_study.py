"""Studies run, resume and render."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc import HighVarianceHC
from mrshc.shell.folder_lock import create_and_lock_folder
from mrshc.study import StudyError, render_study, run_study
from mrshc.study.config import CONFIGS, load_study
from mrshc.study.kinds import many_real_datasets, one_real_dataset, simulated_designs
from mrshc.study.kinds.one_real_dataset import errors_in_dendrogram
from mrshc.study.study_journal import open_journal

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"
sys.path.insert(0, str(STUDIES))

from publish import replace_section  # noqa: E402

STUDY_NAMES = sorted(path.stem for path in CONFIGS.glob("*.toml"))

CONFIG = """
title = "A small study"
kind = "simulation"
replicates = 3
seed = 10
columns = ["cer", "n_features", "claimed"]

[[design]]
name = "easy"
make = "make_simulation_1"
mu = 3.0

[[design]]
name = "noise"
make = "make_noise"
n_features = 20

[[method]]
name = "HC"
estimator = "HighVarianceHC"
n_features_to_select = 20

[[method]]
name = "too many"
estimator = "HighVarianceHC"
n_features_to_select = 100
"""

MICROARRAY = """
title = "x"
kind = "microarray"
replicates = 1
seed = 1
file = "x.npz"

[[method]]
name = "HC"
estimator = "HighVarianceHC"
n_features_to_select = 30

[[method]]
name = "too many"
estimator = "HighVarianceHC"
n_features_to_select = 31

[[figure]]
suffix = ""
methods = ["HC"]
"""

TIMING = """
title = "x"
kind = "timing"
replicates = 2
seed = 1

[[design]]
name = "I"
make = "make_simulation_1"

[[method]]
name = "HC"
estimator = "HighVarianceHC"
n_features_to_select = 5
paper = [0.25]

[[method]]
name = "too many"
estimator = "HighVarianceHC"
n_features_to_select = 501
"""

SPOILT = """
title = "Spoilt"
kind = "simulation"
replicates = 1
seed = 5
columns = ["cer", "cer_others", "found_outliers", "false_alarms", "precision"]

[[design]]
name = "missing"
make = "make_simulation_1"
mu = 3.0
spoil = { how = "with_missing_cells", share = 0.1 }

[[design]]
name = "moved"
make = "make_simulation_1"
mu = 3.0
spoil = { how = "with_outlying_samples", share = 0.05, shift = 10.0, spread = "every feature" }

[[method]]
name = "means"
estimator = "HighVarianceHC"
impute = "mean"
n_features_to_select = 50

[[method]]
name = "robust"
estimator = "AssociationHC"
robust = true
"""

REALWORLD = """
title = "x"
kind = "realworld"
replicates = 1
seed = 1
against = ["MrSHC"]
shown = ["all", "MrSHC"]

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
name = "all"
estimator = "HighVarianceHC"
n_features_to_select = "all"

[[method]]
name = "MrSHC"
estimator = "MrSHC"
n_features_to_select = 5
rank = 1
n_references = 10
"""

REFERENCES = (
    "study,design,method,source,cer,cer_se,n_features,n_features_se,claimed,claimed_se\n"
    "small,easy,HC,elsewhere,0.125,0.001,500,,,\n"
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "small.toml").write_text(CONFIG)
    (folder / "references.csv").write_text(REFERENCES)
    return folder


def test_a_study_leaves_results_metadata_and_tables(folder):
    path = run_study("small", folder=folder)
    results = pd.read_csv(path)
    assert len(results) == 2 * 3 * 2
    assert sorted(f.name for f in folder.iterdir()) == [
        "references.csv",
        "small.csv",
        "small.json",
        "small.md",
        "small.toml",
    ]
    metadata = json.loads((folder / "small.json").read_text())
    assert metadata["config"]["seed"] == 10
    assert "scikit-learn" in metadata["versions"]
    table = (folder / "small.md").read_text()
    assert "| HC | elsewhere | 0.125 (0.001) | 500.0 |  |" in table
    assert "**noise**, 3 draws" in table


def test_a_failed_draw_is_a_row_with_its_error(folder):
    results = pd.read_csv(run_study("small", folder=folder)).set_index(["design", "method"])
    results = results.sort_index()
    failed = results.loc[("noise", "too many"), "error"]
    assert failed.str.startswith("ValueError: n_features_to_select must be").all()
    assert results.loc[("easy", "HC"), "error"].isna().all()
    assert "| 3 draws failed |" in (folder / "small.md").read_text()


def test_failures_in_timings_are_rows_too(folder, tmp_path):
    (folder / "small.toml").write_text(TIMING)
    path = run_study("small", folder=folder, replicates=3, out=tmp_path / "out")
    results = pd.read_csv(path).set_index("method")
    assert len(results.loc["HC", "seconds"]) == 3
    assert results.loc["too many", "error"].str.contains("n_features_to_select must be").all()
    table = path.with_suffix(".md").read_text()
    assert "| HC | 0.25 |  | 0." in table
    assert "| too many |  |  |  |" in table
    assert "3 failed, the first with: ValueError" in table


def test_failures_on_real_data_are_rows_too(folder, tmp_path):
    (folder / "small.toml").write_text(MICROARRAY)
    X = np.random.default_rng(0).normal(size=(20, 30))
    y = np.repeat(["a", "b"], 10)
    np.savez(tmp_path / "x.npz", X=X, y=y)
    path = run_study("small", folder=folder, data=tmp_path)
    results = pd.read_csv(path).set_index("method")
    assert results.loc["HC", "n_features"] == 30
    assert "n_features_to_select must be" in results.loc["too many", "error"]
    assert "1 failed, the first with: ValueError" in path.with_suffix(".md").read_text()
    assert path.with_suffix(".png").exists()


def test_contaminated_data_are_scored(folder):
    (folder / "small.toml").write_text(SPOILT)
    path = run_study("small", folder=folder)
    results = pd.read_csv(path).set_index(["design", "method"])
    assert results.get("error") is None
    moved = results.loc["moved", "robust"]
    assert moved["found_outliers"] == 1
    assert moved["false_alarms"] == 0
    assert moved["cer_others"] == 0
    assert moved["supported"]
    assert moved["precision"] > 0.8  # of the associated features, not of the 20 to start with
    assert moved["n_features"] > 40
    assert results.loc[("missing", "means"), "cer"] < 0.1
    assert np.isnan(results.loc[("missing", "robust"), "found_outliers"])
    assert "| outliers found | false alarms |" in path.with_suffix(".md").read_text()


def three_sets(folder):
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 8 + ["b"] * 8 + ["alone"])
    X = rng.normal(size=(17, 30)) + 5 * (y == "a")[:, None] * (np.arange(30) < 5)
    names = [f"s{i}" for i in range(17)]
    np.savez(folder / "x.npz", X=X, y=y)
    np.savez(folder / "y.npz", X=X, y=y, sample_names=names)
    np.savez(folder / "raw.npz", X=np.exp2(0.4 * X + 10), y=y)


def test_methods_are_compared_over_real_data_sets(folder, tmp_path):
    (folder / "small.toml").write_text(REALWORLD)
    three_sets(tmp_path)
    path = run_study("small", folder=folder, data=tmp_path)
    results = pd.read_csv(path).set_index(["set", "method"])
    assert results["n_samples"].tolist() == [17, 17, 16, 16, 17, 17]
    assert set(results["n_classes"]) == {2}, "a class of one sample cannot be found"
    assert (results["ari"].xs("MrSHC", level="method") > 0.7).all()
    assert results.loc[("x", "all"), "n_features"] == 30
    assert results.loc[("raw", "all"), "n_features"] < 30  # filtered
    table = path.with_suffix(".md").read_text()
    assert table.startswith("**3 data sets of 2 studies**\n")
    difference = results["ari"].unstack()
    difference = difference["all"] - difference["MrSHC"]
    assert f"{difference.mean():+.3f} ({difference.sem():.3f})" in table


def test_methods_without_a_tree_or_without_all_data_sets(folder, tmp_path):
    others = """
[[method]]
name = "K-means"
estimator = "SparseKMeans"
n_clusters = "number of classes"
l1_bound = 2.0
impute = "mean"

[[method]]
name = "on two sets"
estimator = "HighVarianceHC"
n_features_to_select = 5
leave_out = ["y"]
"""
    (folder / "small.toml").write_text(REALWORLD + others)
    three_sets(tmp_path)
    with np.load(tmp_path / "x.npz") as data:
        X, y = data["X"], data["y"]
    X[3, 7] = np.nan
    np.savez(tmp_path / "x.npz", X=X, y=y)
    path = run_study("small", folder=folder, data=tmp_path)
    results = pd.read_csv(path).set_index(["method", "set"])
    assert results.loc["on two sets"].index.tolist() == ["x", "raw"]
    k_means = results.loc["K-means"]
    assert (k_means["ari"] > 0.7).all()
    assert k_means[["ari_found", "n_clusters"]].isna().all(axis=None)
    table = path.with_suffix(".md").read_text()
    assert "| on two sets (2 data sets) | 1.000 (0.000) |" in table
    (row,) = [line for line in table.splitlines() if line.startswith("| K-means | ")]
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[4] == "", "it does not choose the number of clusters"
    chosen = table[table.index("| method chosen by") :]
    assert "on two sets" not in chosen
    assert "| ARI of its clusters |" in chosen


def test_the_method_is_chosen_without_the_study_on_which_it_is_evaluated(folder):
    """ "all" is best on two of three studies, so it is chosen only where both of them remain."""
    (folder / "small.toml").write_text(REALWORLD)
    sets, studies = ["x", "y", "raw", "last"], ["s", "s", "raw", "last"]
    scores = {"all": [0.9, 0.7, 0.6, 0.0], "MrSHC": [0.1, 0.3, 0.5, 0.8]}
    results = pd.DataFrame(
        [
            {"set": name, "study": study, "method": method, "ari": values[i], "ari_found": 0.5}
            | {"n_features": 5, "n_clusters": 2}
            for method, values in scores.items()
            for i, (name, study) in enumerate(zip(sets, studies, strict=True))
        ]
    )
    table = many_real_datasets.render(load_study(folder, "small"), results, pd.DataFrame())
    # Without s, the means are 0.3 and 0.65, without raw 0.533 and 0.4, without last 0.733 and 0.3.
    reached = pd.Series([0.1, 0.3, 0.6, 0.0])
    shown = f"{reached.mean():.3f} ({reached.sem():.3f}) | all (2), MrSHC (1) |"
    assert f"| ARI at the number of classes | {shown}" in table


def test_a_study_that_fails_everywhere_leaves_nothing(folder):
    (folder / "small.toml").write_text(
        CONFIG.replace("select = 20", "select = 900").replace("100", "900")
    )
    with pytest.raises(StudyError, match="small failed everywhere, first with ValueError: n_feat"):
        run_study("small", folder=folder)
    assert sorted(f.name for f in folder.iterdir()) == ["references.csv", "small.toml"]


def test_same_study_same_results_for_any_number_of_workers(folder, tmp_path):
    alone = run_study("small", folder=folder, out=tmp_path / "one", n_jobs=1).read_text()
    assert run_study("small", folder=folder, out=tmp_path / "two", n_jobs=2).read_text() == alone


def test_an_interrupted_study_continues(folder, tmp_path, monkeypatch):
    whole = run_study("small", folder=folder, out=tmp_path / "whole").read_text()
    ran = []
    plain = simulated_designs.run_task

    def interrupted(study, task, folders):
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(task)
        return plain(study, task, folders)

    monkeypatch.setattr(simulated_designs, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study("small", folder=folder)
    journal = folder / "small.partial" / "journal.jsonl"
    # The last line may have been cut off while it was written.
    journal.write_text(journal.read_text()[:-20])
    assert not (folder / "small.csv").exists()
    again = []
    monkeypatch.setattr(
        simulated_designs, "run_task", lambda s, t, f: [again.append(t), plain(s, t, f)][1]
    )
    assert run_study("small", folder=folder).read_text() == whole
    assert len(again) == 9, "three of twelve tasks were whole in the journal"
    assert not journal.parent.exists()


def test_display_entries_do_not_change_the_fingerprint(folder):
    before = load_study(folder, "small").fingerprint
    (folder / "small.toml").write_text(CONFIG.replace('"cer", ', "") + "paper = [1.0]\n")
    assert load_study(folder, "small").fingerprint == before
    (folder / "small.toml").write_text(CONFIG.replace("seed = 10", "seed = 11"))
    assert load_study(folder, "small").fingerprint != before


def test_a_trial_is_rendered_in_its_folder(folder, tmp_path):
    path = run_study("small", folder=folder, replicates=1, out=tmp_path / "trial")
    path.with_suffix(".md").unlink()
    assert "**noise**, 1 draws" in render_study("small", folder=folder, out=tmp_path / "trial")
    assert path.with_suffix(".md").exists()
    (folder / "references.csv").unlink()
    assert "elsewhere" not in render_study("small", folder=folder, out=tmp_path / "trial")


def test_two_runs_of_one_study_do_not_mix(folder):
    with create_and_lock_folder(folder / "small.partial") as mine:
        assert mine
        with pytest.raises(StudyError, match="Another process is using"):
            run_study("small", folder=folder)
    run_study("small", folder=folder)


def test_no_workers_at_all_are_refused(folder):
    with pytest.raises(StudyError, match="1 or more, or -1"):
        run_study("small", folder=folder, n_jobs=0)


def test_results_of_another_config_are_not_mixed_in(folder):
    work = folder / "small.partial"
    work.mkdir()
    (work / "journal.jsonl").write_text('{"work": "other"}\n{"task": [0, 0, 0]}\n')
    with pytest.raises(StudyError, match="holds the unfinished work of another config or of other"):
        run_study("small", folder=folder)
    assert "[0, 0, 0]" in (work / "journal.jsonl").read_text(), "it is the user's to remove"


@pytest.mark.parametrize(
    "entry",
    [
        *("5", "[]", "null", '"text"', "{}", "\xff", "[" * 100_000),
        '{"task": 0, "rows": [{}], "seconds": 1.0}',
        '{"task": [[0]], "rows": [{}], "seconds": 1.0}',
        '{"task": [0, 0, 0.5], "rows": [{}], "seconds": 1.0}',
        '{"task": [0, 0, 0], "rows": {}, "seconds": 1.0}',
        '{"task": [0, 0, 0], "rows": [1], "seconds": 1.0}',
        '{"task": [0, 0, 0], "rows": [{"cer": [1]}], "seconds": 1.0}',
        '{"task": [0, 0, 0], "rows": [{"cer": 1}], "seconds": NaN}',
        '{"task": [0, 0, 0], "rows": [{"cer": 1}], "seconds": -1}',
        '{"task": [0, 0, 0], "rows": [{"cer": 1}]}',
    ],
)
def test_a_damaged_journal_is_refused_and_kept(tmp_path, entry):
    work = tmp_path / "small.partial"
    with open_journal(work, fingerprint="a") as journal:
        journal.add((0, 0, 1), [{"cer": float("nan")}], 1.0)
    path = work / "journal.jsonl"
    content = path.read_bytes() + entry.encode("latin-1") + b"\n"
    path.write_bytes(content)
    with (
        pytest.raises(StudyError, match=r"journal\.jsonl is damaged\. Remove .* to start again"),
        open_journal(work, fingerprint="a"),
    ):
        pytest.fail("it was opened")
    assert path.read_bytes() == content


def test_committed_results_are_safe_from_a_trial_with_fewer_draws(folder, tmp_path):
    with pytest.raises(StudyError, match="small has 3 draws; to make 1, give another"):
        run_study("small", folder=folder, replicates=1)
    with pytest.raises(StudyError, match="give another folder"):
        run_study("small", folder=folder, replicates=1, out=folder)
    path = run_study("small", folder=folder, replicates=1, out=tmp_path / "trial")
    assert len(pd.read_csv(path)) == 4


def test_a_trial_does_not_replace_whole_results_wherever_they_are(folder, tmp_path):
    out = tmp_path / "out"
    run_study("small", folder=folder, replicates=1, out=out)
    run_study("small", folder=folder, replicates=2, out=out)  # one trial may replace another
    whole = run_study("small", folder=folder, out=out).read_text()
    with pytest.raises(StudyError, match=r"small has 3 draws; to make 2, .* \(out\)"):
        run_study("small", folder=folder, replicates=2, out=out)
    assert (out / "small.csv").read_text() == whole


def test_studies_of_the_package_run_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = run_study("section2", replicates=1)
    assert path == Path("mrshc-study/section2.csv")
    assert sorted(f.name for f in path.parent.iterdir()) == [
        *("section2.csv", "section2.json", "section2.md", "section2.png"),
    ]
    assert "mrshc, 1 draws" in render_study("section2")
    with pytest.raises(StudyError, match=r"^No study 'table9'; there are: .*table1, table2"):
        run_study("table9")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "small.toml must have an entry 'title'"),
        ("title = ", "not valid TOML"),
        ('title = "x"\nkind = "other"\nreplicates = 1', "must name a kind out of simulation"),
        ('title = "x"\nkind = "simulation"\nreplicates = 1', "must have an entry 'seed'"),
        (CONFIG.replace("replicates = 3", 'replicates = "3"'), "must be a number above 0, got '3'"),
        (CONFIG.replace("replicates = 3", "replicates = 0"), "must be a number above 0, got 0"),
        (CONFIG.replace("seed = 10", 'seed = "x"'), "must have a whole number as seed, got 'x'"),
        (
            CONFIG.replace("make_noise", "make_nose"),
            "make must be one of .*make_noise, .* got 'make",
        ),
        (CONFIG.replace("mu =", "nu ="), "design 'easy': .*unexpected keyword argument 'nu'"),
        (CONFIG.replace('"HighVarianceHC"', '"KMeans"'), "estimator must be one of .*'KMeans'"),
        (CONFIG.replace("n_features_to", "n_feature_to"), "method 'HC': .*'n_feature_to_select'"),
        (CONFIG.replace("too many", "HC"), "must give every method a name of its own"),
        (CONFIG.replace('"cer", ', '"ser", '), "columns must be a list out of cer, .*ser"),
        (CONFIG.replace("[[method]]", "[method]", 1).split("[[method]]")[0], r"as \[\[method\]\]"),
        (TIMING.replace("[0.25]", "[0.25, 1]"), "paper of 'HC' must hold 1 numbers"),
        (MICROARRAY.replace('suffix = ""', ""), "must give every figure a suffix and methods"),
        (MICROARRAY.replace("replicates = 1", "replicates = 2"), "there is 1 draw, not 2"),
        (MICROARRAY, "needs the data set x.npz, which is not part of this project"),
        (REALWORLD, "needs the data set x.npz, which is not part of this project"),
        (REALWORLD.replace("replicates = 1", "replicates = 2"), "there is 1 draw, not 2"),
        (REALWORLD.replace('against = ["MrSHC"]', 'against = ["XY"]'), r"not have: \['XY'\]"),
        (SPOILT.replace("with_missing_cells", "with_luck"), "spoil must be one of with_missing_"),
        (SPOILT.replace("share = 0.1", "share = 2"), r"design 'missing': share must be in"),
        (MICROARRAY.replace('methods = ["HC"]', 'methods = ["XY"]'), r"does not have: \['XY'\]"),
    ],
)
def test_bad_configs_are_refused(folder, config, message):
    (folder / "small.toml").write_text(config)
    before = sorted(folder.iterdir())
    with pytest.raises(StudyError, match=message):
        run_study("small", folder=folder)
    assert sorted(folder.iterdir()) == before


def test_results_of_an_older_config_are_not_rendered(folder):
    run_study("small", folder=folder)
    (folder / "small.toml").write_text(CONFIG.replace('"cer", ', ""))
    render_study("small", folder=folder)
    (folder / "small.toml").write_text(CONFIG.replace("mu = 3.0", "mu = 4.0"))
    with pytest.raises(StudyError, match=r"were made with another config than small\.toml"):
        render_study("small", folder=folder)


def test_pictures_come_with_the_results(folder, tmp_path, monkeypatch):
    (folder / "small.toml").write_text(MICROARRAY)
    np.savez(tmp_path / "x.npz", X=np.random.default_rng(0).normal(size=(9, 30)), y=[1, 2, 3] * 3)
    (folder / "small.png").write_text("old")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one_real_dataset, "errors_in_dendrogram", interrupted)  # after the picture
        with pytest.raises(KeyboardInterrupt):
            run_study("small", folder=folder, data=tmp_path)
    assert (folder / "small.png").read_text() == "old"
    run_study("small", folder=folder, data=tmp_path)
    assert (folder / "small.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_studies_are_refused_with_a_list_of_known_ones(folder):
    with pytest.raises(StudyError, match="there are: small"):
        run_study("smell", folder=folder)
    with pytest.raises(StudyError, match="no results yet"):
        render_study("small", folder=folder)


def test_tables_are_inserted_between_their_marks():
    page = "before\n<!-- t -->\nold\n<!-- end of t -->\nafter\n"
    new = "before\n<!-- t -->\n\n| new |\n\n<!-- end of t -->\nafter\n"
    assert replace_section(page, "t", "| new |\n") == new
    assert replace_section(page, "other", "| new |\n") == page


def test_errors_are_counted_at_the_first_cut_that_shows_every_class():
    y = np.array(["a"] * 6 + ["b"] * 6)
    X = np.zeros((12, 2))
    X[:, 0] = [0, 0.1, 0.2, 0.3, 0.4, 5.0, 5.1, 5.2, 5.3, 5.4, 5.5, 90.0]
    model = HighVarianceHC(1).fit(X)
    # The outlier splits off first; the next cut separates the classes, one sample apart.
    assert errors_in_dendrogram(model, y) == (3, 1, True)


def test_classes_that_no_cut_shows_are_mixed():
    y = np.array(["a", "a", "a", "b"] * 10)
    X = np.column_stack([np.arange(40.0), np.zeros(40)])
    assert errors_in_dendrogram(HighVarianceHC(2).fit(X), y) == (2, 10, False)


def test_a_tied_cluster_belongs_to_no_class():
    assert one_real_dataset._are_all_classes_shown(np.array([[4, 1], [1, 4]]))
    assert not one_real_dataset._are_all_classes_shown(np.array([[4, 4], [0, 4]]))
