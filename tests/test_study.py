"""Studies run, resume and render; what is committed is what the code renders."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc import HighVarianceHC
from mrshc.study import StudyError, microarray, render_study, run_study, simulation
from mrshc.study.microarray import errors_in_dendrogram
from mrshc.study.tables import published

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"

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
    failed = results.loc[("noise", "too many"), "error"]
    assert failed.str.startswith("ValueError: n_features_to_select must be").all()
    assert results.loc[("easy", "HC"), "error"].isna().all()
    assert "| 3 draws failed |" in (folder / "small.md").read_text()


def test_same_study_same_results_for_any_number_of_workers(folder, tmp_path):
    alone = run_study("small", folder=folder, out=tmp_path / "one", n_jobs=1).read_text()
    assert run_study("small", folder=folder, out=tmp_path / "two", n_jobs=2).read_text() == alone


def test_an_interrupted_study_goes_on_where_it_stopped(folder, tmp_path, monkeypatch):
    whole = run_study("small", folder=folder, out=tmp_path / "whole").read_text()
    ran = []
    plain = simulation.run_task

    def interrupted(study, task, folders):
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(task)
        return plain(study, task, folders)

    monkeypatch.setattr(simulation, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study("small", folder=folder)
    journal = folder / "small.partial.jsonl"
    # The last line may have been cut off while it was written.
    journal.write_text(journal.read_text()[:-20])
    assert not (folder / "small.csv").exists()
    again = []
    monkeypatch.setattr(
        simulation, "run_task", lambda s, t, f: [again.append(t), plain(s, t, f)][1]
    )
    assert run_study("small", folder=folder).read_text() == whole
    assert len(again) == 3, "three of six tasks were whole in the journal"
    assert not journal.exists()


def test_results_of_another_config_are_not_mixed_in(folder):
    (folder / "small.partial.jsonl").write_text('{"fingerprint": "other"}\n{"task": [0, 0]}\n')
    assert len(pd.read_csv(run_study("small", folder=folder))) == 12


def test_committed_results_are_safe_from_a_trial_with_fewer_draws(folder, tmp_path):
    with pytest.raises(StudyError, match="small has 3 draws; to make 1 give another"):
        run_study("small", folder=folder, replicates=1)
    with pytest.raises(StudyError, match="give another folder"):
        run_study("small", folder=folder, replicates=1, out=folder)
    path = run_study("small", folder=folder, replicates=1, out=tmp_path / "trial")
    assert len(pd.read_csv(path)) == 4


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "small.toml must have an entry 'title'"),
        ("title = ", "not valid TOML"),
        ('title = "x"\nkind = "other"\nreplicates = 1', "must name a kind out of simulation"),
        ('title = "x"\nkind = "simulation"\nreplicates = 1', "must have an entry 'design'"),
        (
            'title = "x"\nkind = "microarray"\nreplicates = 1\nfile = "x.npz"',
            "needs the data set x.npz, which is not part of this project",
        ),
    ],
)
def test_bad_configs_are_refused(folder, config, message):
    (folder / "small.toml").write_text(config)
    with pytest.raises(StudyError, match=message):
        run_study("small", folder=folder)


def test_unknown_studies_are_refused_by_those_there_are(folder):
    with pytest.raises(StudyError, match="there are: small"):
        run_study("smell", folder=folder)
    with pytest.raises(StudyError, match="no results yet"):
        render_study("small", folder=folder)


def test_tables_are_put_between_their_marks():
    page = "before\n<!-- t -->\nold\n<!-- end of t -->\nafter\n"
    new = "before\n<!-- t -->\n\n| new |\n\n<!-- end of t -->\nafter\n"
    assert published(page, "t", "| new |\n") == new
    assert published(page, "other", "| new |\n") == page


COMMITTED = sorted(path.stem for path in STUDIES.glob("*.csv") if path.stem != "references")


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_tables_are_what_the_committed_results_render_to(name, tmp_path):
    for part in ("studies", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "README.md", tmp_path)
    render_study(name, folder=tmp_path / "studies")
    pages = [Path("README.md"), Path(f"studies/{name}.md")]
    pages += [page.relative_to(ROOT) for page in (ROOT / "docs").glob("*.md")]
    for page in pages:
        assert (tmp_path / page).read_bytes() == (ROOT / page).read_bytes(), page


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
    assert microarray._all_show(np.array([[4, 1], [1, 4]]))
    assert not microarray._all_show(np.array([[4, 4], [0, 4]]))
