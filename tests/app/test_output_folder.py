"""The folder of a run: whole or not at all, and readable by programs that others wrote."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from Bio import Cluster, Phylo
from sklearn.metrics import rand_score

from mrshc.app import fit, make_plan
from mrshc.app import output_folder as outputs
from mrshc.app.output_folder import new_folder, write_outputs
from mrshc.core.trees import Tree
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import Table, load_result, read_table
from mrshc.io.result import FORMAT
from mrshc.plotting.result_pictures import features_for_heatmap

pytestmark = pytest.mark.slow

ALWAYS = {
    *("result.json", "clusters.csv", "features.csv", "search.csv", "linkage.csv", "selected.gct"),
    "centers.csv",
    *("silhouettes.csv", "markers.csv", "tree.nwk", "heatmap.cdt", "heatmap.gtr", "heatmap.atr"),
    *("dendrogram.svg", "dendrogram.png", "heatmap.png", "search.png", "silhouettes.png"),
    "markers.png",
    "report.html",
}
RANKED = {f"markers_cluster_{k}.rnk" for k in (1, 2, 3)}


def run(method="mrshc", n_features=12, **parameters):
    # Few samples and features, because pictures of more take longer to draw.
    data = make_simulation_1(4, mu=2.0, sizes=(9, 8, 7))
    samples = np.array(data.sample_names, dtype=object)
    samples[0] = "it's, a (name)"
    features = np.array(data.feature_names[:60], dtype=object)
    table = Table(
        X=data.X[:, :60],
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame({"class": data.labels.astype(str)}, index=samples),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )
    given = {"n_features_to_select": n_features, "random_state": 0, **parameters}
    return fit(make_plan(table, method=method, parameters=given, truth="class"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("outputs") / "result"
    with new_folder(out) as new:
        write_outputs(run(rank=2, n_references=10), new)
    return out


def test_all_files_are_there(folder):
    pictures = {"splits.png", "loadings.png"}
    assert {f.name for f in folder.iterdir()} == ALWAYS | pictures | RANKED
    assert {f.name for f in folder.iterdir()} <= outputs.output_file_names()
    assert [f.name for f in folder.parent.iterdir()] == ["result"]


@pytest.mark.parametrize(
    ("method", "n_features", "more"),
    [("shc", 30, {"loadings.png"}), ("hmv", 25, set()), ("hmv", 1, set())],
)
@pytest.mark.usefixtures("coarse_pictures")
def test_other_methods_write_the_files_that_apply(tmp_path, method, n_features, more):
    write_outputs(run(method, n_features), tmp_path)
    lost = {"heatmap.gtr"} if n_features == 1 else set()
    names = {f.name for f in tmp_path.iterdir()}
    assert {name for name in names if not name.endswith(".rnk")} == (ALWAYS - lost) | more
    ranked = load_result(tmp_path).ranked_clusters
    assert {f"markers_cluster_{i}.rnk" for i in ranked} <= names


@pytest.mark.usefixtures("coarse_pictures")
def test_one_cluster_writes_the_files_that_apply(tmp_path):
    write_outputs(run("hmv", 25, n_clusters=1), tmp_path)
    pictures = {"silhouettes.png", "markers.png"}
    assert {f.name for f in tmp_path.iterdir()} == ALWAYS - pictures
    assert load_result(tmp_path).markers.empty


def test_the_same_run_writes_the_same_bytes(folder, tmp_path):
    write_outputs(run(rank=2, n_references=10), tmp_path)
    for file in folder.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name


def test_biopython_reads_the_tree(folder):
    result = load_result(folder)
    tree = Phylo.read(io.StringIO((folder / "tree.nwk").read_text()), "newick")
    ours = Tree(linkage_matrix=result.linkage_matrix_)
    names = list(result.samples.index)
    assert [leaf.name for leaf in tree.get_terminals()] == [names[i] for i in ours.leaf_order]
    first, second = tree.root.clades
    left, right = ours.children(ours.root)
    halves = {frozenset(names[i] for i in ours.members(node)) for node in (left, right)}
    assert {frozenset(c.name for c in half.get_terminals()) for half in (first, second)} == halves


def test_bio_cluster_reads_the_heat_map(folder):
    result = load_result(folder)
    lines = (folder / "heatmap.cdt").read_text().splitlines()
    # Bio.Cluster reads tables without the two rows and the column that name the leaves of trees.
    plain = [line.partition("\t")[2] for line in lines if not line.startswith(("AID", "EWEIGHT"))]
    record = Cluster.read(io.StringIO("\n".join(plain) + "\n"))
    order = Tree(linkage_matrix=result.linkage_matrix_).leaf_order
    assert record.expid == [result.samples.index[i] for i in order]
    values = result.selected.iloc[order][list(record.geneid)]
    np.testing.assert_array_equal(record.data, values.to_numpy().T)
    assert lines[1].split("\t")[4:] == [f"ARRY{i}X" for i in order]
    merges = [line.split("\t") for line in (folder / "heatmap.atr").read_text().splitlines()]
    nodes = [Cluster.Node(*(_leaf(name) for name in row[1:3]), 1 - float(row[3])) for row in merges]
    theirs = Cluster.Tree(nodes)
    for k in (2, 5, 20):
        ours = Tree(linkage_matrix=result.linkage_matrix_).cut(k)
        assert rand_score(ours, theirs.cut(k)) == 1


def _leaf(name):
    """Return Bio.Cluster's number of a node: leaves from 0, merges from -1 downwards."""
    number = int("".join(filter(str.isdigit, name)))
    return -number if name.startswith("NODE") else number


