"""The options --significance and --stability of the command line."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from command_line import run_on_terminal
from mrshc.io import load_result
from mrshc.shell.text_cleaning import clean_text

pytestmark = pytest.mark.slow

FAST = ("--method", "hmv", "-q", "8", "-j", "1")
BOTH = ("--significance", "--simulations", "10", "--stability", "--resamples", "3")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Write 30 samples in two clusters, and 12 features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 12))
    X[15:, :8] += 4.0
    path = tmp_path_factory.mktemp("tables") / "expression.csv"
    pd.DataFrame(X, [f"s{i}" for i in range(30)], [f"g{j}" for j in range(12)]).to_csv(path)
    return path


def test_both_analyses_are_printed_and_stored(main, table, tmp_path):
    out = tmp_path / "out"
    level = ("--significance-level", "0.01", "--seed", "4")
    code, printed, warned = main("cluster", table, *FAST, *BOTH, *level, "--out", out)
    assert (code, warned) == (0, "")
    assert re.search(
        r"^Significance: there are \d significant clusters at the level 0\.01", printed, re.M
    )
    assert re.search(
        r"^Stability: Jaccard index of each cluster in 3 subsamples of 80%", printed, re.M
    )
    assert "add --s" not in printed
    assert "without clusters, up to 10 times for each test.\nRepeating the fit on 3 sub" in printed
    result = load_result(out)
    assert result.significance["alpha"] == 0.01
    assert result.significance["n_simulations"] == 10
    assert result.stability["n_resamples"] == 3
    assert result.branches["n_simulations"].max() == 10
    assert (out / "branches.csv").exists()
    assert " --significance --simulations 10 --stability " in result.about["command"]


def test_the_seed_determines_both_analyses(main, table, tmp_path):
    def run(name, *options):
        assert main("cluster", table, *FAST, *BOTH, *options, "--out", tmp_path / name)[0] == 0
        return load_result(tmp_path / name)

    first, again, other = run("a"), run("b"), run("c", "--seed", "1")
    pd.testing.assert_frame_equal(first.branches, again.branches)
    assert first.branches["p_value"][0] != other.branches["p_value"][0]
    assert not np.array_equal(first.consensus, other.consensus, equal_nan=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "To test whether .*, add --significance; to see whether .*, add --stability"),
        (("--significance", "--simulations", "10"), "To see whether .*, add --stability"),
        (("--stability", "--resamples", "2"), "To test whether .*, add --significance"),
    ],
)
def test_analyses_that_were_not_requested_are_mentioned(main, table, tmp_path, options, sentence):
    code, printed, _ = main("cluster", table, *FAST, *options, "--out", tmp_path / "out")
    assert code == 0
    *_, line, last = printed.splitlines()
    assert re.fullmatch(rf"{sentence}\.", line)
    assert last.startswith("Results written to")


def test_out_of_core_data_have_no_analyses(main, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 30)))
    file = ("cluster", tmp_path / "x.npy", "--features", "columns", "--out-of-core", *FAST)
    for option in ("--significance", "--stability"):
        code, _, printed = main(*file, option, "--out", tmp_path / "out")
        assert code == 2
        message = f"{option} needs X in memory, but it is stored elsewhere. Use --in-memory"
        assert message in clean_text(printed)
    assert not (tmp_path / "out").exists()
    code, printed, _ = main(*file, "--out", tmp_path / "out")
    assert (code, "add --s" in printed) == (0, False)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--simulations", "20"), "--simulations has no effect without --significance"),
        (("--significance-level", "0.1"), "--significance-level has no effect without --signif"),
        (("--resamples", "20"), "--resamples has no effect without --stability"),
        (("--significance", "--simulations", "3"), "--simulations must be"),
        (("--significance", "--significance-level", "2"), "--significance-level must be"),
        (("--stability", "--resamples", "1"), "--resamples must be"),
    ],
)
def test_mistakes_are_found_before_the_fit(main, table, tmp_path, options, sentence):
    code, _, printed = main("cluster", table, *FAST, *options, "--out", tmp_path / "out")
    assert (code, sentence in clean_text(printed)) == (2, True)
    assert not (tmp_path / "out").exists()


def test_quiet_runs_warn_if_nothing_is_significant(main, tmp_path):
    file = tmp_path / "noise.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 40))).to_csv(file)
    given = ("--features", "columns", "-k", "2", *FAST, "--quiet", "--out", tmp_path / "out")
    code, printed, warned = main("cluster", file, *given, "--significance", "--simulations", "10")
    assert (code, printed, warned.count("\n")) == (0, "", 1)
    assert warned.startswith("mrshc: Significance: no split is significant at the level 0.05")


def test_json_has_both_analyses(main, table, tmp_path):
    out = tmp_path / "out"
    code, printed, _ = main("cluster", table, *FAST, *BOTH, "--json", "--out", out)
    about = json.loads(printed)
    assert code == 0
    assert {"branches.csv", "consensus.csv.gz"} <= {file.name for file in out.iterdir()}
    assert len(about["stability"]["cluster_jaccard"]) == about["chosen"]["n_clusters"]
    assert about["significance"]["n_clusters"] >= 2


def test_progress_is_shown_on_a_terminal(main, table, tmp_path, monkeypatch):
    monkeypatch.setattr("mrshc.core.parallel._DELAY", 0.0)
    code, printed, shown = run_on_terminal(
        main, "cluster", table, *FAST, *BOTH, "--out", tmp_path / "out"
    )
    assert code == 0
    assert "Repeating the fit" not in printed
    assert re.search(rb"Significance.*Stability", shown, re.S)


def test_a_result_without_the_analyses_is_replaced(main, table, tmp_path):
    same = ("cluster", table, *FAST, "--out", tmp_path / "out")
    assert main(*same)[0] == 0
    code, _, printed = main(*same, *BOTH)
    assert (code, "exists already. Add --overwrite" in clean_text(printed)) == (2, True)
    assert main(*same, *BOTH, "--overwrite")[0] == 0
    # The earlier tables are removed if the result is replaced by one without the analyses.
    assert main(*same, "--overwrite")[0] == 0
    assert not (tmp_path / "out" / "branches.csv").exists()
    assert load_result(tmp_path / "out").branches is None
