"""Annotations of a second table are joined by the names of the samples."""

import pandas as pd
import pytest

from mrshc.io import TableError, read_table
from mrshc.shell.wording import ParameterError, reword
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
    assert table.sample_annotations["age"].tolist() == [5, 7, pd.NA]
    assert (
        f"1 sample has no row in {meta} (by its column 'sample'), and so no annotations from it: c."
        in table.notes
    )
    assert any("1 of its rows are of other samples" in note for note in table.notes)


def test_samples_without_a_row_keep_the_annotations_of_the_table(write):
    table = write("s,age,g1,g2,g3,g4\na,30,.1,2,3,1\nb,40,1,.2,1,2\nc,50,3,1,.2,2\n")
    meta = write("sample,age\na,31\nb,\n", "meta.csv")
    read = read_table(table, samples=meta, annotations=["age"])
    assert read.sample_annotations["age"].tolist() == [31, pd.NA, 50]
    assert any(
        "replace the table's own, except for samples without a row: age" in n for n in read.notes
    )


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
    assert about["age"].tolist() == [pd.NA, 50, pd.NA]


def test_annotations_as_r_writes_them(write):
    meta = write('"class" "age"\n"a" "x" 5\n"b" "y" 6\n"c" "x" 7\n', "meta.txt")
    about = read_table(write(features_in_rows()), samples=meta).sample_annotations
    assert about["class"].tolist() == ["x", "y", "x"]


def workbook(tmp_path, **sheets):
    pytest.importorskip("openpyxl")
    path = tmp_path / "study.xlsx"
    with pd.ExcelWriter(path) as writer:
        for name, frame in sheets.items():
            frame.to_excel(writer, sheet_name=name, index=False)
    return path


def test_annotations_may_be_in_another_sheet_of_the_same_workbook(tmp_path):
    genes = pd.DataFrame({"gene": list("wxyz"), "a": 1.5, "b": [1, 2, 3, 4.5], "c": 0.5})
    clinic = pd.DataFrame({"sample": ["c", "a", "b"], "class": ["u", "v", "v"]})
    path = workbook(tmp_path, values=genes, clinic=clinic)
    for sheet in ("clinic", 2):
        table = read_table(path, sheet="values", samples=path, samples_sheet=sheet)
        assert table.sample_annotations["class"].tolist() == ["v", "v", "u"]
        assert table.reading["samples_sheet"] == sheet
    with pytest.raises(TableError, match=r"has no sheet 'C'\. Its sheets are 'values', 'clinic'"):
        read_table(path, samples=path, samples_sheet="C")


def test_the_sheet_of_annotations_that_is_read_is_stated(write, tmp_path):
    clinic = pd.DataFrame({"sample": ["c", "a", "b"], "class": ["u", "v", "v"]})
    path = workbook(tmp_path, first=clinic, second=clinic)
    notes = read_table(write(features_in_rows()), samples=path).notes
    assert f"{path}: Sheet 'first' is read, the first of 'first', 'second'; name another with " in (
        " ".join(notes)
    )
    assert any(reword(note, lambda _: "OPTION").endswith("with OPTION.") for note in notes)


def test_a_sheet_of_annotations_needs_a_workbook(write):
    meta = write("sample,class\na,x\nb,y\nc,z\n", "meta.csv")
    with pytest.raises(TableError, match=r"not an Excel workbook, so it has no sheet 'S'\. Leave"):
        read_table(write(features_in_rows()), samples=meta, samples_sheet="S")
    with pytest.raises(ParameterError, match="samples_sheet has no effect without samples"):
        read_table(write(features_in_rows()), samples_sheet="S")
