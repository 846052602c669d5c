"""`mrshc predict` writes a table of new samples, from a folder with a result alone."""

import shutil

import numpy as np
import pandas as pd
import pytest

from command_line import main_here, mrshc, without_pictures
from mrshc.io import load_result

RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 40))
X[15:30, :20] += 4.0
X[33:, :20] += 4.0
FRAME = pd.DataFrame(2 ** (X + 5), [f"s{i}" for i in range(36)], [f"g{j}" for j in range(40)])
OLD, NEW = FRAME.iloc[:30], FRAME.iloc[30:]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Cluster a table, and return the folder of the result."""
    folder = tmp_path_factory.mktemp("made")
    OLD.T.to_csv(folder / "old.csv")
    options = ("--log2", "--standardize", "both", "--out", folder / "result")
    with without_pictures():
        assert main_here("cluster", folder / "old.csv", *options) == 0
    return folder / "result"


@pytest.fixture
def new(tmp_path):
    NEW.T.to_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def test_a_table_is_written(main, made, new, tmp_path):
    out = tmp_path / "assigned.csv"
    code, printed, warned = main("predict", made, new, "--out", out)
    assert (code, warned) == (0, "")
    assert printed.splitlines()[-2:] == [
        "New samples: 3 to cluster 1, 3 to cluster 2.",
        f"Table written to {out}",
    ]
    table = pd.read_csv(out, index_col="sample")
    assert list(table) == ["cluster", "distance", "second_cluster", "second_distance"]
    assert list(table.index) == list(NEW.index)
    result = load_result(made)
    np.testing.assert_array_equal(table["cluster"], result.predict(NEW) + 1)
    assert (table["cluster"] != table["second_cluster"]).all()
    assert (table["distance"] < table["second_distance"]).all()


def test_clusters_have_the_names_of_the_file_of_clusters(main, made, tmp_path):
    """Samples of the fit, in two groups that are far apart, are assigned to their own clusters."""
    assert main("predict", made, made.parent / "old.csv", "--out", tmp_path / "a.csv")[0] == 0
    assigned = pd.read_csv(tmp_path / "a.csv", index_col="sample")["cluster"]
    pd.testing.assert_series_equal(
        assigned, pd.read_csv(made / "clusters.csv", index_col="sample")["cluster"]
    )


def test_counts_are_normalised_in_a_process_of_its_own(main, tmp_path):
    counts = np.floor(FRAME * 20)
    counts.iloc[:30].T.to_csv(tmp_path / "old.csv")
    counts.iloc[30:].T.to_csv(tmp_path / "new.csv")
    folder = tmp_path / "result"
    given = ("--normalize", "size-factors", "--out", folder)
    assert main("cluster", tmp_path / "old.csv", *given)[0] == 0
    done = mrshc("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "out.csv")["cluster"]
    assert found.nunique() == 2
    assert found[:3].nunique() == found[3:].nunique() == 1


def test_the_table_is_printed_alone_by_default(main, made, new, tmp_path):
    main("predict", made, new, "--out", tmp_path / "a.csv")
    code, printed, warned = main("predict", made, new)
    assert (code, warned) == (0, "")
    assert printed == (tmp_path / "a.csv").read_text(encoding="utf-8")


def test_the_folder_is_enough(main, made, new, tmp_path):
    shutil.copytree(made, tmp_path / "copy")
    assert main("predict", tmp_path / "copy", new) == main("predict", made, new)


def test_one_sample_is_enough(main, made, new, tmp_path):
    NEW.iloc[[0]].T.to_csv(tmp_path / "one.csv")
    _, printed, _ = main("predict", made, tmp_path / "one.csv")
    _, of_all, _ = main("predict", made, new)
    assert printed.splitlines()[1].split(",")[:2] == of_all.splitlines()[1].split(",")[:2]


def test_the_table_may_have_another_layout(main, made, new, tmp_path):
    file = tmp_path / "other.tsv"
    NEW.iloc[:, ::-1].assign(age=-4.0).to_csv(file, sep="\t", decimal=",")
    given = ("--features", "columns", "--separator", "tab", "--decimal", ",")
    found = pd.read_csv(_written(main, tmp_path, made, file, *given))
    expected = pd.read_csv(_written(main, tmp_path, made, new))
    pd.testing.assert_frame_equal(found, expected)


def _written(main, folder, *arguments):
    out = folder / "out.csv"
    assert main("predict", *arguments, "--out", out, "--overwrite")[0] == 0
    return out


def test_existing_files_are_kept(main, made, new, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    code, _, warned = main("predict", made, new, "--out", out)
    assert code == 2
    assert "exists already. Add --overwrite to replace it, or choose another name." in warned
    assert out.read_text() == "mine"
    assert main("predict", made, new, "--out", out, "--overwrite")[0] == 0
    for wrong, sentence in {
        tmp_path: "is a folder, but a file for the table was wanted",
        new: "is the table of new samples. Choose another name",
    }.items():
        code, _, warned = main("predict", made, new, "--out", wrong, "--overwrite")
        assert code == 2
        assert sentence in warned
    assert new.read_text() == NEW.T.to_csv()


def test_hostile_input_is_refused_in_one_sentence(main, made, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NEW.T.drop(index="g3").to_csv("lacking.csv")
    NEW.T.rename(index={"g3": "g2"}).to_csv("repeated.csv")
    NEW.T.assign(s30=-1.0).to_csv("negative.csv")
    NEW.T.iloc[:, :0].to_csv("empty.csv")
    NEW.to_csv("transposed.csv")
    (tmp_path / "folder").mkdir()
    for arguments, sentence in {
        (made, "lacking.csv"): "1 of them is missing: 'g3'. Check the names",
        (made, "repeated.csv"): "1 of them is missing: 'g3'",
        (made, "negative.csv"): "A logarithm needs positive values, but 40 values of X are not",
        (made, "none.csv"): "none.csv",
        (made, "empty.csv"): "empty.csv",
        (made, "transposed.csv", "--features", "rows"): "Give --features, or transpose the table.",
        ("folder", new): "folder holds no result: there is no result.json in it.",
        ("none", new): "none holds no result",
    }.items():
        code, printed, warned = main("predict", *arguments)
        assert (code, printed) == (2, ""), arguments
        assert sentence in warned
        assert warned.count("\n") == 1


def test_a_damaged_result_is_refused(main, made, new, tmp_path):
    shutil.copytree(made, tmp_path / "copy")
    path = tmp_path / "copy" / "centers.csv"
    path.write_text(path.read_text().replace("True", "False"))
    code, _, warned = main("predict", tmp_path / "copy", new)
    assert code == 2
    assert "centers.csv names other features" in warned


def test_a_single_cluster_is_reported(main, tmp_path):
    noise = pd.DataFrame(RNG.normal(size=(60, 30))).rename(index="g{}".format)
    noise.to_csv(tmp_path / "noise.csv")
    main("cluster", tmp_path / "noise.csv", "--out", tmp_path / "result")
    code, printed, warned = main("predict", tmp_path / "result", tmp_path / "noise.csv")
    assert code == 0
    assert printed.splitlines()[1].endswith(",,")
    assert "The result has a single cluster, so every sample is assigned to it." in warned
