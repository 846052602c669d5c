"""Files of gene sets: read as they are meant, or refused by a sentence that names the line."""

import gzip
import os

import pytest

from mrshc.errors import UserError
from mrshc.io import TableError, read_gene_sets
from mrshc.io import gene_sets as module


@pytest.fixture
def read(tmp_path):
    def read_content(content):
        path = tmp_path / "sets.gmt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_gene_sets(path)

    return read_content


def test_names_descriptions_and_genes(read):
    sets = read("growth\tsee web\tMYC\tE2F1\nrest\t\tCDKN1A\n")
    assert dict(sets) == {"growth": ("MYC", "E2F1"), "rest": ("CDKN1A",)}
    assert sets.descriptions == {"growth": "see web", "rest": ""}
    assert sets.lines == {"growth": 1, "rest": 2}
    assert sets.notes == ("2 gene sets with 3 genes.",)
    assert len(sets) == 2


@pytest.mark.parametrize(
    "content",
    [
        "a\tb\tX\tY\r\nc\td\tZ\r\n",
        "a\tb\tX\tY\rc\td\tZ",
        "\n\na\tb\tX\tY\t\t\n   \nc\td\t\tZ",
        "\ufeffa\tb\t X \tY\nc\td\tZ\n",
        "a\tb\tX\tY\nc\td\tZ\n".encode("utf-16"),
        gzip.compress(b"a\tb\tX\tY\nc\td\tZ\n"),
    ],
    ids=["windows", "old mac", "blanks", "mark", "utf-16", "gzip"],
)
def test_other_line_ends_blanks_encodings_and_compression(read, content):
    sets = read(content)
    assert dict(sets) == {"a": ("X", "Y"), "c": ("Z",)}


def test_repeated_genes_count_once_and_empty_sets_are_left_out(read):
    sets = read("a\t\tX\tX\tY\nb\t\tY\tY\nempty\tno genes\nc\t\tZ\nvoid\t\t\t\n")
    assert dict(sets) == {"a": ("X", "Y"), "b": ("Y",), "c": ("Z",)}
    assert sets.notes[1:] == (
        "A gene that a set repeats counts once: 'a' in line 1 and 1 more.",
        "Sets without genes are left out: 'empty' in line 3 and 1 more.",
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a\t\tX\nb\t\tY\na\t\tZ\n", "has the set 'a' in line 1 and again in line 3. Rename one"),
        (
            "a\t\tX\nb MYC E2F1\n",
            "has no tab in line 2, which is 'b MYC E2F1'. A .gmt file has one",
        ),
        ("name,description,genes\n", "has no tab in line 1"),
        ("a\t\tX\n\tweb\tY\n", "has no name of a set in line 2"),
        ("a\nb\n", "has no tab in line 1"),
        ("a\tX\nb\tY\n", "has no genes in any set, the first of which is 'a' in line 1"),
        ("", "is empty"),
        ("\n \n", "is empty"),
        (b"a\t\tX\nb\tcaf\xe9\tY\n", "is not text in UTF-8 in line 2"),
        (b"a\t\tX\0\n", "is not text: it has null characters"),
        ("a\t\tX\n".encode("utf-16")[:-1], "is not valid text after line"),
        ("a\t\t" + "X" * 40_000 + "\n", "has a cell of 40,000 characters in line 1"),
        ("z" * 99 + "\n", "has no tab in line 1, which is '" + "z" * 39 + "…'"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is not text"),
    ],
)
def test_other_files_are_refused_by_line(read, content, sentence):
    with pytest.raises(TableError) as caught:
        read(content)
    assert f"sets.gmt {sentence}" in str(caught.value)
    assert str(caught.value).endswith(".")


def test_huge_lines_are_refused_before_they_are_read(read, monkeypatch):
    monkeypatch.setattr(module, "_MAX_LINE_LENGTH", 1000)
    with pytest.raises(TableError, match="more than 1,000 characters in line 2"):
        read("a\t\tX\nb\t\t" + "Y\t" * 2000 + "\n")


def test_unsafe_characters_are_cleaned_as_in_names_of_features(read):
    assert dict(read("a\x1b[31m\t\u202ew\tX\x07\n")) == {"a [31m": ("X",)}


def test_no_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        read_gene_sets(tmp_path / "none.gmt")
    with pytest.raises(UserError, match=r"is a folder, but a \.gmt file was wanted"):
        read_gene_sets(tmp_path)
    with pytest.raises(UserError, match="is a device"):
        read_gene_sets(os.devnull)
