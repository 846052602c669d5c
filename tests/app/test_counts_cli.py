"""The command line and the report warn of counts, and the options that they name help."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import rand_score

from mrshc.io import load_result


@pytest.fixture
def counts(tmp_path):
    """Write counts of 16 samples, whose depths differ more than their two groups."""
    rng = np.random.default_rng(0)
    means = np.outer(rng.uniform(0.3, 3, size=16), np.exp(rng.normal(4, 1.5, size=120)))
    means[8:, :12] *= 8
    X = rng.negative_binomial(8, 8 / (8 + means))
    frame = pd.DataFrame(X.T, [f"g{j}" for j in range(120)], [f"s{i}" for i in range(16)])
    frame.to_csv(tmp_path / "counts.csv", index_label="gene")
    return tmp_path / "counts.csv"


GROUPS = [0] * 8 + [1] * 8
OPTIONS = ("--method", "hmv", "-q", 12, "-k", 2)


def plain(text):
    return " ".join(text.split())


def test_counts_are_reported_with_the_options_that_help(counts, tmp_path, main):
    out = tmp_path / "out"
    code, printed, warned = main("cluster", counts, *OPTIONS, "--out", out)
    assert code == 0
    advice = "Add --normalize cpm, or --normalize size-factors if many features are positive"
    assert advice in plain(warned)
    assert "look like counts" not in printed, "it is said once"
    assert any(advice in text for text in load_result(out).about["warnings"])
    assert "The values look like counts" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("normalize", ["size-factors", "cpm"])
def test_the_options_help(counts, tmp_path, main, normalize):
    out = tmp_path / "out"
    steps = ("--normalize", normalize, "--min-count", 10, "--min-samples", 4)
    code, printed, warned = main("cluster", counts, *OPTIONS, *steps, "--out", out)
    assert (code, warned) == (0, "")
    assert "At least 10 in at least 4 samples" in printed
    assert "prior count 1." in printed
    assert rand_score(load_result(out).labels_, GROUPS) == 1


@pytest.mark.parametrize("options", [("--normalize", "none"), ("--pseudocount", 1)])
def test_there_is_no_warning_if_the_scale_was_considered(counts, tmp_path, main, options):
    code, _, warned = main("cluster", counts, *OPTIONS, *options, "--out", tmp_path / "out")
    assert (code, warned) == (0, "")


def test_a_comparison_warns_too(counts, tmp_path, main):
    methods = ("--methods", "hc", "-k", 2, "--quiet")
    code, _, warned = main("compare", counts, *methods, "--out", tmp_path / "out")
    assert code == 0
    assert "The values look like counts" in warned
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "The values look like counts" in page


def test_intensities_are_reported(tmp_path, main):
    X = np.exp(np.random.default_rng(0).normal(5, 2, size=(60, 12)))
    pd.DataFrame(X).add_prefix("s").to_csv(tmp_path / "raw.csv", index_label="gene")
    _, _, warned = main("cluster", tmp_path / "raw.csv", *OPTIONS, "--out", tmp_path / "out")
    assert "look like raw intensities" in warned
    assert "Add --log2; or add --normalize none" in plain(warned)


def test_out_of_core_counts_are_reported(tmp_path, main):
    X = np.random.default_rng(0).poisson(30, size=(12, 60)).astype(np.float32)
    np.save(tmp_path / "counts.npy", X)
    options = ("--out-of-core", "--features", "columns", "--out", tmp_path / "out")
    code, _, warned = main("cluster", tmp_path / "counts.npy", *OPTIONS, *options)
    assert code == 0
    assert "look like counts" in warned


def test_an_unknown_normalisation_is_refused(counts, main):
    code, _, message = main("cluster", counts, "--normalize", "tmm")
    assert code == 2
    assert "size-factors" in message
