"""Unreadable content is refused in one sentence; names and annotations are cleaned."""

import gzip
import lzma
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc.io import TableError, read_table, table_reading
from small_table import FEATURES, SAMPLES, X, features_in_rows

ORACLES = Path(__file__).parents[1] / "oracles"


BAD = {
    "an empty file": (b"", "is empty"),
    "blanks only": (b"\n  \n", "is empty"),
    "a header only": (b"gene,a,b,c\n", "holds a header only"),
    "a single column": (b"a\n1\n2\n3\n", "has a single column"),
    "one sample": (
        b"gene,a\nx,1\ny,2\nz,3\n",
        "at least 3 samples and 2 features, but has 1 and 3",
    ),
    "text for a number": (
        b"gene,a,b,c\nx,1,2,3\ny,4,oops,6\nz,7,8,9\nw,1,1,1\n",
        r"holds the text 'oops' where a number should be: line 3, row 'y', column 'b'",
    ),
    "thousands": (
        b"gene\ta\tb\tc\nx\t1.5\t2\t3\ny\t4\t1_000\t6\nz\t7\t8\t9\n",
        r"the text '1_000' where a number should be: line 3, row 'y', column 'b'",
    ),
    "a ragged row": (b"gene,a,b,c\nx,1,2,3\ny,4,5\nz,7,8,9\n", "has 3 cells in line 3 where 4"),
    "an open quote": (
        b'gene,a,b,c\nx,1,2,3\n"y,4,5,6\nz,7,8,9\n' + b"u,7,8,9\n" * 20000,
        "cannot be read from line 3 on.*quotation mark",
    ),
    "text only": (b"gene,a,b,c\nx,u,v,w\ny,u,v,w\n", "holds no column of numbers"),
    "a damaged gz": (gzip.compress(b"gene,a,b,c\nx,1,2,3\n" * 99)[:-20], "damaged or cut off"),
    "a damaged xz": (lzma.compress(b"gene,a,b,c\nx,1,2,3\n" * 99)[:-20], "damaged or cut off"),
    "a damaged npy": (b"\x93NUMPY\x01\x00v", "is not a complete .npy file"),
    "an unknown archive": (b"PK\x03\x04nothing", "is not a complete .npz file"),
    "a damaged parquet": (b"PAR1 and no more", "is not a complete Parquet file"),
    "a damaged h5ad": (b"\x89HDF\r\n\x1a\nand no more", "is not a complete .h5ad file"),
    "something else": (b"\x7fELF\x00\x00\x01", "is not a table in a known format"),
    "GCT without a size": (b"#1.2\nfoo\n", "second line must give its size"),
    "GCT cut off": (
        b"#1.2\n3\t3\nName\tDescription\ta\tb\tc\nx\t\t1\t2\t3\n",
        "gives 3 rows, but it has 1. It may be cut off",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_unreadable_content_is_refused_in_one_sentence(write, case):
    content, sentence = BAD[case]
    with pytest.raises(TableError, match=sentence) as caught:
        read_table(write(content))
    assert str(caught.value).startswith(str(write(content)))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("module", "file", "extra"),
    [("h5py", ORACLES / "dense.h5ad", "anndata"), ("pyarrow", b"PAR1", "parquet")],
)
def test_formats_without_their_extra_name_it(write, monkeypatch, module, file, extra):
    for name in (module, f"{module}.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    path = file if isinstance(file, Path) else write(file)
    with pytest.raises(
        TableError, match=rf"needs the extra '{extra}': pip install 'mrshc\[{extra}\]'"
    ):
        read_table(path)


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        ({"separator": "ab"}, "A separator must be a single character or 'tab', got 'ab'"),
        ({"separator": ""}, "A separator must be a single character"),
        ({"decimal": "x"}, "A decimal mark must be '.' or ',', got 'x'"),
    ],
)
def test_invalid_separators_and_decimal_marks_are_refused(write, mark, sentence):
    with pytest.raises(TableError, match=sentence):
        read_table(write(features_in_rows()), **mark)


