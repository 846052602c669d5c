"""Defects of a saved result are reported in a sentence that names the file."""

import json

import jsonschema
import numpy as np
import pytest

from damaged_results import check_refused, drop, edit, put, rename
from mrshc.io import load_result
from mrshc.io.result import SCHEMA, write_result
from mrshc.io.saved_file_reading import check_schema, load_schema
from mrshc.io.streams import FlawError
from tiny import NAMES, tiny_result

LOST = object()


@pytest.fixture(scope="module")
def saved_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    write_result(tiny_result(), folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(saved_files, tmp_path):
    for name, content in saved_files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def repeat(rows):
    rows[2] = list(rows[1])


def add(rows):
    rows.append(rows[-1])


def swap(rows):
    rows[1], rows[4] = rows[4], rows[1]


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("linkage.csv", put(1, "left", "500000000"), r"linkage\.csv holds no tree: .* row 0 joins"),
        ("linkage.csv", put(2, "right", "9"), r"linkage\.csv holds no tree: .* row 1 joins node 9"),
        ("linkage.csv", put(1, "left", "0.5"), r"linkage\.csv holds '0\.5' in row 1 .* 'left'"),
        ("linkage.csv", put(1, "height", "nan"), "linkage.csv holds 'nan' .* a number in range"),
        (
            "linkage.csv",
            put(1, "height", "-1"),
            "linkage.csv holds no tree: .* heights of at least 0",
        ),
        ("linkage.csv", put(1, "size", "3"), "linkage.csv holds no tree: .* join every node once"),
        ("linkage.csv", drop, "linkage.csv has 4 rows where 5 were expected"),
        ("linkage.csv", rename("left", "right"), "linkage.csv has other columns than expected"),
        (
            "clusters.csv",
            put(1, "cluster", "3"),
            "clusters.csv holds '3' .* whole number in range",
        ),
        ("clusters.csv", put(1, "cluster", "0"), "clusters.csv holds '0' in row 1 of the column"),
        ("clusters.csv", put(1, "cluster", "1"), "clusters.csv has clusters of other sizes"),
        ("clusters.csv", put(1, "cluster", "9" * 5000), "clusters.csv holds '9999"),
        ("clusters.csv", put(1, "leaf", "6"), "clusters.csv puts two samples at the same leaf"),
        ("clusters.csv", put(1, "silhouette", ""), "clusters.csv holds '' in row 1 of the column"),
        ("clusters.csv", put(1, "silhouette", "1.5"), "clusters.csv holds '1.5' in row 1"),
        ("clusters.csv", repeat, "clusters.csv names a sample twice"),
        ("clusters.csv", add, "clusters.csv has 7 rows where 6 were expected"),
        ("clusters.csv", rename("age", "class"), "clusters.csv has other columns"),
        ("clusters.csv", lambda rows: rows[3].pop(), "clusters.csv has too many or too few cells"),
        ("silhouettes.csv", swap, "silhouettes.csv names other samples than clusters.csv"),
        ("silhouettes.csv", drop, "silhouettes.csv has 5 rows where 6 were expected"),
        ("silhouettes.csv", put(1, "cut_2", "inf"), "silhouettes.csv holds 'inf' in row 1"),
        ("features.csv", put(1, "selected", "yes"), "features.csv holds 'yes' .* True or False"),
        ("features.csv", put(1, "selected", "False"), "features.csv does not begin with the selec"),
        ("features.csv", put(1, "position", "3"), "features.csv puts two features at the same"),
        ("features.csv", put(1, "feature", "g1"), "features.csv names a feature twice"),
        ("features.csv", put(1, "feature", "other"), "selected.gct names other features"),
        ("features.csv", put(1, "effect_size", "-1"), "features.csv holds '-1' in row 1"),
        ("features.csv", drop, "features.csv has 4 rows where 5 were expected"),
        ("centers.csv", put(1, "used", "yes"), "centers.csv holds 'yes' .* True or False"),
        ("centers.csv", put(1, "used", "False"), "centers.csv is not the file that was written"),
        ("centers.csv", put(1, "feature", "g4"), "centers.csv is not the file that was written"),
        ("centers.csv", put(1, "feature", "other"), "centers.csv compares clusters in other feat"),
        ("centers.csv", put(1, "center_2", ""), "centers.csv has a centre that is not complete"),
        ("centers.csv", put(1, "center_1", "1e308"), "centers.csv holds '1e308' in row 1"),
        ("centers.csv", put(1, "weight", "-1"), "centers.csv holds '-1' in row 1"),
        ("centers.csv", put(1, "weight", ""), "centers.csv has a centre that is not complete"),
        ("centers.csv", put(1, "n_steps", "1"), "centers.csv holds '1' in row 1 of the column"),
        ("centers.csv", put(1, "n_same", "0"), "centers.csv holds '0' in row 1 of the column"),
        ("centers.csv", repeat, "centers.csv names a feature twice"),
        ("centers.csv", drop, "centers.csv has 1 rows where 2 were expected"),
        ("markers.csv", drop, r"markers.csv has \d+ rows where \d+ were expected"),
        ("markers.csv", put(1, "feature", "other"), "markers.csv holds 'other' .* a feature"),
        ("markers.csv", put(1, "selected", "False"), "markers.csv has other selected features"),
        ("markers.csv", put(1, "inside", "3"), "markers.csv holds '3' .* a list of clusters"),
        ("markers.csv", put(1, "contrast", "node"), "markers.csv holds 'node' .* cluster or split"),
        ("markers.csv", put(1, "node", "11"), "markers.csv holds '11' in row 1 of the column"),
    ],
)
def test_invalid_tables_are_refused(folder, name, change, sentence):
    edit(folder / name, change)
    check_refused(folder, sentence)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b"\ts5\t", b"\ts9\t", "selected.gct names other samples"),
        (b"\ng0\t", b"\ng9\t", "selected.gct names other features"),
        (b"#1.3", b"#1.2", "selected.gct is not a GCT file"),
        (b"2\t6\t", b"3\t6\t", "selected.gct is a GCT file whose second line gives 3 rows"),
        (b"2\t6\t", b"9" * 5000 + b"\t6\t", "selected.gct is a GCT file whose second line"),
        (b"5.26", b"inf5.26", "selected.gct holds the text 'inf5.26"),
    ],
)
def test_values_must_belong_to_the_names(folder, old, new, sentence):
    path = folder / "selected.gct"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    check_refused(folder, sentence)