def test_the_selected_features_read_back_as_a_table(folder):
    result, table = load_result(folder), read_table(folder / "selected.gct")
    np.testing.assert_array_equal(table.X, result.selected)
    assert list(table.sample_names) == list(result.samples.index)
    np.testing.assert_array_equal(table.sample_annotations["cluster"], result.samples["cluster"])
    effect = result.features.loc[result.selected.columns, "effect_size"]
    np.testing.assert_array_equal(table.feature_annotations["effect_size"], effect)


def test_a_heat_map_of_too_many_features_shows_the_best(monkeypatch):
    monkeypatch.setattr("mrshc.plotting.result_pictures._MAX_HEATMAP_ROWS", 10)
    result = run("hmv", 25)
    shown = features_for_heatmap(result)
    assert shown.shape[1] == 10
    best = result.features[result.features["selected"]]["effect_size"].nlargest(10)
    assert set(shown.columns) == set(best.index)


def write(path, text="new"):
    path.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "text": text}
    (path / "result.json").write_text(json.dumps(about), encoding="utf-8")


def make(out, text="new", *, error=None, meanwhile=lambda: None, **options):
    """Make a result, or fail; `meanwhile` is called before the end."""
    with new_folder(out, **options) as new:
        write(new, text)
        meanwhile()
        if error is not None:
            raise error


def content(out):
    return json.loads((out / "result.json").read_text(encoding="utf-8"))["text"]


def test_an_existing_folder_is_replaced_only_if_asked_for(tmp_path):
    out = tmp_path / "deep" / "out"
    make(out, "first")
    with pytest.raises(UserError, match=r"exists already\. Add --overwrite to replace it"):
        make(out, "second")
    assert content(out) == "first"
    make(out, "second", overwrite=True)
    assert content(out) == "second"
    assert [f.name for f in out.parent.iterdir()] == ["out"]


def test_other_people_s_files_are_never_replaced(tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    make(out)  # empty: nothing to lose
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "chapter.tex").write_text("x")
    for options in ({}, {"overwrite": True}):
        with pytest.raises(UserError, match="holds other files than results"):
            make(tmp_path / "precious", **options)
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="is a file, but a folder for the results was wanted"):
        make(tmp_path / "file", overwrite=True)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(28, "No space left"), ZeroDivisionError()]
)
def test_interrupted_work_leaves_the_old_result(tmp_path, error):
    out = tmp_path / "out"
    make(out, "old")
    with pytest.raises(type(error)):
        make(out, "half", error=error, overwrite=True)
    assert content(out) == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["out"]
    make(out, "new", overwrite=True)
    assert content(out) == "new"


