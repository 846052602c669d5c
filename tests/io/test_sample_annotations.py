"""Annotations of a second table are joined by the names of the samples."""

import pytest

from mrshc.io import TableError, read_table
from small_table import features_in_rows


def annotated(write, **options):
    meta = "id;sample;class;age\n1;c;x;50\n2;a;y;\n3;b;x;61,5\n4;z;y;70\n"
    path = write(meta, "meta.csv")
    return read_table(write(features_in_rows()), samples=path, **options)


def test_annotations_of_a_second_table_are_joined_by_name(write):
    table = annotated(write)
    assert table.sample_annotations["class"].tolist() == ["y", "x", "x"]
    assert list(table.sample_annotations.columns) == ["id", "class", "age"]
    assert any("1 of its rows are of other samples" in note for note in table.notes)
    assert "by the names of the samples" in table.notes[0]


def test_samples_without_a_partner_are_named(write):
    meta = write("sample,class\na,x\nB,y\nC,y\n", "meta.csv")
    with pytest.raises(TableError, match=r"2 of 3 have none in its column 'sample': b, c\."):
        read_table(write(features_in_rows()), samples=meta)
    twice = write("sample,class\na,x\nb,y\nc,y\na,y\n", "meta.csv")
    with pytest.raises(TableError, match="must have one row for each sample, but has 2 for 'a'"):
        read_table(write(features_in_rows()), samples=twice)


def test_annotations_as_r_writes_them(write):
    meta = write('"class" "age"\n"a" "x" 5\n"b" "y" 6\n"c" "x" 7\n', "meta.txt")
    about = read_table(write(features_in_rows()), samples=meta).sample_annotations
    assert about["class"].tolist() == ["x", "y", "x"]
