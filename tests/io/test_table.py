"""Tables are read right, whatever their format, and what was understood is said."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc.exports import gct
from mrshc.io import TableError, read_table
from mrshc.io.raw_table import unique

ORACLES = Path(__file__).parents[1] / "oracles"
X = np.array([[1.5, -2.0, 3.25, 0.1], [4.0, 5e-7, 6.0, 1e10], [7.0, 8.0, 9.125, -0.3]])
SAMPLES, FEATURES = ["a", "b", "c"], ["g1", "g2", "g3", "g4"]


@pytest.fixture
def write(tmp_path):
    def written(content, name="table.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def features_in_rows(separator="\t", corner="gene", decimal=".", missing=None):
    """Return the table as text."""
    frame = pd.DataFrame(X.T, index=FEATURES, columns=SAMPLES)
    if missing is not None:
        frame = frame.astype(object)
        frame.iloc[1, 2] = missing
    text = frame.to_csv(sep=separator, decimal=decimal, index_label=corner, na_rep="")
    return text if corner is not None else text.removeprefix(separator)


def assert_read(table, *, dtype=np.float64):
    np.testing.assert_array_equal(table.X, X.astype(dtype))
    assert table.X.dtype == dtype
    assert list(table.sample_names) == SAMPLES
    assert list(table.feature_names) == FEATURES


@pytest.mark.parametrize("separator", ["\t", ",", ";", "|", " "])
def test_separators_are_found_out(write, separator):
    assert_read(read_table(write(features_in_rows(separator))))


@pytest.mark.parametrize("separator", ["\t", ";", "|", " "])
def test_decimal_commas_are_found_out_and_reported(write, separator):
    table = read_table(write(features_in_rows(separator, decimal=",")))
    assert_read(table)
    assert any("decimal commas" in note for note in table.notes)


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"]
)
def test_compressed_files_are_read_by_their_content(write, compress):
    assert_read(read_table(write(compress(features_in_rows().encode()), "table.tsv")))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(write, encoding):
    text = features_in_rows().replace("g1", "gé1")
    table = read_table(write(text.encode(encoding)))
    assert table.feature_names[0] == "gé1"
    np.testing.assert_array_equal(table.X, X)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(write, newline):
    assert_read(read_table(write(features_in_rows().replace("\n", newline))))


def test_a_header_without_a_name_above_the_names_as_r_writes_it(write):
    text = "a b c\n" + "\n".join(features_in_rows(" ").splitlines()[1:]) + "\n"
    assert_read(read_table(write(text)))
    quoted = text.replace("g1", '"g1"').replace("a b c", '"a" "b" "c"')
    assert_read(read_table(write(quoted)))


@pytest.mark.parametrize("corner", ["", "ID", "Unnamed: 0", "#gene"])
def test_any_title_above_the_names(write, corner):
    assert_read(read_table(write(features_in_rows(corner=corner))))


def test_separators_at_the_end_of_rows_make_no_column(write):
    rows = features_in_rows(",").splitlines()
    assert_read(read_table(write("\n".join([rows[0], *(row + "," for row in rows[1:])]))))
    assert_read(read_table(write("\n".join(row + "," for row in rows))))


def test_remarks_and_blank_lines_are_skipped(write):
    text = '!Series_title\t"x"\n\n# made by hand\n' + features_in_rows() + "\n!series_table_end\n"
    assert_read(read_table(write(text)))


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "nan", "null", "NULL", "N/A", " na "])
def test_missing_values_in_all_their_forms(write, missing):
    table = read_table(write(features_in_rows(",", missing=missing)))
    assert np.isnan(table.X[2, 1])
    assert np.isnan(table.X).sum() == 1
    assert "1 of 12 values are missing." in table.notes


def test_numbers_are_read_exactly(write):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 5)) * 10.0 ** rng.integers(-300, 300, size=(30, 5))
    rows = "".join(
        f"g{i}\t" + "\t".join(map(repr, row)) + "\n" for i, row in enumerate(values.tolist())
    )
    table = read_table(write("\ta\tb\tc\td\te\n" + rows))
    np.testing.assert_array_equal(table.X, values.T)


@pytest.mark.parametrize("names", [True, False])
def test_a_table_without_a_header(write, names):
    rows = features_in_rows(",").splitlines()[1:]
    if not names:
        rows = [row.partition(",")[2] for row in rows]
    table = read_table(write("\n".join(rows)))
    np.testing.assert_array_equal(table.X, X)
    assert list(table.feature_names) == (
        FEATURES if names else [f"feature {i}" for i in range(1, 5)]
    )


def test_numbered_columns_are_a_header(write):
    numbered = "0,1,2\n" + "\n".join(
        row.partition(",")[2] for row in features_in_rows(",").splitlines()[1:]
    )
    table = read_table(write(numbered))
    np.testing.assert_array_equal(table.X, X)
    assert list(table.sample_names) == ["0", "1", "2"]


def test_numbers_as_names_of_genes(write):
    text = features_in_rows(",", corner="ENTREZ_ID").replace("g", "1000")
    assert list(read_table(write(text)).feature_names) == ["10001", "10002", "10003", "10004"]


def test_more_rows_than_columns_means_features_in_rows_and_that_is_said(write):
    tall, wide = features_in_rows(","), pd.DataFrame(X, SAMPLES, FEATURES).to_csv()
    assert "features in rows (more rows than columns" in read_table(write(tall)).notes[0]
    assert_read(read_table(write(wide)))
    assert "features in columns (not more rows" in read_table(write(wide)).notes[0]
    np.testing.assert_array_equal(read_table(write(tall), features="columns").X, X.T)


def test_columns_of_text_are_annotations(write):
    rows = features_in_rows(",").splitlines()
    kinds = ["kind", "tumour", "NA", "stroma", "tumour"]
    text = "\n".join(
        f"{row.partition(',')[0]},{kind},{row.partition(',')[2]}"
        for row, kind in zip(rows, kinds, strict=True)
    )
    table = read_table(write(text))
    assert_read(table)
    assert table.feature_annotations["kind"].tolist()[::2] == ["tumour", "stroma"]
    assert pd.isna(table.feature_annotations["kind"].iloc[1])


def test_a_column_can_be_called_an_annotation(write):
    text = "gene,start,a,b,c\n" + "".join(
        f"g{i + 1},{100 * i},{','.join(map(repr, row))}\n" for i, row in enumerate(X.T.tolist())
    )
    table = read_table(write(text), annotations=["start"])
    assert_read(table)
    assert table.feature_annotations["start"].tolist() == [0, 100, 200, 300]
    with pytest.raises(TableError, match="has no column 'end' that could be an annotation"):
        read_table(write(text), annotations=["end"])


@pytest.mark.parametrize("position", [0, 1, 5])
def test_the_truth_is_never_a_feature_and_tells_where_samples_are(write, position):
    frame = pd.DataFrame(np.vstack([X, X + 1]), list("abcdef"), FEATURES)
    frame.insert(min(position, 4), "class", [0, 1, 0, 1, 0, 1])
    text = frame.to_csv(index=position > 0)
    table = read_table(write(text), truth="class")
    np.testing.assert_array_equal(table.X, np.vstack([X, X + 1]))
    assert table.sample_annotations["class"].tolist() == [0, 1, 0, 1, 0, 1]
    assert "'class' has a value for each row" in table.notes[0]


def test_a_first_column_of_classes_does_not_name_the_rows(write):
    rows = "".join(f"{'tumour' if i % 2 else 'normal'},{i},{i * i},{-i}\n" for i in range(8))
    table = read_table(write("tissue,x,y,z\n" + rows), features="columns")
    assert list(table.sample_names[:2]) == ["sample 1", "sample 2"]
    assert table.sample_annotations["tissue"].tolist()[:2] == ["normal", "tumour"]


def test_duplicate_names_are_made_unique_and_reported(write):
    table = read_table(write("gene,a,a,b\nx,1,2,3\nx,4,5,6\n,7,8,9\nx,1,1,2\n"))
    assert list(table.feature_names) == ["x", "x.2", "feature 3", "x.3"]
    assert list(table.sample_names) == ["a", "a.2", "b"]
    assert any("3 feature names were empty or not unique" in note for note in table.notes)


def test_unique_names_never_collide_with_given_ones():
    rng = np.random.default_rng(0)
    for _ in range(300):
        names = [str(name) for name in rng.choice(["a", "a.2", "a.3", "", "b", "a.2.2"], size=9)]
        once = unique(names, "sample")
        assert len(set(once)) == len(once)
        first = {name: names.index(name) for name in names if name}
        assert all(once[i] == name for name, i in first.items())


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


def test_names_tell_where_the_samples_are_even_if_there_are_more_of_them(write):
    frame = pd.DataFrame(np.arange(12.0).reshape(6, 2), list("uvwxyz"), ["g", "h"])
    meta = write("sample,class\n" + "".join(f"{name},1\n" for name in "zyxwvu"), "meta.csv")
    table = read_table(write(frame.to_csv()), samples=meta)
    assert list(table.sample_names) == list("uvwxyz")


def test_gct_reads_back_what_was_written(write):
    names = {"feature_names": FEATURES, "sample_names": SAMPLES}
    about = {
        "sample_annotations": {"class": list("xyx")},
        "feature_annotations": {"w": [1, 2, 3, 4]},
    }
    for extra in ({}, about):
        gaps = X.copy()
        gaps[1, 2] = np.nan
        table = read_table(write(gct(gaps, **names, **extra)))
        np.testing.assert_array_equal(table.X, gaps)
        assert list(table.feature_names) == FEATURES
        assert "as the format has it" in table.notes[0]
    assert table.sample_annotations["class"].tolist() == list("xyx")
    assert table.feature_annotations["w"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, ">f8"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_numpy_arrays(write, dtype, compress):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    buffer = io.BytesIO()
    np.save(buffer, values)
    table = read_table(write(compress(buffer.getvalue())))
    np.testing.assert_array_equal(table.X, values.T)
    assert table.X.dtype == (np.float32 if dtype is np.float32 else np.float64)


def test_numpy_archives_hold_names_and_annotations(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X, sample_names=SAMPLES, feature_names=FEATURES, y=list("uvu"), other=[1, 2])
    table = read_table(path)
    assert_read(table)
    assert table.sample_annotations["y"].tolist() == list("uvu")
    np.savez(path, values=X.T, feature_names=FEATURES)
    assert list(read_table(path).feature_names) == FEATURES
    np.savez(path, a=X, b=X)
    with pytest.raises(TableError, match="a matrix called 'X' or a single one, but holds 2"):
        read_table(path)


@pytest.mark.parametrize("named", ["index", "column"])
def test_parquet(tmp_path, named):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X.T, index=pd.Index(FEATURES, name="gene"), columns=SAMPLES)
    frame.insert(0, "kind", ["u", None, "v", "u"])
    path = tmp_path / "table.parquet"
    (frame if named == "index" else frame.reset_index()).to_parquet(path)
    table = read_table(path)
    assert_read(table)
    assert table.feature_annotations["kind"].tolist()[::2] == ["u", "v"]


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_files_of_anndata(kind):
    pytest.importorskip("h5py")
    table = read_table(ORACLES / f"{kind}.h5ad")
    assert table.X.shape == (6, 9)
    assert table.X.dtype == (np.float32 if kind == "dense" else np.float64)
    rng = np.random.default_rng(0)  # as the files were made
    values = np.round(rng.normal(size=(6, 9)), 3)
    values[rng.random((6, 9)) < 0.3] = 0
    np.testing.assert_array_equal(table.X, values.astype(table.X.dtype))
    assert list(table.sample_names[:2]) == ["cell 0", "cell 1"]
    about = table.sample_annotations
    assert about["class"].fillna("?").tolist() == list("ab?aba")
    assert about["site"].tolist()[:3] == ["Oslo", "Århus", "it's"]
    np.testing.assert_array_equal(about["age"], [41, 52, 63, np.nan, 35, 28.5])
    np.testing.assert_array_equal(about["count"], [1, 2, np.nan, 4, 5, 6])
    assert table.feature_annotations["chromosome"].tolist()[-1] == "MT"


def test_standard_input():
    code = "from mrshc.io import read_table; t = read_table('-'); print(t.X.shape, t.source)"
    content = gzip.compress(features_in_rows().encode())
    done = subprocess.run(
        [sys.executable, "-c", code], input=content, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "(3, 4) standard input"


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
    "a damaged npy": (b"\x93NUMPY\x01\x00v", "is not a whole .npy file"),
    "an unknown archive": (b"PK\x03\x04nothing", "is not a whole .npz file"),
    "a damaged parquet": (b"PAR1 and no more", "is not a whole Parquet file"),
    "a damaged h5ad": (b"\x89HDF\r\n\x1a\nand no more", "is not a whole .h5ad file"),
    "something else": (b"\x7fELF\x00\x00\x01", "is not a table of a known kind"),
    "GCT without a size": (b"#1.2\nfoo\n", "second line does not give its size"),
    "GCT cut off": (
        b"#1.2\n3\t3\nName\tDescription\ta\tb\tc\nx\t\t1\t2\t3\n",
        "gives 3 rows, but it has 1. It may be cut off",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_gets_one_sentence(write, case):
    content, sentence = BAD[case]
    with pytest.raises(TableError, match=sentence) as caught:
        read_table(write(content))
    assert str(caught.value).startswith(str(write(content)))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(TableError, match="There is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="There is no file"):
        read_table("a\0b")


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


@pytest.mark.parametrize("corner", ["gene", "", "Probe ID"])
def test_fractions_below_a_title_are_names_of_samples(write, corner):
    table = read_table(
        write(
            f"{corner}\t0\t0.5\t1\t1.1\na\t1\t2\t3\t4\nb\t1\t2.5\t3\t4\nc\t1\t1\t1\t2\nd\t1\t1\t0\t0\ne\t3\t1\t0\t0\n"
        )
    )
    assert list(table.sample_names) == ["0", "0.5", "1", "1.1"]
    assert list(table.feature_names) == list("abcde")


@pytest.mark.parametrize("title", ["ID_REF", "GeneID", "ENTREZID", "CLID", "spot", "X", "whatever"])
def test_whole_numbers_beside_fractions_name_the_rows(write, title):
    rows = "".join(f"{1000 + 7 * i}\t{i / 3:.3f}\t{i / 7:.3f}\t{i / 11:.3f}\n" for i in range(1, 9))
    table = read_table(write(f"{title}\ta\tb\tc\n{rows}"))
    assert list(table.sample_names) == ["a", "b", "c"]
    assert table.feature_names[0] == "1007"


def test_known_descriptions_of_features_are_set_aside_and_said(write):
    rows = "".join(
        f"g{i}\t{100 + i}\t{i % 3}\t{i / 3:.3f}\t{i / 7:.3f}\t{i}.5\n" for i in range(1, 9)
    )
    table = read_table(write(f"Hugo_Symbol\tEntrez_Gene_Id\tgrade\ta\tb\tc\n{rows}"))
    assert list(table.sample_names) == ["grade", "a", "b", "c"]
    assert table.feature_annotations["Entrez_Gene_Id"].tolist() == list(range(101, 109))
    assert "Annotations of the features: Entrez_Gene_Id." in table.notes
    assert any("Only whole numbers in 'grade'" in note for note in table.notes)


@pytest.mark.parametrize("cell", ["<0.1", '"1,234.5"', "12 %", ">1e5"])
def test_columns_that_were_meant_as_numbers_are_not_set_aside(write, cell):
    rows = "".join(f"g{i}\t{i}.5\t{cell}\t{i}.25\n" for i in range(1, 9))
    with pytest.raises(TableError, match=r"where a number should be: line 2, row 'g1', column 'b'"):
        read_table(write(f"gene\ta\tb\tc\n{rows}"))


def test_a_minus_is_a_minus(write):
    rows = "".join(f"g{i}\t{i}.5\t\N{MINUS SIGN}{i}.5\t{i}.25\n" for i in range(1, 9))
    assert read_table(write(f"gene\ta\tb\tc\n{rows}")).X[1, 0] == -1.5


def test_thousands_are_not_decimals(write):
    text = "gene\ta\tb\tc\nx\t1,234\t567\t12,345\ny\t1,000\t2\t3\nz\t5\t6\t7\nw\t5\t6\t7\n"
    with pytest.raises(TableError, match=r"such as '1,234', whose comma may mark thousands or dec"):
        read_table(write(text))
    assert read_table(write(text), decimal=",").X[0, 0] == 1.234


def test_rows_that_begin_like_remarks_are_rows(write):
    rows = "".join(
        f"{name}\t{i}.5\t1.5\t2.5\n" for i, name in enumerate(["a", "#N/A", "#REF!", "b"])
    )
    table = read_table(write(f"gene\tx\ty\tz\n{rows}"))
    assert list(table.feature_names) == ["a", "#N/A", "#REF!", "b"]


def test_annotations_that_look_like_numbers_are_not_changed(write):
    meta = (
        "sample;barcode;number;size;score;class\n"
        "a;12345678901234567890;001;3;1,5;1\nb;12345678901234567891;002;4;;2\nc;x;010;5;2,25;1\n"
    ).replace("c;x;", "c;12345678901234567892;")
    about = read_table(write(features_in_rows()), samples=write(meta, "m.csv")).sample_annotations
    assert about["barcode"].tolist()[0] == "12345678901234567890"
    assert about["number"].tolist() == ["001", "002", "010"]
    assert about["size"].tolist() == [3, 4, 5]
    assert about["size"].dtype.kind == "i"
    np.testing.assert_array_equal(about["score"], [1.5, np.nan, 2.25])


@pytest.mark.parametrize("separator", ["tab", r"\t", "\t"])
def test_a_separator_can_be_named(write, separator):
    assert_read(read_table(write(features_in_rows()), separator=separator))


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        ({"separator": "ab"}, "A separator must be a single character or 'tab', got 'ab'"),
        ({"separator": ""}, "A separator must be a single character"),
        ({"decimal": "x"}, "A decimal mark must be . or , got 'x'"),
    ],
)
def test_marks_that_cannot_be(write, mark, sentence):
    with pytest.raises(TableError, match=sentence):
        read_table(write(features_in_rows()), **mark)


def test_parquet_with_gaps_and_a_class_at_the_end(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=FEATURES).astype("Float64")
    frame.iloc[1, 2] = pd.NA
    frame["class"] = ["u", "v", "u"]
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", truth="class")
    assert np.isnan(table.X[1, 2])
    assert list(table.sample_names) == ["sample 1", "sample 2", "sample 3"]
    assert table.sample_annotations["class"].tolist() == ["u", "v", "u"]


def test_line_breaks_and_controls_in_names(write):
    text = 'gene,a,"b\nb",c\n"x\ny",1,2,3\ny,4,5,6\nz,7,8,9\nw,1,2,2\n'
    table = read_table(write(text))
    assert list(table.sample_names) == ["a", "b b", "c"]
    assert table.feature_names[0] == "x y"


def test_decimal_commas_below_a_very_long_header(write):
    n = 30_000
    header = ";".join(["sample", *(f"gene{j}" for j in range(n))])
    rows = "\n".join(";".join([f"s{i}", *(f"{j % 7},5" for j in range(n))]) for i in range(3))
    assert read_table(write(f"{header}\n{rows}\n")).X[0, 1] == 1.5


def test_names_with_semicolons_do_not_decide_on_the_separator(write):
    rows = "".join(f"k__B;p__F;c__{i},{i}.5,{i}.25,{i}.75\n" for i in range(9))
    table = read_table(write(f"taxon;x;y,a,b,c\n{rows}"))
    assert table.X.shape == (3, 9)


def test_annotations_as_r_writes_them(write):
    meta = write('"class" "age"\n"a" "x" 5\n"b" "y" 6\n"c" "x" 7\n', "meta.txt")
    about = read_table(write(features_in_rows()), samples=meta).sample_annotations
    assert about["class"].tolist() == ["x", "y", "x"]


def test_annotations_of_one_name_are_all_kept(write):
    rows = "".join(f"g{i},u{i},v{i},{i}.5,{i}.25,{i}.75\n" for i in range(5))
    table = read_table(write(f"gene,note,note,a,b,c\n{rows}"))
    assert list(table.feature_annotations.columns) == ["note", "note.2"]


def test_genes_with_several_probes_keep_their_names(write):
    rows = "".join(f"gene{i // 3},{i}.5,{i}.25,{i}.75\n" for i in range(60))
    table = read_table(write(f"symbol,a,b,c\n{rows}"))
    assert list(table.feature_names[:4]) == ["gene0", "gene0.2", "gene0.3", "gene1"]


def test_both_ways_of_reading_rows_give_the_same(write, monkeypatch):
    """Regular rows are read many at a time; any oddity sends the rest through cell by cell."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(600, 4)) * 10.0 ** rng.integers(-20, 20, size=(600, 4))
    rows = [
        "\t".join(
            [f"g{i}", f'"note, {i}"', *(repr(x) if rng.random() > 0.02 else "NA" for x in row)]
        )
        for i, row in enumerate(values.tolist())
    ]
    text = "\n".join(["gene\tabout\ta\tb\tc\td", *rows]) + "\n"
    fast = read_table(write(text))
    monkeypatch.setattr("mrshc.io.text_tables.row_reading.RowReader._is_regular", lambda *_: False)
    slow = read_table(write(text))
    np.testing.assert_array_equal(fast.X, slow.X)
    pd.testing.assert_frame_equal(fast.feature_annotations, slow.feature_annotations)
    assert np.isnan(fast.X).any()
    monkeypatch.undo()
    for odd, sentence in [
        ("g\tx\t1\t2\t3\toops\n", "the text 'oops' where a number should be: line 602, row 'g'"),
        ("g\tx\t1\t2\t3\n", "has 5 cells in line 602 where 6 were expected"),
    ]:
        with pytest.raises(TableError, match=sentence):
            read_table(write(text + odd))
    spelled = read_table(write(text + "\ng\tx\t1\t Na \t\N{MINUS SIGN}3\t4\n"))
    np.testing.assert_array_equal(spelled.X[:, -1], [1, np.nan, -3, 4])