def test_values_that_estimators_refuse_are_refused(folder):
    path = folder / "selected.gct"
    lines = path.read_text(encoding="utf-8").splitlines()
    for value in ("inf", "1e308"):
        cells = lines[-1].split("\t")
        cells[-1] = value
        path.write_text("\n".join([*lines[:-1], "\t".join(cells), ""]), encoding="utf-8")
        check_refused(folder, "selected.gct holds values that no fit takes")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("linkage.csv", put(5, "height", "1000000.0")),
        ("clusters.csv", put(1, "age", "99.0")),
        ("features.csv", put(1, "locus", "elsewhere")),
        ("silhouettes.csv", put(1, "cut_2", "0.125")),
        ("markers.csv", put(1, "q_value", "0.0")),
    ],
)
def test_tables_of_another_result_or_edited_ones_are_refused(folder, name, change):
    """They agree with result.json, so that only the checksum differs."""
    edit(folder / name, change)
    check_refused(folder, f"{name} is not the file that was written with this result")


def test_clusters_that_contradict_the_tree_are_refused(folder):
    def exchange(rows):
        at = rows[0].index("cluster")
        rows[1][at], rows[6][at] = rows[6][at], rows[1][at]

    edit(folder / "clusters.csv", exchange)
    check_refused(folder, "clusters.csv is not the file that was written with this result")


def test_an_open_quotation_mark_does_not_hide_the_rest(folder):
    path = folder / "clusters.csv"
    path.write_bytes(path.read_bytes().replace(b"\ns6,", b'\n"s6,'))
    check_refused(folder, "clusters.csv is not CSV")


@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\r\nb", "\x85", "\u2028", '"', " a "])
def test_texts_come_back_as_they_were(tmp_path, text):
    result = tiny_result(n_features_to_select=2, rank=1)
    result.samples["class"] = [text, *result.samples["class"][1:]]
    write_result(result, tmp_path)
    assert load_result(tmp_path).samples["class"].iloc[0] == text


