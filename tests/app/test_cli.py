"""The command line, with real files and processes."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from sklearn.metrics import silhouette_samples

from command_line import (
    WITHOUT_PICTURES,
    files_limited_to,
    mrshc,
    run_on_terminal,
)
from mrshc import __version__
from mrshc.app.cli import COMMANDS
from mrshc.app.cli.help_layout import MOST_USED
from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of
from mrshc.core.trees import Tree
from mrshc.datasets import make_simulation_1
from mrshc.io import load_result
from mrshc.io.result import write_result
from tiny import tiny_result

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MRSHC_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Write 60 samples, 120 features in rows, with classes in a second file."""
    folder = tmp_path_factory.mktemp("tables")
    data = make_simulation_1(6, mu=2.0)
    names = [f"s{i}" for i in range(60)]
    frame = pd.DataFrame(data.X[:, :120].T, data.feature_names[:120], names)
    frame.to_csv(folder / "expression.tsv", sep="\t", index_label="gene")
    meta = pd.DataFrame({"sample": names, "class": [f"c{label}" for label in data.labels]})
    meta.to_csv(folder / "clinic.csv", index=False)
    return folder / "expression.tsv", folder / "clinic.csv"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, mrshc("demo", cwd=folder, pictures=True)


def test_demo_reports_the_result_and_its_folder(demo):
    folder, done = demo
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no progress bar where there is no terminal"
    assert "Recommended method: association, Ward's linkage." in done.stdout
    procedures = re.findall(r"│ (recommended|paper) +│ +(\d+) +│ +3 +│", done.stdout)
    assert [name for name, _ in procedures] == ["recommended", "paper"]
    assert re.search(r"Against 'true class': classification error rate [01]\.\d+", done.stdout)
    last = done.stdout.strip().splitlines()[-1]
    assert last == "Results written to mrshc-demo; open mrshc-demo/report.html"
    result = load_result(folder / "mrshc-demo")
    assert result.n_clusters_ == 3
    kinds = result.features.groupby("kind")["selected"].sum()
    assert kinds["useful"] > kinds["noise"]


def test_demo_runs_twice(main, demo, tmp_path, monkeypatch):
    """The second run draws no pictures: that they are replaced is tested with output folders."""
    folder, first = demo
    pictures = shutil.ignore_patterns("*.png", "*.svg")
    shutil.copytree(folder / "mrshc-demo", tmp_path / "mrshc-demo", ignore=pictures)
    monkeypatch.chdir(tmp_path)
    assert main("demo") == (0, first.stdout, "")


def test_cluster_reports_how_the_table_was_read_and_the_result(main, table, tmp_path):
    file, meta = table
    out = tmp_path / "result"
    code, printed, progress = main(
        *("cluster", file, "--samples", meta, "--truth", "class", "--out", out),
        *("--top-variance", "80", "--n-features", "10,20,40", "--max-rank", "2", "-j", "1"),
        "--paper",
    )
    assert (code, progress) == (0, "")
    lines = printed.splitlines()
    assert "120 features and 60 samples; features in rows" in lines[0]
    assert any("40 features removed, 80 left." in line for line in lines)
    assert any("Chose q =" in line and "of 80 features" in line for line in lines)
    assert lines[-1] == f"Results written to {out}; open {out / 'report.html'}"
    result = load_result(out)
    assert result.about["parameters"]["n_features_to_select"] == [10, 20, 40]
    assert "--top-variance 80" in result.about["command"]
    assert result.about["scores"]["cer"] < 0.1


@pytest.mark.parametrize("options", [(), ("--paper", "-q", "10", "-r", "1")])
def test_a_given_number_of_clusters_is_obtained_even_in_noise(main, tmp_path, options):
    X = np.random.default_rng(0).normal(size=(30, 40))
    frame = pd.DataFrame(X, [f"s{i}" for i in range(30)], [f"g{j}" for j in range(40)])
    frame.to_csv(tmp_path / "noise.csv")
    given = ("-k", "2", "-j", "1", *options, "--out", tmp_path / "out")
    code, printed, _ = main("cluster", tmp_path / "noise.csv", *given)
    assert code == 0
    assert "K = 2 clusters" in printed
    assert "no groups" not in printed
    starts = ("Note: The", "The clusters are not supported by held-out features")
    assert len([line for line in printed.splitlines() if line.startswith(starts)]) == 1
    assert load_result(tmp_path / "out").n_clusters_ == 2


