"""Reports are written for valid results and comparisons only; otherwise an old one is kept."""

import json

import jsonschema
import pytest

from mrshc.app import compare_methods, comparison_json_content, make_plan
from mrshc.errors import UserError
from mrshc.io.result import write_result
from mrshc.io.saved_file_reading import COMPARISON_SCHEMA, load_schema
from mrshc.report import COMPARISON_FILE, REPORT, write_report
from tiny import tiny_result, tiny_table


@pytest.fixture(scope="module")
def comparison():
    parameters = {"n_features_to_select": 2}
    plan = make_plan(tiny_table(), method="mrshc", parameters=parameters, truth="class")
    return comparison_json_content(plan, compare_methods(plan, n_clusters=2), n_clusters=2)


def refused(folder, about, sentence):
    text = about if isinstance(about, str) else json.dumps(about)
    (folder / COMPARISON_FILE).write_text(text + "\n")
    (folder / REPORT).write_text("old")
    with pytest.raises(UserError, match=rf"comparison\.json is damaged: it {sentence}.*\. Run the"):
        write_report(folder)
    assert (folder / REPORT).read_text() == "old"


def test_a_comparison_is_valid_against_its_schema_and_shown(comparison, tmp_path):
    jsonschema.validate(comparison, load_schema(COMPARISON_SCHEMA))
    (tmp_path / COMPARISON_FILE).write_text(json.dumps(comparison) + "\n")
    assert "Comparison of 6 methods" in write_report(tmp_path).read_text(encoding="utf-8")


def test_a_comparison_of_another_version_is_refused(comparison, tmp_path):
    (tmp_path / COMPARISON_FILE).write_text(json.dumps(comparison | {"format_version": 1}) + "\n")
    with pytest.raises(UserError, match="is written in version 1 of the format"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"samples": ["a"] * 6}, "names a sample twice"),
        ({"samples": ["a", "b", "c"]}, "names more or fewer samples"),
        ({"samples": 5}, "has 'samples' of the wrong type"),
        ({"truth": "other"}, "lacks the annotation that holds the classes"),
        ({"annotations": {"class": ["u"]}}, "has incomplete annotations"),
        ({"annotations": {"class": [[]] * 6}}, "has 'annotations.class' of the wrong type"),
        ({"n_clusters": 7}, "has more clusters than samples"),
        ({"n_clusters": 0}, "has 'n_clusters' out of range"),
        ({"scores": []}, "has too few entries in 'scores'"),
        ({"scores": [{"method": "HC", "n_features": 1}]}, "has a tree of a method without scores"),
        ({"scores": [{"method": "HC", "n_features": 1, "ari": 2.0}]}, "has 'scores.ari' out of ra"),
        ({"format": "mrshc result"}, "has 'format' other than"),
        ({"versions": {}}, "lacks 'versions.mrshc'"),
    ],
)
def test_a_damaged_comparison_is_refused(comparison, tmp_path, change, sentence):
    refused(tmp_path, comparison | change, sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"linkage": [[0, 10**9, 1.0, 2]] * 5}, "holds no tree"),
        ({"linkage": [[0, 1, 1.0, 2]]}, "holds no tree"),
        ({"linkage": [[0, 1], [2]]}, "holds no tree"),
        ({"linkage": "tree"}, "has 'methods.HC.linkage' of the wrong type"),
        ({"outliers": [6]}, "has an outlying sample that does not exist"),
        ({"search": [{"chosen": True}]}, "has incomplete candidates"),
    ],
)
def test_a_damaged_method_is_refused(comparison, tmp_path, change, sentence):
    method = comparison["methods"]["HC"] | change
    about = comparison | {"methods": comparison["methods"] | {"HC": method}}
    refused(tmp_path, about, sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *(("[]", "has content of the wrong type"), ("5", "has content of the wrong type")),
        *(("{", "is not JSON"), ("[" * 100_000, "is not JSON")),
    ],
)
def test_json_of_other_content_is_refused(tmp_path, text, sentence):
    refused(tmp_path, text, sentence)


def test_a_cut_comparison_is_refused(comparison, tmp_path):
    text = json.dumps(comparison)
    (tmp_path / COMPARISON_FILE).write_text(text)
    with pytest.raises(UserError, match=r"is damaged: it is cut off\. Run the comparison"):
        write_report(tmp_path)


def test_a_damaged_result_keeps_its_old_report(tmp_path):
    write_result(tiny_result(), tmp_path)
    (tmp_path / REPORT).write_text("old")
    path = tmp_path / "linkage.csv"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"is not a complete result: linkage\.csv is cut off"):
        write_report(tmp_path)
    assert (tmp_path / REPORT).read_text() == "old"