@pytest.mark.parametrize("content", [b"\xff\n", b"\0\n", b"", b"\n"])
@pytest.mark.parametrize("name", ["clusters.csv", "selected.gct", "result.json"])
def test_files_with_other_content_are_refused(folder, name, content):
    (folder / name).write_bytes(content)
    check_refused(folder, f"{name} (is|has)")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"chosen": LOST}, "lacks 'chosen'"),
        ({"more": 1}, "has an entry that is not known, 'more'"),
        ({"search": 5}, "has 'search' of the wrong type, where array was expected"),
        ({"search": []}, "has too few entries in 'search'"),
        ({"search": [{"chosen": True}]}, "has incomplete candidates"),
        ({"search": [{"chosen": True, "n_clusters": 2, "silhouette": None}]}, "has 'search.silh"),
        ({"search": [{"chosen": False, "l1_bound": 1, "n_features": 2}]}, "does not choose a sin"),
        ({"command": None}, "has 'command' of the wrong type"),
        (
            {"method": "other"},
            "has a method other than association or mrshc or shc or hc or",
        ),
        ({"method": "shc"}, "has a rank that does not fit"),
        ({"format_version": "3"}, "has 'format_version' other than 7"),
        ({"format_version": 10**30}, "has 'format_version' other than 7"),
        ({"cluster_sizes": [6]}, "has clusters of other sizes than it counts"),
        ({"cluster_sizes": [10**30, 1]}, "has 'cluster_sizes' of the wrong type"),
        (
            {"n_rows": {"features": 1, "markers": 0, "centers": 2}},
            "selects more features than there are",
        ),
        ({"supported": True}, "lacks 'n_associated'"),
        ({"versions": {}}, "lacks 'versions.mrshc'"),
        ({"files": {}}, "lacks 'files.centers.csv'"),
        ({"parameters": {"a": [[[1]]]}}, "has 'parameters.a' of the wrong type"),
        ({"scores": {}}, "lacks 'scores.truth'"),
        ({"prediction": LOST}, "lacks 'prediction'"),
        ({"prediction": {"metric": "far", "learnt": []}}, "has 'prediction.metric' other than"),
        (
            {"prediction": {"metric": "cityblock", "learnt": [{"step": 1, "name": "mean_"}]}},
            "has learnt values of steps that it does not have",
        ),
    ],
)
def test_violations_of_the_schema_are_refused(folder, change, sentence):
    path = folder / "result.json"
    about = json.loads(path.read_bytes()) | change
    path.write_text(json.dumps({k: v for k, v in about.items() if v is not LOST}) + "\n")
    check_refused(folder, f"result.json {sentence}")


@pytest.mark.parametrize("rank", [6, 10**6, 10**12, 2**62])
def test_a_rank_larger_than_the_matrix_is_refused(folder, rank):
    path = folder / "result.json"
    about = json.loads(path.read_bytes())
    about["chosen"]["rank"] = rank
    path.write_text(json.dumps(about) + "\n")
    check_refused(folder, "result.json has a rank that no matrix of its size has")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("node", 5, "tests a node that no tree has"),
        ("node", 11, "tests a node that no tree has"),
        ("n_samples", 7, "tests more samples than there are"),
        ("drop", None, "has 'splits.drop' of the wrong type"),
        ("reference_drops", [1.0], "has too few entries in 'splits.reference_drops'"),
        ("reference_drops", [1.0, "a"], "has 'splits.reference_drops' of the wrong type"),
    ],
)
def test_tests_of_splits_must_fit_the_tree(folder, key, value, sentence):
    path = folder / "result.json"
    about = json.loads(path.read_bytes())
    about["splits"][0][key] = value
    path.write_text(json.dumps(about) + "\n")
    check_refused(folder, f"result.json {sentence}")


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "9" * 5000, "[" * 100_000, "1,"])
def test_numbers_that_json_does_not_have_are_refused(folder, value):
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"n_missing": 0', f'"n_missing": {value}'))
    check_refused(folder, "result.json ")


def test_a_repeated_entry_is_refused(folder):
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"n_missing": 0', '"n_missing": 0, "n_missing": 1'))
    check_refused(folder, "result.json is not JSON")


def test_outlying_samples_must_be_named_in_both_files(folder):
    path = folder / "result.json"
    about = json.loads(path.read_bytes()) | {"outliers": [NAMES[0]]}
    path.write_text(json.dumps(about) + "\n")
    check_refused(folder, "clusters.csv has other outlying samples than result.json")


VALUES = (None, True, 0, -1, 0.5, 7, "", "text", [], {}, [None], {"a": 1}, "f" * 64)


def test_the_schema_is_checked_as_a_full_validator_does(saved_files):
    schema, rng = load_schema(SCHEMA), np.random.default_rng(0)
    validator = jsonschema.Draft202012Validator(dict(schema))
    n_valid = 0
    for _ in range(400):
        about = json.loads(saved_files["result.json"])
        parent = about
        while True:
            key = (
                rng.choice(list(parent)) if isinstance(parent, dict) else rng.integers(len(parent))
            )
            if not (isinstance(parent[key], dict | list) and parent[key]) or rng.random() < 0.3:
                break
            parent = parent[key]
        if rng.random() < 0.2:
            del parent[key]
        else:
            parent[key] = VALUES[rng.integers(len(VALUES))]
        try:
            check_schema(about, schema)
            found = True
        except FlawError:
            found = False
        assert found == validator.is_valid(about), (key, about)
        n_valid += found
    assert 0 < n_valid < 400