def write_rows(path, header, *rows):
    lines = ["\t".join(map(str, row)) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_endless_name_or_annotation_is_refused(tmp_path):
    rows = [[f"g{j}", 1.5 * j, 2, j] for j in range(5)]
    path = write_rows(tmp_path / "t.tsv", ["", "a", "b", "c"], ["x" * 2_000_000, 1, 2, 3], *rows)
    with pytest.raises(TableError, match="holds 2,000,000 characters as the name of a feature"):
        read_table(path)
    noted = [[f"g{j}", "y" * 40_000, 1.5 * j, 2, j] for j in range(5)]
    path = write_rows(tmp_path / "t.tsv", ["", "about", "a", "b", "c"], *noted)
    with pytest.raises(TableError, match="holds 40,000 characters as an annotation"):
        read_table(path)


HOSTILE = "\x1b[31mred\x9b1m\u202egnp.exe\x85"


def test_names_titles_and_values_are_cleaned_where_they_enter(tmp_path):
    rng = np.random.default_rng(0)
    rows = [[f"s{i}{HOSTILE}", f"{HOSTILE}{i % 2}", *rng.normal(size=4)] for i in range(6)]
    genes = [f"g{j}{HOSTILE}" for j in range(4)]
    path = write_rows(tmp_path / "t.tsv", ["", f"class{HOSTILE}", *genes], *rows)
    table = read_table(path, features="columns")
    (title,) = table.sample_annotations
    texts = [*table.sample_names, *table.feature_names, *table.notes, title]
    texts += list(table.sample_annotations[title])
    assert all(text.isprintable() for text in texts)
    assert set(table.sample_annotations[title]) == {"[31mred 1mgnp.exe 0", "[31mred 1mgnp.exe 1"}


def test_a_second_table_is_joined_by_cleaned_names(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"s{i}\x9b" for i in range(6)]
    rows = [[name, *rng.normal(size=4)] for name in names]
    path = write_rows(tmp_path / "t.tsv", ["", *"abcd"], *rows)
    clinic = write_rows(
        tmp_path / "c.tsv", ["sample", "class"], *([n, "uv"[i % 2]] for i, n in enumerate(names))
    )
    table = read_table(path, features="columns", samples=clinic)
    assert list(table.sample_annotations["class"]) == list("uvuvuv")


def test_whole_numbers_that_are_rounded_are_noted(tmp_path):
    X = np.arange(24).reshape(4, 6)
    for offset, noted in ((0, False), (2**60, True)):
        np.save(tmp_path / "t.npy", X + offset)
        names = [f"g{j}" for j in range(6)]
        rows = [[f"s{i}", *map(int, row + offset)] for i, row in enumerate(X)]
        text = write_rows(tmp_path / "t.tsv", ["id", *names], *rows)
        for path in (tmp_path / "t.npy", text):
            notes = " ".join(read_table(path, features="columns").notes)
            assert ("24 values are 2^53 or larger" in notes) == noted


@pytest.mark.parametrize("in_memory", [True, False])
def test_integers_of_anndata_that_are_rounded_are_noted(tmp_path, in_memory):
    h5py = pytest.importorskip("h5py")
    for factor in (1, 2**53):
        path = tmp_path / f"{factor}.h5ad"
        shutil.copy(ORACLES / "dense.h5ad", path)
        with h5py.File(path, "r+") as file:
            values = np.arange(file["X"].size).reshape(file["X"].shape) * factor
            del file["X"]
            file["X"] = values
        table = read_table(path, in_memory=in_memory)
        notes = " ".join(table.notes)
        assert ("53 values are 2^53 or larger" in notes) == (in_memory and factor > 1)


def test_a_table_that_does_not_fit_into_memory_is_refused_with_a_way_out(tmp_path, monkeypatch):
    def too_little(*_):
        raise MemoryError

    monkeypatch.setattr(table_reading, "read_raw_table", too_little)
    with pytest.raises(
        TableError,
        match=r"x\.csv does not fit into memory\. Store it as .*\.npy.* and give in_memory=False",
    ):
        read_table(tmp_path / "x.csv")


def binary_table(tmp_path, kind):
    path = tmp_path / f"data{kind}"
    if kind == ".npy":
        np.save(path, X)
    elif kind == ".npz":
        np.savez(path, X=X, sample_names=SAMPLES, feature_names=FEATURES)
    elif kind == ".parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame(X, columns=FEATURES).to_parquet(path)
    else:
        shutil.copy(ORACLES / "dense.h5ad", path)
    return path


KINDS = [".npy", ".npz", ".parquet", ".h5ad"]


@pytest.mark.parametrize("kind", KINDS)
def test_absent_annotations_are_refused_in_all_formats(tmp_path, kind):
    path = binary_table(tmp_path, kind)
    with pytest.raises(TableError, match=r"has no column or row 'nosuch' that could be an"):
        read_table(path, annotations=["nosuch"])


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_text_without_effect_are_noted_in_other_formats(tmp_path, kind):
    table = read_table(binary_table(tmp_path, kind), separator=";", decimal=",")
    notes = [note for note in table.notes if "has no effect" in note]
    assert [note.split()[0] for note in notes] == ["separator", "decimal"]
    assert all(kind in note or "Parquet" in note for note in notes)
    assert not any("has no effect" in note for note in read_table(path_of(tmp_path)).notes)


def path_of(tmp_path):
    path = tmp_path / "text.csv"
    path.write_text(features_in_rows(","), encoding="utf-8")
    return path