def test_quiet_runs_still_warn_of_clusters_that_are_not_supported(main, tmp_path):
    file = tmp_path / "noise.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 100))).to_csv(file)
    given = ("-k", 3, "--features", "columns", "--quiet", "--out", tmp_path / "out")
    code, printed, warned = main("cluster", file, *given)
    assert (code, printed, warned.count("\n")) == (0, "", 1)
    assert warned.startswith("mrshc: The clusters are not supported by held-out features")


def test_quiet_and_json(main, table, tmp_path):
    file, _ = table
    same = ("cluster", file, "--paper", "-q", "20", "-r", "1", "--out", tmp_path / "out")
    assert main(*same, "--quiet") == (0, "", "")
    code, printed, _ = main(*same, "--json", "--overwrite")
    assert code == 0
    about = json.loads(printed)
    assert about == load_result(tmp_path / "out").about


def test_the_recommended_procedure_is_the_default(main, table, tmp_path):
    procedures = {
        (): ("association", "ward", "Recommended method: association, Ward's linkage."),
        ("--paper",): ("mrshc", "complete", "Procedure of the paper (--paper): method mrshc, comp"),
        ("--method", "mrshc"): ("mrshc", "complete", "Method: mrshc, complete linkage."),
        ("--linkage", "average"): ("association", "average", "Recommended method: association, av"),
        ("--metric", "cityblock"): ("association", "complete", "Recommended method: association"),
    }
    for i, (options, (method, linkage, sentence)) in enumerate(procedures.items()):
        out = tmp_path / str(i)
        code, printed, _ = main("cluster", table[0], *options, "--out", out)
        assert code == 0
        assert any(line.startswith(sentence) for line in printed.splitlines())
        about = load_result(out).about
        assert (about["method"], about["parameters"]["linkage"]) == (method, linkage)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--method", "hc"), "--paper is the method mrshc, but --method hc was given"),
        (("--method", "association"), "--paper is the method mrshc, but --method association"),
    ],
)
def test_the_procedure_of_the_paper_is_no_other_method(main, table, tmp_path, options, sentence):
    code, _, printed = main("cluster", table[0], "--paper", *options, "--out", tmp_path / "out")
    assert code == 2
    assert sentence in " ".join(printed.split())
    assert not (tmp_path / "out").exists()


def test_every_parameter_of_mrshc_can_be_given(main, table, tmp_path):
    file, _ = table
    code, *_ = main(
        *("cluster", file, "--out", tmp_path / "out", "--n-features", "15", "--rank", "2"),
        *("--max-rank", "3", "--n-clusters", "4", "--linkage", "average", "--metric", "cityblock"),
        *("--n-references", "20", "--feature-tolerance", "2"),
        *("--center", "grand", "--seed", "5", "--jobs", "1"),
        *("--method", "mrshc", "--robust"),
    )
    assert code == 0
    assert load_result(tmp_path / "out").about["parameters"] == {
        "n_features_to_select": 15,
        "rank": 2,
        "max_rank": 3,
        "n_clusters": 4,
        "linkage": "average",
        "metric": "cityblock",
        "n_references": 20,
        "feature_tolerance": 2,
        "center": "grand",
        "random_state": 5,
        "robust": True,
    }


@pytest.fixture(scope="module")
def spoilt(table, tmp_path_factory):
    """Write the same table with two samples that failed, and with gaps."""
    frame = pd.read_csv(table[0], sep="\t", index_col="gene")
    rng = np.random.default_rng(0)
    frame[["s3", "s44"]] += rng.normal(scale=9, size=(120, 2))
    file = tmp_path_factory.mktemp("spoilt") / "spoilt.tsv"
    frame.mask(rng.random(frame.shape) < 0.05).to_csv(file, sep="\t")
    return file


