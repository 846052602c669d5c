"""Text is read correctly for all separators, decimal marks and headers, which notes report."""

import re

import numpy as np
import pandas as pd
import pytest

from mrshc.io import TableError, read_table
from small_table import FEATURES, X, assert_read, features_in_rows


@pytest.mark.parametrize("separator", ["\t", ",", ";", "|", " "])
def test_separators_are_detected(write, separator):
    assert_read(read_table(write(features_in_rows(separator))))


@pytest.mark.parametrize("separator", ["\t", ";", "|", " "])
def test_decimal_commas_are_detected_and_reported(write, separator):
    table = read_table(write(features_in_rows(separator, decimal=",")))
    assert_read(table)
    assert any("decimal commas" in note for note in table.notes)


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


def test_comments_and_blank_lines_are_skipped(write):
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
    with pytest.raises(TableError, match="has no column or row 'end' that could be an annotation"):
        read_table(write(text), annotations=["end"])


def test_a_first_column_of_classes_does_not_name_the_rows(write):
    rows = "".join(f"{'tumour' if i % 2 else 'normal'},{i},{i * i},{-i}\n" for i in range(8))
    table = read_table(write("tissue,x,y,z\n" + rows), features="columns")
    assert list(table.sample_names[:2]) == ["sample 1", "sample 2"]
    assert table.sample_annotations["tissue"].tolist()[:2] == ["normal", "tumour"]


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
def test_a_first_column_of_whole_numbers_among_fractions_names_the_rows(write, title):
    rows = "".join(f"{1000 + 7 * i}\t{i / 3:.3f}\t{i / 7:.3f}\t{i / 11:.3f}\n" for i in range(1, 9))
    table = read_table(write(f"{title}\ta\tb\tc\n{rows}"))
    assert list(table.sample_names) == ["a", "b", "c"]
    assert table.feature_names[0] == "1007"


def test_known_annotations_of_features_are_recognised_and_noted(write):
    rows = "".join(
        f"g{i}\t{100 + i}\t{i % 3}\t{i / 3:.3f}\t{i / 7:.3f}\t{i}.5\n" for i in range(1, 9)
    )
    path = write(f"Hugo_Symbol\tEntrez_Gene_Id\tgrade\ta\tb\tc\n{rows}")
    table = read_table(path, annotations=["grade"])
    assert list(table.sample_names) == ["a", "b", "c"]
    assert table.feature_annotations["Entrez_Gene_Id"].tolist() == list(range(101, 109))
    assert "Annotations of the features: Entrez_Gene_Id, grade." in table.notes


@pytest.mark.parametrize("cell", ["<0.1", '"1,234.5"', "12 %", ">1e5"])
def test_columns_with_malformed_numbers_are_not_annotations(write, cell):
    rows = "".join(f"g{i}\t{i}.5\t{cell}\t{i}.25\n" for i in range(1, 9))
    with pytest.raises(TableError, match=r"where a number should be: line 2, row 'g1', column 'b'"):
        read_table(write(f"gene\ta\tb\tc\n{rows}"))


def test_unicode_minus_signs_are_read(write):
    rows = "".join(f"g{i}\t{i}.5\t\N{MINUS SIGN}{i}.5\t{i}.25\n" for i in range(1, 9))
    assert read_table(write(f"gene\ta\tb\tc\n{rows}")).X[1, 0] == -1.5


def test_thousands_are_not_decimals(write):
    text = "gene\ta\tb\tc\nx\t1,234\t567\t12,345\ny\t1,000\t2\t3\nz\t5\t6\t7\nw\t5\t6\t7\n"
    with pytest.raises(TableError, match=r"such as '1,234', whose comma may mark thousands or dec"):
        read_table(write(text))
    assert read_table(write(text), decimal=",").X[0, 0] == 1.234


def test_rows_that_begin_like_comments_are_rows(write):
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


def test_annotations_of_one_name_are_all_kept(write):
    rows = "".join(f"g{i},u{i},v{i},{i}.5,{i}.25,{i}.75\n" for i in range(5))
    table = read_table(write(f"gene,note,note,a,b,c\n{rows}"))
    assert list(table.feature_annotations.columns) == ["note", "note.2"]


def test_genes_with_several_probes_keep_their_names(write):
    rows = "".join(f"gene{i // 3},{i}.5,{i}.25,{i}.75\n" for i in range(60))
    table = read_table(write(f"symbol,a,b,c\n{rows}"))
    assert list(table.feature_names[:4]) == ["gene0", "gene0.2", "gene0.3", "gene1"]


def test_both_ways_of_reading_rows_give_the_same(write, monkeypatch):
    """Regular rows are read in blocks; after an irregular row, the rest is read cell by cell."""
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


def _read_with(write, row, *, at, separator):
    """Read a table with some row at a position; return what was read, or why it was refused."""
    rows = [separator.join([f"g{i}", f"{i}.5", "1.25", f"{i}.75"]) + "\n" for i in range(210)]
    header = separator.join(["gene", "a", "b", "c"]) + "\n"
    path = write("".join([header, *rows[:at], row, *rows[at:]]))
    try:
        table = read_table(path, features="rows", separator=separator, decimal=".")
    except TableError as error:
        # A cell that is left open goes on with other rows than at the top.
        return re.sub(r"line \d+", "line", str(error)).partition("'")[0]
    names = [re.sub(r"feature \d+", "no name", name) for name in table.feature_names]
    return sorted(zip(names, map(repr, table.X.T.tolist()), strict=True))


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('"g,x",1,2\n', "has 3 cells in line 232 where 4 were expected"),
        ('g,"1,2",3\n', "has 3 cells in line 232 where 4 were expected"),
        ('g,1,2,"3,"\n', "the text '3,' where a number should be: line 232, row 'g'"),
    ],
)
def test_quoted_separators_do_not_separate_in_later_blocks(write, row, sentence):
    rows = "".join(f"g{i},{i}.5,{i}.25,{i}.75\n" for i in range(230))
    with pytest.raises(TableError, match=sentence):
        read_table(write("gene,a,b,c\n" + rows + row), features="rows")


@pytest.mark.parametrize("row", [",,,", " , ,,", '"",,"",', "\xa0,,,"])
def test_rows_of_empty_cells_are_skipped_wherever_they_are(write, row):
    top, bottom = (_read_with(write, row + "\n", at=at, separator=",") for at in (3, 205))
    assert len(top) == len(bottom) == 210


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_rows_of_later_blocks_are_read_as_the_first_rows(write, separator):
    """The first 200 rows are read cell by cell, later ones in blocks."""
    rng = np.random.default_rng(ord(separator))
    pieces = ["1", "2.5", "x", " ", '"', '""', '"1"', '"g"', "NA", "-", separator, "\t", "'", "\r"]
    for _ in range(60):
        cells = ["".join(rng.choice(pieces, size=rng.integers(0, 4))) for _ in range(4)]
        usual = zip(cells, ["g", "1.5", "2.5", "3.5"], strict=True)
        row = separator.join(odd if rng.random() < 0.4 else cell for odd, cell in usual)
        top, bottom = (_read_with(write, row + "\n", at=at, separator=separator) for at in (3, 205))
        assert top == bottom, repr(row)
