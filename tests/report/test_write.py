"""Reports are written for valid results and comparisons only; otherwise an old one is kept."""

import json

import pytest

from mrshc.app import compare_methods, comparison_json_content, make_plan
from mrshc.errors import UserError
from mrshc.io.result import write_result
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
    with pytest.raises(UserError, match=rf"comparison\.json {sentence}.*\. Run the"):
        write_report(folder)
    assert (folder / REPORT).read_text() == "old"


def test_a_comparison_is_shown(comparison, tmp_path):
    (tmp_path / COMPARISON_FILE).write_text(json.dumps(comparison) + "\n")
    assert "Comparison of 6 methods" in write_report(tmp_path).read_text(encoding="utf-8")


def test_a_comparison_of_another_version_is_refused(comparison, tmp_path):
    (tmp_path / COMPARISON_FILE).write_text(json.dumps(comparison | {"format_version": 1}) + "\n")
    with pytest.raises(UserError, match="is written in version 1 of the format"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"samples": ["a"] * 6}, "names other samples"),
        ({"samples": ["a", "b", "c"]}, "names other samples"),
        ({"annotations": {"class": ["u"]}}, "has incomplete annotations"),
        ({"scores": [{"method": "HC", "n_features": 1}]}, "has a tree of a method without scores"),
        ({"format": "mrshc result"}, "does not describe a comparison"),
    ],
)
def test_a_damaged_comparison_is_refused(comparison, tmp_path, change, sentence):
    refused(tmp_path, comparison | change, sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"linkage": [[0, 10**9, 1.0, 2]] * 5}, "is damaged, or does not fit"),
        ({"linkage": [[0, 1, 1.0, 2]]}, "is damaged, or does not fit"),
        ({"linkage": [[0, 1], [2]]}, "is damaged, or does not fit"),
    ],
)
def test_a_damaged_method_is_refused(comparison, tmp_path, change, sentence):
    method = comparison["methods"]["HC"] | change
    about = comparison | {"methods": comparison["methods"] | {"HC": method}}
    refused(tmp_path, about, sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *(("[]", "is damaged"), ("5", "is damaged")),
        *(("{", "is damaged, or does not fit"), ("[" * 100_000, "is damaged, or does not fit")),
    ],
)
def test_json_of_other_content_is_refused(tmp_path, text, sentence):
    refused(tmp_path, text, sentence)


def test_a_damaged_result_keeps_its_old_report(tmp_path):
    write_result(tiny_result(), tmp_path)
    (tmp_path / REPORT).write_text("old")
    path = tmp_path / "linkage.csv"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"result: linkage\.csv has too many or too few"):
        write_report(tmp_path)
    assert (tmp_path / REPORT).read_text() == "old"