def test_robust_clustering_from_end_to_end(main, spoilt, tmp_path):
    out = tmp_path / "out"
    code, printed, _ = main("cluster", spoilt, "--robust", "--out", out)
    assert code == 0
    assert "values are missing" in printed
    assert re.search(r"supported by held-out features: \d+ features are associated", printed)
    assert "Note: Samples s3, s44 are outlying" in printed
    clusters = pd.read_csv(out / "clusters.csv", index_col="sample")
    assert clusters.index[clusters["outlying"]].tolist() == ["s3", "s44"]
    features = pd.read_csv(out / "features.csv", index_col="feature")
    assert (features["q_value"] <= 0.05).equals(features["associated"])
    markers = pd.read_csv(out / "markers.csv")
    assert set(markers["feature"]) <= set(features.index)
    first = markers.query("contrast == 'cluster'").iloc[0]
    inside = (clusters["cluster"] == int(first["inside"])) & ~clusters["outlying"]
    assert first["n_inside"] == inside.sum()


def test_compare_takes_the_options_of_the_methods(main, spoilt, table, tmp_path):
    out = tmp_path / "comparison"
    given = ("--samples", table[1], "--truth", "class", "-q", "20", "--out", out)
    code, printed, _ = main("compare", spoilt, *given, "--robust")
    assert code == 0
    assert re.search(r"^MrSHC: Samples s3, s44 are outlying", printed, re.MULTILINE)
    scores = pd.read_csv(out / "scores.csv", index_col="method")
    assert scores["cer"].idxmin() in ("MrSHC", "AssociationHC")
    about = json.loads((out / "comparison.json").read_text())
    assert about["methods"]["MrSHC"]["outliers"] == [3, 44]
    assert "--robust" in about["command"]


@pytest.mark.parametrize("method", ["mrshc", "hc", "hmv"])
def test_correlations_are_a_metric_of_the_command_line(main, table, tmp_path, method):
    file, meta = table
    out = tmp_path / "out"
    given = {"hc": ()}.get(method, ("--n-features", "20"))
    code, *_ = main(
        *("cluster", file, "--samples", meta, "--truth", "class", "--out", out, "--method", method),
        *("--metric", "correlation", "--linkage", "average", *given),
    )
    assert code == 0
    result = load_result(out)
    assert (result.metric, result.linkage) == ("correlation", "average")
    assert "--metric correlation" in result.about["command"]
    distances = 1 - np.corrcoef(result.selected.to_numpy())
    expected = scipy_linkage(distances[np.triu_indices(60, 1)], "average")
    np.testing.assert_allclose(result.linkage_matrix_[:, 2], expected[:, 2], atol=1e-9)
    np.fill_diagonal(distances, 0.0)
    labels = Tree(linkage_matrix=result.linkage_matrix_).cut(3)
    widths = silhouette_samples(distances, labels, metric="precomputed")
    np.testing.assert_allclose(result.silhouettes["cut_3"], widths, atol=1e-9)
    assert '"height_label":"1 - correlation"' in (out / "report.html").read_text("utf-8")


def test_correlations_are_refused_where_they_have_no_meaning(main, table, tmp_path):
    file, _ = table
    correlation = ("--metric", "correlation", "--out", tmp_path / "out")
    for command, sentence in {
        ("cluster", file, "--paper", "-q2"): "--n-features must be at least 3 for --metric corr",
        ("cluster", file, "--method", "shc"): "--metric must be one of 'sqeuclidean'",
        ("cluster", file, "--top-variance", "2"): "at least 3 features that vary for --metric corr",
    }.items():
        code, _, printed = main(*command, *correlation)
        assert code == 2, command
        assert sentence in " ".join(printed.split()), command


def test_options_of_the_spike_and_slab_lasso(main, table, tmp_path):
    file, _ = table
    out = tmp_path / "out"
    penalty = ("--method", "shc", "--penalty", "ssl")
    code, _, _ = main(
        *("cluster", file, *penalty, "--spike-penalty", "30,90", "--slab-penalty", 2),
        *("--n-permutations", 2, "--n-clusters", 3, "--out", out),
    )
    assert code == 0
    result = load_result(out)
    assert [row["spike_penalty"] for row in result.about["search"]] == [30.0, 90.0]
    assert result.about["parameters"]["slab_penalty"] == 2.0
    assert "(SHC-SSL) of" in (out / "report.html").read_text(encoding="utf-8")
    code, _, errors = main("cluster", file, *penalty, "-q", 20, "--out", tmp_path / "other")
    assert code == 2
    assert "--n-features has an effect only if penalty is not 'ssl', got 20" in errors


