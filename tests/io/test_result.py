"""A result is the same after it was written and loaded; other versions are refused."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mrshc.app import fit, make_plan
from mrshc.app.output_folder import write_outputs
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import Table, load_result, read_table
from mrshc.io.result import write_result
from mrshc.plotting import annotation_bars
from mrshc.report.page_data import result_data
from mrshc.report.sentences import classes_in_clusters

METHODS = {
    "mrshc": {"n_features_to_select": [10, 20], "max_rank": 2, "n_references": 10},
    "everything": {"robust": True},
    "association": {},
    "shc": {"n_features_to_select": [10, 20], "n_permutations": 3},
    "hc": {},
    "hmv": {"n_features_to_select": 15, "n_clusters": 4},
    "cosa": {},
}


LOST = object()


def table(n_features=60):
    """Return a table with names and annotations that are difficult to store."""
    data = make_simulation_1(2, mu=2.0)
    X = data.X[:, 10 : 10 + n_features]
    n = len(X)
    samples = np.array([f"s{i}" for i in range(n)], dtype=object)
    samples[:6] = ["NA", "001", "1e5", 'a "b", c', "tab\there", "naïve"]
    features = np.array([f"g{j}" for j in range(n_features)], dtype=object)
    features[:4] = ["null", "True", "x,y", "ΔF"]
    about_samples = pd.DataFrame(
        {
            "cluster": data.labels.astype(str),  # a name that the result uses itself
            "flag": np.array(["True", None, "False"] * (n // 3), dtype=object),
            "age": np.linspace(20, 80, n),
            "grade": pd.array([3, None, 1] * (n // 3), dtype="Int64"),
        },
        index=samples,
    ).astype({"cluster": object})
    about_features = pd.DataFrame({"locus": ["1p36", "Xq"] * (n_features // 2)}, index=features)
    entrez = pd.array([7157, None] * (n_features // 2), dtype="Int64")
    return Table(
        X=X,
        sample_names=samples,
        feature_names=features,
        sample_annotations=about_samples,
        feature_annotations=about_features.astype(object).assign(entrez=entrez),
        source="a test",
        notes=("Made up.",),
    )


@pytest.fixture(scope="module", params=METHODS)
def result(request):
    parameters = {**METHODS[request.param], "random_state": 3}
    given = table()
    method = request.param
    if method == "everything":
        method = "association"
        rng = np.random.default_rng(0)
        given.X[9] += rng.normal(scale=9, size=given.X.shape[1])
        given.X[rng.random(given.X.shape) < 0.05] = np.nan
    return fit(make_plan(given, method=method, parameters=parameters, truth="cluster"))


def test_a_written_result_can_be_loaded(result, tmp_path):
    write_result(result, tmp_path)
    loaded = load_result(tmp_path)
    assert loaded.about == result.about
    pd.testing.assert_frame_equal(loaded.selected, result.selected, check_names=False)
    np.testing.assert_array_equal(loaded.linkage_matrix_, result.linkage_matrix_)
    np.testing.assert_array_equal(loaded.labels_, result.labels_)
    np.testing.assert_array_equal(loaded.outlier_samples_, result.outlier_samples_)
    for name in ("samples", "features", "silhouettes", "markers"):
        before, after = getattr(result, name), getattr(loaded, name)
        assert list(before.index) == list(after.index)
        same = {"check_dtype": False, "check_index_type": False, "check_column_type": False}
        pd.testing.assert_frame_equal(after, before, **same)


def test_a_result_is_shown_in_one_line(result):
    assert re.fullmatch(
        rf"Result\({result.about['method']}: \d+ samples, \d+ of \d+ features, \d clusters?\)",
        repr(result),
    )


def test_results_of_optional_steps_are_stored(result):
    parameters = result.about["parameters"]
    asked = parameters.get("robust", False)
    tested = result.about["method"] == "association"
    assert ("outlying" in result.samples) == asked
    assert ({"q_value", "associated"} <= set(result.features)) == tested
    assert result.about["outliers"] == (["s9"] if asked else [])
    assert (result.n_missing > 0) == asked


def test_attributes_are_those_of_the_estimator(result, tmp_path):
    write_result(result, tmp_path)
    loaded = load_result(tmp_path)
    assert loaded.n_features_selected_ == loaded.features["selected"].sum()
    assert loaded.n_clusters_ == len(np.unique(loaded.labels_))
    assert loaded.search_results_["chosen"].sum() == 1
    assert all(
        len(column) == len(result.about["search"]) for column in loaded.search_results_.values()
    )
    tests = loaded.split_tests_
    if result.about["method"] == "mrshc":
        assert tests["split"].sum() == loaded.n_clusters_ - 1
        assert all(drops.ndim == 1 for drops in tests["reference_drops"])
    else:
        assert tests == {}


def test_the_start_set_has_the_features_with_loadings():
    result = fit(make_plan(table()))
    assert result.starts_from_several_sets
    in_start_set = (result.loadings != 0).any(axis=1)
    assert result.n_features_before_refinement == in_start_set.sum()
    assert result.chosen_candidate["n_features"] == result.n_features_selected_
    parameters = {**METHODS["mrshc"], "random_state": 3}
    searched = fit(make_plan(table(), method="mrshc", parameters=parameters))
    assert not searched.starts_from_several_sets


def test_a_start_set_of_another_size_is_no_concern():
    result = fit(make_plan(table()))
    search = [row | {"reached": False} for row in result.about["search"]]
    assert replace(result, about=result.about | {"search": search}).caveats == []


OTHER_FORMATS = {
    "is written in version 1 of the format, this mrshc reads version 8": {"format_version": 1},
    "does not describe a result of mrshc": {"format": "something"},
    "lacks 'splits'": {"splits": LOST},
}


def test_other_formats_are_refused_with_a_reason(result, tmp_path):
    write_result(result, tmp_path)
    path = tmp_path / "result.json"
    written = json.loads(path.read_text())
    for sentence, change in OTHER_FORMATS.items():
        about = {name: v for name, v in (written | change).items() if v is not LOST}
        path.write_text(json.dumps(about) + "\n")
        with pytest.raises(UserError, match=sentence):
            load_result(tmp_path)


@pytest.mark.slow
def test_an_incomplete_folder_is_refused(result, tmp_path):
    folder = tmp_path / "result"
    folder.mkdir()
    write_result(result, folder)
    tables = ("clusters.csv", "features.csv", "linkage.csv", "selected.gct")
    for lost in (*tables, "silhouettes.csv", "markers.csv"):
        (folder / lost).rename(tmp_path / lost)
        with pytest.raises(UserError, match="is not a complete result"):
            load_result(folder)
        (tmp_path / lost).rename(folder / lost)
    load_result(folder)


def test_folders_without_a_result(tmp_path):
    with pytest.raises(UserError, match=r"holds no result: there is no result\.json"):
        load_result(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"is not a complete result: result\.json is damaged, or"):
        load_result(tmp_path)


@pytest.mark.usefixtures("drawn")  # without pictures
def test_whole_numbers_stay_whole_in_all_files_if_some_are_missing(tmp_path):
    parameters = {"n_features_to_select": 10, "n_clusters": 2}
    result = fit(make_plan(table(), method="hmv", parameters=parameters, truth="grade"))
    write_outputs(result, tmp_path)
    loaded = load_result(tmp_path)
    for samples in (result.samples, loaded.samples):
        assert samples["grade"].dtype == "Int64"
    assert list(classes_in_clusters(loaded).index) == [1, 3]
    with (tmp_path / "clusters.csv").open(encoding="utf-8", newline="") as file:
        assert {row["grade"] for row in csv.DictReader(file)} == {"3", "1", ""}
    lines = (tmp_path / "selected.gct").read_text(encoding="utf-8").splitlines()
    (grades,) = [line.split("\t") for line in lines if line.startswith("grade\t")]
    assert set(grades[-60:]) == {"3", "1", "na"}
    shown = {column["name"]: column for column in result_data(loaded)["samples"]["annotations"]}
    assert shown["grade"]["numeric"]
    assert shown["grade"]["values"][:3] == [3, None, 1]
    (bar,) = annotation_bars({"grade": loaded.annotations_to_plot["grade"]}, len(loaded.samples))
    assert [text for text, _ in bar.legend] == ["1", "3", "missing"]


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=1+1", "-", "+", "-1.5"]


@pytest.mark.usefixtures("drawn")  # without pictures
def test_names_that_look_like_formulas_are_guarded_in_tables_and_come_back(tmp_path):
    rng = np.random.default_rng(0)
    n, p = len(FORMULAS), 30
    features = [*FORMULAS, *(f"g{j}" for j in range(p - n))]
    X = rng.normal(size=(n, p))
    X[: n // 2, :10] += 6
    index = np.array(FORMULAS, dtype=object)
    table = Table(
        X=X,
        sample_names=index,
        feature_names=np.array(features, dtype=object),
        sample_annotations=pd.DataFrame({"=title": FORMULAS}, index=index, dtype=object),
        feature_annotations=pd.DataFrame({"@about": ["=x"] * p}, index=features, dtype=object),
        source="formulas",
        notes=("Made.",),
    )
    plan = make_plan(table, method="hmv", parameters={"n_features_to_select": 10}, truth="=title")
    result = fit(plan)
    write_outputs(result, tmp_path)
    loaded = load_result(tmp_path)
    assert list(loaded.samples.index) == FORMULAS
    assert set(loaded.features.index) == set(features)
    assert list(loaded.samples["=title"]) == FORMULAS
    pd.testing.assert_frame_equal(loaded.selected, result.selected)
    back = read_table(tmp_path / "selected.gct")
    assert list(back.sample_names) == FORMULAS
    assert list(back.feature_names) == list(result.selected.columns)
    for name, mark in {
        **dict.fromkeys(CSV, ","),
        "selected.gct": "\t",
        "heatmap.cdt": "\t",
    }.items():
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file, delimiter=mark) for cell in row]
        assert not [cell for cell in cells if is_formula(cell)], name


CSV = ("clusters.csv", "features.csv", "markers.csv", "silhouettes.csv", "search.csv")


def is_formula(cell):
    """Return whether a spreadsheet may compute a cell: a number or a sign alone is harmless."""
    if len(cell) < 2 or cell[0] not in "=+-@\t\r":
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