def test_mistakes_of_the_user_leave_nothing(tmp_path):
    with pytest.raises(UserError, match="no"):
        make(tmp_path / "deep" / "out", error=UserError("no"))
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_are_never_removed(tmp_path):
    out = tmp_path / "out"
    make(out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds 'notes\.txt', which mrshc did not write"):
        make(out, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"


def test_files_that_others_write_during_a_run_are_kept(tmp_path):
    out = tmp_path / "out"
    make(out, "old")
    with pytest.raises(UserError, match=r"holds 'notes\.txt', which mrshc did not write"):
        make(out, overwrite=True, meanwhile=lambda: (out / "notes.txt").write_text("mine"))
    assert (content(out), (out / "notes.txt").read_text()) == ("old", "mine")
    assert [f.name for f in tmp_path.iterdir()] == ["out"]


def test_a_pipe_in_place_of_a_result_is_not_read(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "result.json")
    with pytest.raises(UserError, match="holds other files than results"):
        make(out, overwrite=True)


def test_permissions_of_an_existing_folder_are_kept(tmp_path):
    out = tmp_path / "out"
    out.mkdir(mode=0o700)
    for text in ("first", "second"):
        make(out, text, overwrite=True)
        assert (out.stat().st_mode & 0o777, content(out)) == (0o700, text)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with (
        pytest.raises(UserError, match=r"cannot be written to\. Change its permissions"),
        new_folder(tmp_path),
    ):
        pytest.fail("refused after the work only")


@pytest.mark.parametrize("existing", [None, "empty", "old"])
def test_a_folder_that_cannot_be_renamed_is_kept(tmp_path, monkeypatch, existing):
    """Both renames fail in turn, for example by Ctrl-C."""
    out = tmp_path / "out"
    rename = Path.rename
    if existing == "empty":
        out.mkdir()
    elif existing:
        make(out, existing)
    before = [f.name for f in tmp_path.iterdir()]
    for fails in ("out", "new") if existing else ("new",):

        def stop(path, target, fails=fails):
            if path.name == fails:
                raise KeyboardInterrupt
            return rename(path, target)

        monkeypatch.setattr(Path, "rename", stop)
        with pytest.raises(KeyboardInterrupt):
            make(out, "new", overwrite=True)
        monkeypatch.undo()
        assert [f.name for f in tmp_path.iterdir()] == before
        assert existing != "old" or content(out) == "old"


def test_of_two_runs_with_the_same_folder_the_second_is_refused(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match="exists already"):
        make(out, "second", meanwhile=lambda: make(out, "first"))
    assert content(out) == "first"


@pytest.mark.parametrize(
    "text", ['{"format": "other"}', "{}", "[]", "half a fil", "[" * 100_000, '{"work": "x"}']
)
def test_a_result_of_another_program_is_never_replaced(tmp_path, text):
    out = tmp_path / "out"
    out.mkdir()
    (out / "result.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="holds other files than results"):
        make(out, overwrite=True)
    assert (out / "result.json").read_text(encoding="utf-8") == text


def test_a_folder_or_link_with_the_name_of_an_output_is_never_removed(tmp_path):
    out, thesis = tmp_path / "out", tmp_path / "thesis.tex"
    thesis.write_text("all of it", encoding="utf-8")
    make(out)
    (out / "markers.csv").mkdir()
    with pytest.raises(UserError, match=r"'markers\.csv', which mrshc did not write"):
        make(out, overwrite=True)
    (out / "markers.csv").rmdir()
    (out / "markers.csv").symlink_to(thesis)
    with pytest.raises(UserError, match=r"'markers\.csv', which mrshc did not write"):
        make(out, overwrite=True)
    assert (out / "markers.csv").read_text(encoding="utf-8") == "all of it"


def test_results_go_where_a_link_points(tmp_path):
    target, link = tmp_path / "disk" / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in ("first", "second"):
        make(link, text, overwrite=True)
        assert link.is_symlink()
        assert content(target) == text
    assert [f.name for f in target.parent.iterdir()] == ["target"]


def test_folders_without_a_name_of_their_own(tmp_path, monkeypatch):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UserError, match="is a symbolic link without a target"):
        make(tmp_path / "a")
    with pytest.raises(UserError, match="cannot be a folder for the results"):
        make(Path("/"), overwrite=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UserError, match="The current folder cannot be replaced"):
        make(Path())


@pytest.mark.parametrize("name", ["out", "new"])
def test_an_interruption_after_a_rename_leaves_a_whole_result(tmp_path, monkeypatch, name):
    out = tmp_path / "out"
    make(out, "old")
    rename = Path.rename

    def stop(path, target):
        rename(path, target)
        if path.name == name:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(KeyboardInterrupt):
        make(out, "new", overwrite=True)
    assert content(out) == {"out": "old", "new": "new"}[name]
    assert [f.name for f in tmp_path.iterdir()] == ["out"]
