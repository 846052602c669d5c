"""Defects in the tables on significance and stability are reported in a sentence."""

import gzip

import numpy as np
import pandas as pd
import pytest

from damaged_results import check_refused, drop, edit, put
from mrshc.app import ConfidenceSettings, fit, make_plan
from mrshc.io import Table, load_result
from mrshc.io.result import write_result


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
        ("branches.csv", drop, "has 22 rows where 23 were expected"),
        ("branches.csv", put(1, "height", "9"), "is of another tree"),
        ("branches.csv", put(1, "n_simulations", "0.5"), "is damaged, or does not fit"),
        ("branches.csv", put(1, "significant", "yes"), "is damaged, or does not fit"),
        ("clusters.csv", put(1, "significant_cluster", "a"), "is damaged, or does not fit"),
    ],
)
def test_invalid_tables_are_refused(folder, name, change, sentence):
    edit(folder / name, change)
    check_refused(folder, f"{name} {sentence}")


def test_a_damaged_consensus_matrix_is_refused(folder):
    path = folder / "consensus.csv.gz"
    content = path.read_bytes()
    for damaged in (content[:-20], content[: len(content) // 2], b"text\n", b""):
        path.write_bytes(damaged)
        check_refused(folder, "consensus.csv.gz is damaged, or does not fit")
    lines = gzip.decompress(content).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    check_refused(folder, "consensus.csv.gz has other samples")
    path.write_bytes(gzip.compress(b"".join([lines[0], *lines[:0:-1]])))
    check_refused(folder, "consensus.csv.gz has other samples")
    path.unlink()
    check_refused(folder, "consensus.csv.gz is missing")


def test_a_name_that_looks_like_a_formula_is_guarded(folder):
    text = gzip.decompress((folder / "consensus.csv.gz").read_bytes()).decode()
    assert text.startswith("sample,'=1+1,s1")
    assert "\n'=1+1,1.0," in text
    load_result(folder)
