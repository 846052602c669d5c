"""Annotations of a second table are joined by the names of the samples."""

import numpy as np
import pandas as pd
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


def test_samples_without_a_row_have_no_annotations_and_are_named(write):
    meta = write("sample,class,age\na,x,5\nC,y,6\nb,z,7\n", "meta.csv")
    table = read_table(write(features_in_rows()), samples=meta)
    assert table.sample_annotations["class"].tolist()[:2] == ["x", "z"]
    assert pd.isna(table.sample_annotations["class"].iloc[2])
    np.testing.assert_array_equal(table.sample_annotations["age"], [5, 7, np.nan])
    assert (
        f"1 sample has no row in {meta} (by its column 'sample'), and so no annotations: c."
        in table.notes
    )
    assert any("1 of its rows are of other samples" in note for note in table.notes)


def test_a_table_of_other_samples_is_refused(write):
    meta = write("sample,class\nA,x\nB,y\nC,y\n", "meta.csv")
    with pytest.raises(TableError, match=r"none of its columns holds a sample name such as 'a'\."):
        read_table(write(features_in_rows()), samples=meta)


def test_samples_with_several_rows_are_refused(write):
    twice = write("sample,class\na,x\nb,y\nc,y\na,y\n", "meta.csv")
    with pytest.raises(TableError, match="must have one row for each sample, but has 2 for 'a'"):
        read_table(write(features_in_rows()), samples=twice)


def test_missing_annotations_may_have_other_spellings(write):
    meta = write("sample,class,age\na,ND,-9\nb,x,50\nc,y,-9.0\n", "meta.csv")
    about = read_table(
        write(features_in_rows()), samples=meta, na_values=["nd", -9]
    ).sample_annotations
    assert about["class"].isna().tolist() == [True, False, False]
    np.testing.assert_array_equal(about["age"], [np.nan, 50, np.nan])


def test_annotations_as_r_writes_them(write):
    meta = write('"class" "age"\n"a" "x" 5\n"b" "y" 6\n"c" "x" 7\n', "meta.txt")
    about = read_table(write(features_in_rows()), samples=meta).sample_annotations
    assert about["class"].tolist() == ["x", "y", "x"]