def test_compare_takes_the_names_of_methods(main, table, tmp_path):
    file, _ = table
    out = tmp_path / "comparison"
    methods = "hc, shc-ssl,sparse-kmeans"
    code, printed, _ = main(
        *("compare", file, "--methods", methods, "--n-clusters", 2, "--out", out)
    )
    assert "\nFitting 3 methods: " in printed
    assert code == 0
    assert pd.read_csv(out / "scores.csv")["method"].tolist() == ["HC", "SHC-SSL", "Sparse K-means"]
    assert all(name in printed for name in ("HC", "SHC-SSL", "Sparse K-means"))
    code, _, errors = main(
        *("compare", file, "--methods", "hc,kmeans", "--out", tmp_path / "other")
    )
    assert code == 2
    assert "--methods must name different methods out of association, mrshc" in errors
    assert not (tmp_path / "other").exists()


def test_compare_names_a_method_that_has_no_correlations(main, table, tmp_path):
    file, _ = table
    given = ("--methods", "hc,shc", "--metric", "correlation", "--out", tmp_path / "out")
    code, printed, errors = main("compare", file, *given)
    assert code == 0
    assert "SHC failed: metric must be one of 'sqeuclidean', 'cityblock'" in errors
    assert "HC " in printed


def test_compare_goes_on_after_a_method_that_failed(main, table, tmp_path):
    file, _ = table
    out = tmp_path / "comparison"
    code, printed, errors = main(
        *("compare", file, "--methods", "cosa,hc", "--linkage", "ward", "--out", out)
    )
    assert code == 0
    assert "COSA failed: linkage must be one of" in " ".join(errors.split())
    assert "--linkage" not in printed
    scores = pd.read_csv(out / "scores.csv").set_index("method")
    assert scores["error"].notna().to_dict() == {"COSA": True, "HC": False}
    code, _, errors = main(
        *("compare", file, "--methods", "cosa", "--linkage", "ward", "--out", tmp_path / "other")
    )
    assert code == 2
    assert "--linkage must be one of" in errors
    assert not (tmp_path / "other").exists()


def test_compare_leaves_scores_and_trees(main, table, tmp_path):
    file, meta = table
    out = tmp_path / "comparison"
    code, printed, _ = main(
        *("compare", file, "--samples", meta, "--truth", "class", "--out", out, "-q", "20")
    )
    assert code == 0
    for name in ("AssociationHC", "HMV 500, Ward", "MrSHC", "SHC", "HC", "HC-HMV"):
        assert f"│ {name} " in printed
    scores = pd.read_csv(out / "scores.csv", index_col="method")
    assert list(scores.columns) == ["n_features", "rank", "cluster_sizes", "cer", "ari", "purity"]
    assert scores.loc["MrSHC", "cer"] < 0.1
    assert scores.loc["MrSHC", "ari"] > 0.8
    assert printed.count("\ncer: classification error rate, the share of pairs of samples") == 1
    assert printed.count("\nari: adjusted Rand index") == 1
    files = {f.name for f in out.iterdir()}
    assert files == {
        *("scores.csv", "comparison.json", "report.html", "dendrograms.png", "dendrograms.svg")
    }
    code, _, sentence = main("compare", file, "--out", out)
    assert (code, sentence.count("\n")) == (2, 1)
    assert "exists already" in sentence


@pytest.mark.skipif(not DATA.exists(), reason=f"the real data sets are not in {DATA}")
@pytest.mark.parametrize(
    ("name", "options", "n_features", "n_samples"),
    [
        ("lymphoma", (), 4026, 62),
        ("golub7129", ("--preset", "dudoit2002"), 7129, 72),
    ],
)
def test_real_tables_run_through(main, tmp_path, name, options, n_features, n_samples):
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as content:
        X, y = content["X"], content["y"]
        genes = content["feature_names"] if "feature_names" in content else range(n_features)
    samples = [f"sample{i}" for i in range(n_samples)]
    frame = pd.DataFrame(X.T, index=pd.Index(genes, name="gene"), columns=samples)
    frame.to_csv(tmp_path / "table.tsv", sep="\t")
    pd.DataFrame({"sample": samples, "class": y}).to_csv(tmp_path / "meta.csv", index=False)
    reading = (tmp_path / "table.tsv", "--samples", tmp_path / "meta.csv", "--truth", "class")
    code, printed, _ = main("cluster", *reading, *options, "--out", tmp_path / "out")
    assert code == 0
    assert f"{n_features:,} features and {n_samples} samples; features in rows" in printed
    result = load_result(tmp_path / "out")
    assert len(result.features) == (3571 if name == "golub7129" else n_features)


