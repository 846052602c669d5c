"""The library names parameters, the command line the options that set them."""

import ast
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mrshc
from mrshc.app.cli.option_names import option_for_parameter
from mrshc.shell.text_cleaning import clean_text
from mrshc.shell.wording import Parameter, Setting, reword

PACKAGE = Path(mrshc.__file__).parent
LIBRARY = [
    path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "app"
]


@pytest.mark.parametrize(
    ("parameter", "option"),
    [
        (Parameter("n_features_to_select"), "--n-features"),
        (Parameter("n_features"), "--top-variance"),
        (Parameter("n_neighbors"), "--neighbors"),
        (Parameter("n_jobs"), "--jobs"),
        (Parameter("random_state"), "--seed"),
        (Parameter("annotations"), "--annotation"),
        (Setting("features", "rows"), "--features rows"),
        (Setting("decimal", ","), "--decimal ,"),
        (Setting("separator", " "), "--separator ' '"),
        (Setting("in_memory", True), "--in-memory"),
        (Setting("in_memory", False), "--out-of-core"),
        (Setting("robust", True), "--robust"),
        (Setting("floor", 100, class_name="Thresholds"), "--floor 100"),
        (Setting("floor", ..., class_name="Thresholds"), "--floor"),
        (Parameter("complement_of"), "complement_of"),
        (Setting("init", None), "init=None"),
    ],
)
def test_options_are_those_that_set_a_parameter(parameter, option):
    assert option_for_parameter(parameter) == option


def literals(path):
    """Yield the texts in a module, also the fixed parts of f-strings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_the_library_knows_no_options_and_no_commands(path):
    option_or_command = r"--[a-z]|\bmrshc (cluster|compare|demo|predict|report)\b"
    for line, text in literals(path):
        assert not re.search(option_or_command, text), f"{path}:{line}: {text}"


def test_errors_name_options_on_the_command_line(main, tmp_path, monkeypatch):
    """From reading, preprocessing, the plan and the fit alike."""
    monkeypatch.chdir(tmp_path)
    values = np.arange(54).reshape(6, 9) * 7 % 11 / 10
    frame = pd.DataFrame(values, [f"s{i}" for i in range(6)], [f"f{j}" for j in range(9)])
    frame.to_csv("t.csv", index_label="sample")
    frame.iloc[:1, :2].to_csv("few.csv", index_label="sample")
    for command, sentence in {
        "few.csv": "If they are in rows, give --features rows.",
        "t.csv --out-of-core": "Write it as one of them, or leave --out-of-core out.",
        "t.csv --top-variance 99": "--top-variance must be a whole number in [1, 9], got 99.",
        "t.csv --floor 5 --ceiling 4": "--floor must not be above ceiling, got 5.0 and 4.0.",
        "t.csv --min-ratio 5": "such as --floor 100 for Affymetrix intensities, or leave min_rati",
        "t.csv --log2": "Raise them to a floor, or add a larger pseudocount.",
        "t.csv --method hc --rank 2": "--rank has no meaning for method hc.",
        "t.csv --method hmv": "Give one with --n-features.",
        "t.csv --linkage ward --metric cityblock": "defined for --metric sqeuclidean and",
        "t.csv --linkage median --metric cityblock": "sqeuclidean and --metric correlation only",
        "t.csv --paper --metric correlation -q 2": "--n-features must be at least 3 for",
        "t.csv --method shc --metric correlation": "--metric must be one of 'sqeuclidean', ",
        "t.csv --method cosa --linkage ward": "--linkage must be one of 'single', 'complete', ",
        "t.csv --paper --max-rank 0": "--max-rank must be a whole number at least 1, got 0.",
        "t.csv --method shc -q 3 --l1-bound 1.5": "Give n_features_to_select or l1_bound, not both",
        "t.csv -k 7": "--n-clusters must be a whole number in [2, 6], got 7.",
    }.items():
        code, _, printed = main("cluster", *shlex.split(command), "--out", "out", "--quiet")
        assert code == 2
        assert sentence in clean_text(printed), command
        assert "None" not in printed


@pytest.mark.parametrize("text", ["no file seed=007/x", "no file rank=3x.csv", "a/linkage='x'.y"])
def test_names_of_files_are_not_taken_for_settings(text):
    assert reword(text, option_for_parameter) == text
