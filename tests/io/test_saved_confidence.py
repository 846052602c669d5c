"""Defects in the tables on significance and stability are reported in a sentence."""

import gzip
import json
import re

import jsonschema
import numpy as np
import pandas as pd
import pytest

from damaged_results import check_refused, drop, edit, put, rename
from mrshc.app import ConfidenceSettings, fit, make_plan
from mrshc.errors import UserError
from mrshc.io import Table, load_result
from mrshc.io.result import SCHEMA, write_result


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 8))
    X[12:, :4] += 6.0
    samples = np.array(["=1+1", *(f"s{i}" for i in range(1, 24))], dtype=object)
    features = np.array([f"g{j}" for j in range(8)], dtype=object)
    return Table(
        X=X,
        sample_names=samples,
        feature_names=features,
        sample_annotations=pd.DataFrame(index=samples),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )


@pytest.fixture(scope="module")
def saved_files(tmp_path_factory):
    confidence = ConfidenceSettings(
        significance=True, stability=True, n_simulations=20, n_resamples=4
    )
    given = {"n_features_to_select": 4, "n_clusters": 2}
    result = fit(make_plan(table(), method="hmv", parameters=given, confidence=confidence))
    # The root is significant, and the last node is not tested.
    significant = result.branches["significant"]
    assert (significant.iloc[0], significant.isna().iloc[-1]) == (True, True)
    folder = tmp_path_factory.mktemp("saved")
    write_result(result, folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(saved_files, tmp_path):
    for name, content in saved_files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("branches.csv", drop, "branches.csv has 22 rows where 23 were expected"),
        ("branches.csv", rename("support", "p"), "branches.csv has other columns"),
        ("branches.csv", put(1, "node", "45"), "branches.csv has other nodes than linkage.csv"),
        ("branches.csv", put(1, "n_samples", "9"), "branches.csv has other nodes than linkage.csv"),
        ("branches.csv", put(1, "height", "9"), "branches.csv has other nodes than linkage.csv"),
        ("branches.csv", put(2, "support", "1.5"), "branches.csv holds '1.5' in row 2"),
        ("branches.csv", put(1, "p_value", "-1"), "branches.csv holds '-1' in row 1"),
        ("branches.csv", put(1, "p_value", ""), "branches.csv has a test that is not complete"),
        ("branches.csv", put(1, "n_simulations", ""), "branches.csv has a test that is not compl"),
        ("branches.csv", put(1, "n_simulations", "0.5"), "branches.csv holds '0.5' in row 1"),
        ("branches.csv", put(1, "significant", "False"), "branches.csv has a test that contradict"),
        ("branches.csv", put(1, "significant", ""), "branches.csv has a test that contradicts"),
        (
            "branches.csv",
            put(1, "significant", "yes"),
            "branches.csv holds 'yes' .* True, False or",
        ),
        ("branches.csv", put(23, "statistic", "1"), "branches.csv has the statistic of a node wit"),
        ("branches.csv", put(2, "support", "0.5"), "branches.csv is not the file that was written"),
        ("clusters.csv", put(1, "jaccard", "0.5"), "clusters.csv has other Jaccard indices than"),
        ("clusters.csv", put(1, "significant_cluster", "3"), "clusters.csv holds '3' in row 1"),
        ("features.csv", put(1, "selection_frequency", ""), "features.csv holds '' in row 1"),
    ],
)
def test_invalid_tables_are_refused(folder, name, change, sentence):
    edit(folder / name, change)
    check_refused(folder, sentence)


def test_a_cluster_without_samples_is_refused(folder):
    def merge(rows):
        column = rows[0].index("significant_cluster")
        for row in rows[1:]:
            row[column] = "1"

    edit(folder / "clusters.csv", merge)
    check_refused(folder, "clusters.csv has fewer significant clusters than result.json")


def change_consensus(folder, change):
    path = folder / "consensus.csv.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rows = [line.split(",") for line in lines]
    change(rows)
    text = "".join(",".join(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (put(1, "s5", "1.5"), "holds a cell that is not a number from 0 to 1"),
        (put(1, "s5", "text"), "holds a cell that is not a number from 0 to 1"),
        (put(1, "s5", "0.123"), "is not symmetric"),
        (put(2, "sample", "s2"), "has other cells than expected in row 2"),
        (lambda rows: rows[3].pop(), "has other cells than expected in row 3"),
        (rename("s5", "s6"), "names other samples than clusters.csv"),
        (drop, "has other cells than expected in row 24"),
        (lambda rows: rows.append(rows[-1]), "has more rows than there are samples"),
        (lambda rows: rows.clear(), "names other samples than clusters.csv"),
    ],
)
def test_another_consensus_matrix_is_refused(folder, change, sentence):
    change_consensus(folder, change)
    check_refused(folder, re.escape("consensus.csv.gz ") + sentence)


def test_a_damaged_consensus_matrix_is_refused(folder):
    path = folder / "consensus.csv.gz"
    content = path.read_bytes()
    for damaged in (content[:-20], content[: len(content) // 2], b"text\n", b""):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"consensus\.csv\.gz (is damaged|names other samples)"):
            load_result(folder)
    path.unlink()
    check_refused(folder, "consensus.csv.gz is not a file")


def test_other_entries_of_result_json_are_refused(folder):
    path = folder / "result.json"
    written = json.loads(path.read_text())
    jsonschema.validate(written, json.loads(SCHEMA.read_text()))
    stable, tests = written["stability"], written["significance"]
    changes = {
        "has Jaccard indices of other clusters": {"stability": stable | {"cluster_jaccard": [1]}},
        "has 'stability.n_resamples' out of range": {"stability": stable | {"n_resamples": 0}},
        "has more significant clusters than samples": {"significance": tests | {"n_clusters": 25}},
        "lacks 'significance.alpha'": {"significance": {}},
    }
    for sentence, change in changes.items():
        path.write_text(json.dumps(written | change) + "\n")
        check_refused(folder, f"result.json {sentence}")
    del written["files"]["branches.csv"]
    path.write_text(json.dumps(written) + "\n")
    check_refused(folder, "branches.csv is not the file that was written with this result")


def test_a_name_that_looks_like_a_formula_is_guarded(folder):
    text = gzip.decompress((folder / "consensus.csv.gz").read_bytes()).decode()
    assert text.startswith("sample,'=1+1,s1")
    assert "\n'=1+1,1.0," in text
    load_result(folder)
