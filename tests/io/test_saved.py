"""A saved result comes back as it was, or is refused in a sentence that names the file."""

import json
import os

import numpy as np
import pytest

from damaged_results import check_refused, drop, edit, put, rename
from mrshc.errors import UserError
from mrshc.io import load_result
from mrshc.io.result import write_result
from tiny import tiny_result

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


def swap(rows):
    rows[1], rows[4] = rows[4], rows[1]


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("linkage.csv", put(1, "left", "500000000"), "is damaged, or does not fit"),
        ("linkage.csv", put(1, "height", "text"), "is damaged, or does not fit"),
        ("linkage.csv", drop, "has 4 rows where 5 were expected"),
        ("linkage.csv", rename("left", "right"), "has two columns of the same name"),
        ("clusters.csv", put(1, "cluster", "1"), "has other clusters than result.json"),
        ("clusters.csv", put(1, "cluster", "9" * 5000), "has other clusters than"),
        ("clusters.csv", rename("cluster", "class 2"), "lacks the column 'cluster'"),
        ("clusters.csv", repeat, "has a name twice"),
        ("clusters.csv", lambda rows: rows[3].append("1"), "has too many or too few cells"),
        ("silhouettes.csv", swap, "names other samples than clusters.csv"),
        ("features.csv", put(1, "selected", "False"), "has other selected features"),
        ("features.csv", put(1, "feature", "g1"), "has a name twice"),
        ("centers.csv", put(1, "feature", "other"), "names other features"),
        ("markers.csv", put(1, "feature", "other"), "names other features"),
        ("markers.csv", drop, r"has \d+ rows where \d+ were expected"),
    ],
)
def test_tables_of_another_shape_or_with_other_names_are_refused(folder, name, change, sentence):
    edit(folder / name, change)
    check_refused(folder, f"{name} {sentence}")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b"\ts5\t", b"\ts9\t", "names other samples or features"),
        (b"\ng0\t", b"\ng9\t", "names other samples or features"),
        (b"2\t6\t", b"3\t6\t", "is a GCT file whose second line gives 3 rows"),
        (b"5.26", b"inf5.26", "holds the text 'inf5.26"),
    ],
)
def test_values_must_belong_to_the_names(folder, old, new, sentence):
    path = folder / "selected.gct"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    check_refused(folder, f"selected.gct {sentence}")


@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\r\nb", "\x85", "\u2028", '"', " a ", "NA"])
def test_texts_come_back_as_they_were(tmp_path, text):
    result = tiny_result(n_features_to_select=2, rank=1)
    result.samples["class"] = [text, *result.samples["class"][1:]]
    write_result(result, tmp_path)
    assert load_result(tmp_path).samples["class"].iloc[0] == text


@pytest.mark.parametrize("content", [b"\xff\n", b"\0\n", b"", b"\n", b"[" * 100_000])
@pytest.mark.parametrize("name", ["clusters.csv", "selected.gct", "result.json"])
def test_files_with_other_content_are_refused(folder, name, content):
    (folder / name).write_bytes(content)
    check_refused(folder, f"{name} (is|has|lacks)")


@pytest.mark.parametrize("name", ["clusters.csv", "selected.gct", "linkage.csv", "result.json"])
def test_a_pipe_in_place_of_a_file_is_not_read(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    check_refused(folder, f"{name} is")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"chosen": LOST}, "lacks 'chosen'"),
        ({"prediction": LOST}, "lacks 'prediction'"),
        ({"method": "other"}, "has a method other than association or mrshc or shc or hc or"),
        ({"cluster_sizes": [6]}, "has clusters of other sizes than it counts"),
        ({"data": 5}, "is damaged, or does not fit"),
        ({"annotations": {}}, "is damaged, or does not fit"),
        ({"genes": {"url": "javascript:{gene}", "column": None, "sets": None}}, "has a template"),
    ],
)
def test_other_entries_of_result_json_are_refused(folder, change, sentence):
    path = folder / "result.json"
    about = json.loads(path.read_bytes()) | change
    path.write_text(json.dumps({k: v for k, v in about.items() if v is not LOST}) + "\n")
    check_refused(folder, f"result.json {sentence}")


def damaged(content, rng):
    """Return content with some bytes changed, or cut off."""
    if rng.random() < 0.2:
        return content[: rng.integers(len(content))]
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(content) + 1))
        choice = [rng.bytes(1), b",", b"\n", b'"', b"\r", b"\0", b"\t", b"9", b""]
        content[at : at + int(rng.integers(3))] = choice[rng.integers(len(choice))]
    return bytes(content)


def test_a_damaged_file_is_loaded_or_refused_in_a_sentence(folder, saved_files):
    rng, sentences = np.random.default_rng(0), []
    for i in range(300):
        name = sorted(saved_files)[i % len(saved_files)]
        (folder / name).write_bytes(damaged(saved_files[name], rng))
        try:
            load_result(folder)
        except UserError as error:
            sentences.append(str(error))
        (folder / name).write_bytes(saved_files[name])
    assert 100 < len(sentences) < 300
    assert not any("\n" in sentence for sentence in sentences)