def test_the_preset_and_classical_clustering_give_what_the_literature_has(main, tmp_path):
    if not DATA.exists():
        pytest.skip(f"the real data sets are not in {DATA}")
    with np.load(DATA / "golub7129.npz", allow_pickle=False) as content:
        np.savez(tmp_path / "golub.npz", X=content["X"], y=content["y"])
    given = ("--preset", "dudoit2002", "--method", "hc", "-k", "2", "--truth", "y", "--json")
    code, printed, _ = main("cluster", tmp_path / "golub.npz", *given, "--out", tmp_path / "out")
    assert code == 0
    about = json.loads(printed)
    assert about["chosen"]["n_features"] == 3571
    assert about["scores"]["cer"] == pytest.approx(0.11, abs=0.01)


GOOD = "gene,a,b,c,d\n" + "".join(f"g{i},{i},{i * i % 7},{i % 5},{-i}\n" for i in range(12))
MISTAKES = {
    "no such file": ("none.csv", (), "There is no file"),
    "a folder": (".", (), "is a folder"),
    "an empty file": ("", (), "is empty"),
    "a header only": ("gene,a,b,c\n", (), "holds a header only"),
    "one sample": ("gene,a\nx,1\ny,2\n", (), "at least 3 samples"),
    "text": (
        GOOD.replace("g3,3", "g3,three"),
        (),
        "the text 'three'.*line 5, row 'g3', column 'a'",
    ),
    "a ragged row": (GOOD.replace("g3,3", "g3,3,3"), (), "has 6 cells in line 5 where 5"),
    "no such truth": (GOOD, ("--truth", "klass"), "no annotation 'klass' of the samples; there"),
    "too strict a filter": (GOOD, ("--min-difference", "1000"), "removed 12 of 12 features"),
    "q in words": (GOOD, ("-q", "many"), "--n-features must be a whole number, several"),
    "no workers": (GOOD, ("--jobs", "0"), "--jobs must be a whole number of workers"),
    "infinity": (GOOD.replace("g3,3", "g3,inf"), (), "inf .first in sample 'a', feature 'g3'."),
    "a sample without values": (
        re.sub(r"(?m)^(g\d+),-?\d+", r"\1,", GOOD),
        (),
        "Every sample needs a value, but sample 'a' has none",
    ),
    "a floor above the ceiling": (GOOD, ("--floor", "3", "--ceiling", "1"), "--floor must not be"),
    "a strange separator": (GOOD, ("--separator", "ab"), "A separator must be a single character"),
    "no such samples": (GOOD, ("--samples", "none.csv"), "There is no file none.csv"),
    "a sample without values in what is left": (
        re.sub(r"(?m)^(g(?!1,)\d+),-?\d+", r"\1,", GOOD),
        ("--min-difference", "5"),
        "sample 'a' has none in the",
    ),
}
MISFITS = {
    "metric, cosa": ("cosa", ("--metric", "cityblock"), "--metric has no meaning for method cosa"),
    "features, cosa": ("cosa", ("-q", "5"), "--n-features has no meaning for method cosa"),
    "features, association": (
        "association",
        ("-q", "5"),
        "--n-features has no meaning for method association",
    ),
    "robust, shc": ("shc", ("--robust",), "--robust has no meaning for method shc"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_options_that_do_not_fit_the_method_are_refused(main, table, tmp_path, misfit):
    method, options, sentence = MISFITS[misfit]
    out = tmp_path / "out"
    given = ("--method", method, *options, "--out", out, "--quiet")
    code, _, printed = main("cluster", table[0], *given)
    assert (code, printed) == (2, f"mrshc: {sentence}. Leave it out.\n")
    assert not out.exists()


@pytest.mark.parametrize("command", ["cluster", "compare"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_sentence_and_leave_nothing(main, tmp_path, monkeypatch, mistake, command):
    content, options, sentence = MISTAKES[mistake]
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    file = content
    if "\n" in content or not content:
        file = tmp_path / "table.csv"
        file.write_text(content)
    code, _, printed = main(command, file, "--out", "out", "--quiet", *options)
    assert code == 2
    assert re.search(sentence, printed)
    assert printed.startswith("mrshc: ")
    assert printed.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_options_that_do_not_exist_are_the_users_mistake(main, table, tmp_path):
    code, _, printed = main("cluster", table[0], "--linkage", "nearest", "--out", tmp_path / "out")
    assert code == 2
    assert "nearest" in printed
    assert main("clutser", table[0])[0] == 2


def test_an_output_folder_that_cannot_be_written_to(main, table, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, printed = main(
        "cluster", table[0], "--paper", "-q", "9", "--out", tmp_path / "file" / "out", "--quiet"
    )
    assert code == 2
    assert printed.startswith("mrshc: cannot read or write")
    assert printed.count("\n") == 1
    code, _, printed = main("cluster", table[0], "--paper", "-q", "9", "--out", "/proc/mrshc")
    assert (code, printed.count("\n")) == (2, 1)


def test_a_refused_run_leaves_no_folder_above(main, table, tmp_path):
    code, _, printed = main(
        "cluster", table[0], "--out", tmp_path / "a" / "b", "--paper", "-q", "9999", "--quiet"
    )
    assert (code, list(tmp_path.iterdir())) == (2, [])
    assert "--n-features must be a whole number in [1, 120], got 9999. Lower it" in printed


def test_the_demo_replaces_only_its_own_result(main, table, tmp_path):
    out = tmp_path / "out"
    assert main("cluster", table[0], "--paper", "-q", "20", "--out", out, "--quiet")[0] == 0
    code, _, printed = main("demo", "--out", out)
    assert code == 2
    assert (
        "exists already and holds results other than the demo's. Choose another folder" in printed
    )


def test_a_damaged_result_has_no_new_report(main, tmp_path):
    write_result(tiny_result(), tmp_path)
    (tmp_path / "linkage.csv").write_text("left,right,height,size\n")
    code, _, printed = main("report", tmp_path)
    wanted = (
        "is not a complete result: linkage.csv has 0 rows where 5 were expected. Make it again."
    )
    assert (code, printed) == (2, f"mrshc: {tmp_path} {wanted}\n")
    assert not (tmp_path / "report.html").exists()


def test_the_report_can_be_made_again(main, table, tmp_path):
    out = tmp_path / "out"
    assert main("cluster", table[0], "--paper", "-q", "20", "--out", out, "--quiet")[0] == 0
    first = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    code, printed, _ = main("report", out)
    assert (code, printed) == (0, f"Report written to {out / 'report.html'}\n")
    assert (out / "report.html").read_bytes() == first
    code, _, printed = main("report", tmp_path)
    assert (code, printed.count("\n")) == (2, 1)
    assert "holds no result" in printed


def test_a_full_disk_leaves_no_folder(main, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("cluster", table[0], "--paper", "-q", "20", "-r", "1", "--quiet")
    # Compiled code is stored before files are limited.
    assert main(*command, "--out", "unlimited")[0] == 0
    with files_limited_to(20_000):
        code, _, printed = main(*command, "--out", "out")
    assert code == 2
    assert "cannot read or write" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "out").exists()
    assert main(*command, "--out", "out", "--overwrite")[0] == 0


def test_help_teaches_by_example(main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, printed, _ = main("--help")
    assert code == 0
    for command in ("demo", "cluster", "compare", "report"):
        assert command in printed
        code, help_text, _ = main(command, "--help")
        assert code == 0
        assert f"  mrshc {command}" in help_text[help_text.index("Examples:") :]
        assert max(map(len, help_text.splitlines())) <= 80
    assert "mrshc demo" in printed


def test_the_help_lists_the_most_used_options_first(main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, printed, _ = main("cluster", "--help")
    assert 80 < max(map(len, printed.splitlines())) <= 100
    listed = "".join(main(command.__name__, "--help")[1] for command in COMMANDS)
    for name in MOST_USED:
        assert f"--{name.replace('_', '-')}" in listed
    titles = [line for line in printed.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[:3] == ["Arguments:", "Most used:", "Reading:"]
    # Versions of typer write <path> or PATH after the option.
    assert printed.index("-o, --out ") < printed.index("Reading:")
    assert printed.startswith("Usage: ")
    assert "[OPTIONS] FILE\n" in printed
    assert "[OPTIONS] FILE\n" in main("cluster", "x.csv", "--linkage", "far")[2]


def test_the_help_is_shown_without_arguments(main):
    assert main() == main("--help")
    assert main()[1].startswith("Usage: ")


def test_annotations_are_another_table(main, table, tmp_path):
    file, _ = table
    code, _, printed = main("cluster", file, "--samples", file, "--out", tmp_path / "out")
    assert code == 2
    assert "--samples must name a table of annotations, but" in printed


def test_the_version_is_that_of_the_package(main):
    code, printed, _ = main("--version")
    assert (code, printed) == (0, f"mrshc {__version__}\n")
    assert __version__ == version("mrshc")
    done = subprocess.run(
        [sys.executable, "-m", "mrshc", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == printed


@pytest.mark.parametrize(
    ("words", "completion"),
    [
        ("mrshc comp", "compare"),
        ("mrshc cluster --link", "--linkage"),
        ("mrshc cluster x.csv --linkage wa", "ward"),
    ],
)
def test_shells_complete_commands_options_and_choices(words, completion):
    environment = {"_MRSHC_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split()) - 1)
    program = "import sys; sys.argv = ['mrshc']; from mrshc.app.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [completion]


def test_a_wrong_path_is_reported_before_anything_else(main, table, tmp_path):
    file, _ = table
    existing = tmp_path / "existing"
    existing.mkdir()
    (existing / "file").touch()
    code, _, printed = main("cluster", "nowhere.tsv", "--out", existing)
    assert (code, printed) == (2, "mrshc: There is no file nowhere.tsv. Check the name.\n")
    code, _, printed = main("compare", file, "--samples", "nobody.csv", "--out", existing)
    assert (code, printed) == (2, "mrshc: There is no file nobody.csv. Check the name.\n")


def test_progress_is_shown_on_a_terminal_only(main, table, tmp_path, monkeypatch):
    monkeypatch.setattr("mrshc.core.parallel._DELAY", 0.0)
    search = ("--paper", "-q", "10,20", "--max-rank", "2")
    given = ("cluster", table[0], *search, "--out", tmp_path / "out")
    code, printed, seen = run_on_terminal(main, *given)
    assert code == 0
    assert "Chose " in printed
    for step in (b"Reading", b"MrSHC", b"Writing"):
        assert step in seen
    code, _, progress = main(*given, "--overwrite")
    assert (code, progress) == (0, "")


@pytest.mark.parametrize(
    ("by", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_stopped_run_keeps_the_earlier_result_and_can_be_started_again(main, tmp_path, by, code):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "table.npy", rng.normal(size=(100, 2000)))
    out = tmp_path / "out"
    write_result(tiny_result(), _make_folder(out))
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    command = ["cluster", tmp_path / "table.npy", "--features", "columns", "--quiet", "--overwrite"]
    with subprocess.Popen(
        [*WITHOUT_PICTURES, *map(str, command), "--paper", "-j", "1", "--out", out],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:
        while run.poll() is None and not [*tmp_path.glob("out.partial-*")]:
            time.sleep(0.005)
        time.sleep(0.5)
        run.send_signal(by)
        assert (run.wait(timeout=60), run.stderr.read()) == (code, "")
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert bool([*tmp_path.glob("out.partial-*")]) == (by == signal.SIGKILL)
    assert main(*command, "--method", "hmv", "-q", "9", "--out", out)[0] == 0
    assert load_result(out).about["method"] == "hmv"


def _make_folder(folder):
    folder.mkdir()
    return folder


def test_a_stopped_demo_leaves_nothing_and_can_be_started_again(main, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("mrshc.app.output_folder.write_outputs", stop)
        code, _, printed = main("demo", "--out", tmp_path / "out")
    assert (code, "No space left on device" in printed) == (2, True)
    assert list(tmp_path.iterdir()) == []
    assert main("demo", "--out", tmp_path / "out")[0] == 0


def test_an_impossible_seed_is_the_users_mistake(main):
    code, _, printed = main("demo", "--seed", "-1")
    assert code == 2
    assert "Traceback" not in printed


# Neither a language nor an encoding, as for jobs of services.
BARE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"]}


# Runs commands that are separated by a semicolon and prints their exit codes. The first one draws
# pictures with the names of samples and of features.
SEVERAL_COMMANDS = """if True:
    import sys

    from mrshc.app import cli
    from mrshc.plotting.result_pictures import PICTURES

    for name in set(PICTURES) - {"dendrogram", "heatmap"}:
        del PICTURES[name]
    words = iter(sys.argv[1:])
    while arguments := list(iter(lambda: next(words, ";"), ";")):
        sys.argv = ["mrshc", *arguments]
        try:
            cli.main()
        except SystemExit as ended:
            print("exit", ended.code, flush=True)
        PICTURES.clear()
"""


@pytest.fixture(scope="module")
def bare_locale(tmp_path_factory):
    """Cluster names beyond ASCII in a locale without an encoding.

    One process runs all commands, since the start takes most of its time. Returns the folder, the
    table, and the standard output of each command.
    """
    folder = tmp_path_factory.mktemp("bare")
    X = make_simulation_1(6, mu=2.0, sizes=(6, 5, 4)).X[:, 40:60]
    genes = [f"β-catenin \N{DNA DOUBLE HELIX} {j}" for j in range(20)]
    frame = pd.DataFrame(X.T, genes, [f"Müller s{i}" for i in range(15)])
    frame.to_csv(folder / "genes.tsv", sep="\t")
    same = ("cluster", "genes.tsv", "--method", "hmv", "-q", "8")
    arguments = [*same, "--out", "out", ";", "report", "out", ";"]
    arguments += [*same, "--json", "--out", "Größe"]
    command = [sys.executable, "-c", SEVERAL_COMMANDS, *arguments]
    done = subprocess.run(command, capture_output=True, check=True, cwd=folder, env=BARE)
    assert done.stderr == b""
    *printed, rest = done.stdout.split(b"exit 0\n")
    assert (len(printed), rest) == (3, b"")
    return folder, frame, printed


def test_names_beyond_ascii_in_a_locale_without_an_encoding(bare_locale):
    folder, frame, _ = bare_locale
    result = load_result(folder / "out")
    assert result.samples.index[0] == "Müller s0"
    assert set(result.features.index) == set(frame.index)
    assert "β-catenin" in (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert (folder / "out" / "heatmap.png").exists()
    assert "Müller s0" in (folder / "out" / "dendrogram.svg").read_text(encoding="utf-8")


def test_json_is_utf_8_in_any_locale(bare_locale):
    folder, _, (*_, printed) = bare_locale
    assert json.loads(printed.decode("utf-8")) == json.loads(
        (folder / "Größe" / "result.json").read_text(encoding="utf-8")
    )


def test_a_file_name_that_is_not_text(main, table, tmp_path, monkeypatch):
    odd = os.fsdecode(b"gr\xf6\xdfe.tsv")
    shutil.copy(table[0], tmp_path / odd)
    monkeypatch.chdir(tmp_path)
    code, printed, wrong = main("cluster", odd, "--method", "hmv", "-q", "20", "--out", "out")
    assert (code, wrong) == (0, "")
    assert r"gr\xf6\xdfe.tsv" in printed
    assert load_result(tmp_path / "out").about["data"]["source"] == r"gr\xf6\xdfe.tsv"


def test_too_little_memory_is_one_sentence(main, table, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 8. TiB")

    monkeypatch.setattr("mrshc.app.fit_estimator", fail)
    code, _, printed = main("cluster", table[0], "--out", tmp_path / "out")
    assert (code, printed.count("\n")) == (2, 1)
    assert "Not enough memory (Unable to allocate 8. TiB)." in printed
    assert list(tmp_path.iterdir()) == []


def test_no_features_of_highest_variance_are_refused(main, table, tmp_path):
    code, _, printed = main("cluster", table[0], "--top-variance", "0", "--out", tmp_path / "out")
    assert (code, printed.count("\n")) == (2, 1)
    assert "--top-variance must be a whole number" in printed


def test_temporary_files_go_next_to_the_results_without_a_usual_folder(tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "tempdir", None)
    use_temporary_folder_of(tmp_path / "deep" / "out")
    assert tempfile.gettempdir() != str(tmp_path), "the usual folder is used where there is one"
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    use_temporary_folder_of(tmp_path / "deep" / "out")
    assert tempfile.tempdir == str(tmp_path)
