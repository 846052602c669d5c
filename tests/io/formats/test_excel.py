"""Workbooks are read as tables, and whatever cannot be read is refused in one sentence."""

import datetime
import io
import zipfile

import numpy as np
import pytest

from mrshc.io import TableError, read_table
from small_table import FEATURES, SAMPLES, X, assert_read

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("openpyxl.chart")

ROWS = [
    ["gene", *SAMPLES],
    *([name, *row] for name, row in zip(FEATURES, X.T.tolist(), strict=True)),
]


@pytest.fixture
def workbook(tmp_path):
    """Return a function that writes sheets, each a list of rows, and returns the path."""

    def write(change=lambda _: None, name="table.xlsx", **sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in (sheets or {"Sheet1": ROWS}).items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        change(book)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def test_a_workbook_is_read_exactly(workbook):
    table = read_table(workbook())
    assert_read(table)
    assert "features in rows" in table.notes[0]


def test_a_workbook_is_read_from_a_stream_and_by_its_content(workbook, tmp_path, monkeypatch):
    content = workbook().read_bytes()
    (tmp_path / "renamed.txt").write_bytes(content)
    assert_read(read_table(tmp_path / "renamed.txt"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    assert_read(read_table("-"))


def test_numbers_keep_all_their_digits(workbook):
    values = np.random.default_rng(0).normal(size=(6, 4)) * 10.0 ** np.arange(-3, 1)
    values = np.array([float(f"{v:.15g}") for v in values.flat]).reshape(6, 4)  # as Excel stores
    rows = [["", "a", "b", "c", "d"], *([f"g{i}", *row] for i, row in enumerate(values.tolist()))]
    np.testing.assert_array_equal(read_table(workbook(s=rows)).X, values.T)


def test_a_sheet_without_numbers_is_named(workbook):
    path = workbook(about=[["made", "by"], ["me", "today"], ["you", "then"]], table=ROWS)
    with pytest.raises(TableError, match=r"no column of numbers.*Sheet 'about' was read; another"):
        read_table(path)


def test_a_sheet_that_is_too_small_is_named(workbook):
    ages = [["name", "age"], *([f"s{i}", 50 + i] for i in range(6))]
    with pytest.raises(TableError, match=r"Sheet 'ages' is read, the first of 'ages', 'table'"):
        read_table(workbook(ages=ages, table=ROWS))


def test_sheets_are_chosen_by_name_or_number(workbook):
    other = [[row[0], *(2 * v if isinstance(v, float) else v for v in row[1:])] for row in ROWS]
    path = workbook(first=ROWS, second=other)
    table = read_table(path)
    assert_read(table)
    assert any(
        "Sheet 'first' is read, the first of 'first', 'second'; name another with sheet." in note
        for note in table.notes
    )
    for sheet in ("second", "2", 2):
        np.testing.assert_array_equal(read_table(path, sheet=sheet).X, 2 * X)
    for sheet in ("third", "3", "0", ""):
        with pytest.raises(
            TableError, match=f"no sheet '{sheet}'. Its sheets are 'first', 'second'"
        ):
            read_table(path, sheet=sheet)


def test_a_sheet_has_no_effect_on_other_formats(write):
    table = read_table(write("g,a,b,c\nx,1,2,3\ny,2,1,5\nz,5,1,3\nu,1,1,1\n"), sheet="x")
    assert "sheet has no effect: the table is a table as text." in table.notes


def test_titles_above_the_table_and_empty_rows_are_left_out(workbook):
    rows = [["Table S1. Expression"], [], *ROWS[:3], [None] * 4, *ROWS[3:], []]
    table = read_table(workbook(lambda book: book.active.merge_cells("A1:D1"), s=rows))
    assert_read(table)
    assert "Rows 1 to 2 are above the table and left out." in table.notes


@pytest.mark.parametrize("cell", [None, "NA", "#N/A", "  "])
def test_missing_values(workbook, cell):
    rows = [list(row) for row in ROWS]
    rows[2][3] = cell
    table = read_table(workbook(s=rows))
    assert np.isnan(table.X[2, 1])
    assert np.isnan(table.X).sum() == 1


def test_text_dates_and_truth_values_are_annotations(workbook):
    day = datetime.datetime(2020, 5, 17)
    extra = [["kind", "taken", "control"], *(["x", day, True], ["y", day, False]) * 2]
    rows = [[row[0], *more, *row[1:]] for row, more in zip(ROWS, extra, strict=True)]
    table = read_table(workbook(s=rows))
    assert_read(table)
    about = table.feature_annotations
    assert about["kind"].tolist() == ["x", "y", "x", "y"]
    assert about["taken"].tolist() == ["2020-05-17"] * 4
    assert about["control"].tolist() == ["TRUE", "FALSE"] * 2


def test_names_that_excel_turned_into_dates_are_reported(workbook):
    rows = [list(row) for row in ROWS]
    rows[2][0] = datetime.date(2024, 3, 1)
    table = read_table(workbook(s=rows))
    assert table.feature_names[1] == "2024-03-01"
    assert any("1 name is a date: Excel turns names of genes" in note for note in table.notes)


def test_values_of_formulas_need_to_be_stored(workbook, tmp_path):
    rows = [list(row) for row in ROWS]
    rows[3][2] = "=B4*2"
    path = workbook(s=rows)
    with pytest.raises(
        TableError, match=r"formula without a stored value, in cell C4 of sheet 's'"
    ):
        read_table(path)
    # Excel stores the value of a formula beside it.
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    assert b"<v></v>" in sheet or b"<v />" in sheet or b"<v/>" in sheet
    for empty in (b"<v></v>", b"<v />", b"<v/>"):
        sheet = sheet.replace(empty, b"<v>6.5</v>")
    with zipfile.ZipFile(tmp_path / "stored.xlsx", "w") as archive:
        for name, content in (parts | {"xl/worksheets/sheet1.xml": sheet}).items():
            archive.writestr(name, content)
    assert read_table(tmp_path / "stored.xlsx").X[1, 2] == 6.5


@pytest.mark.parametrize("cells", ["B1:C1", "B2:B3", "A5:D5"])
def test_merged_cells_are_refused(workbook, cells):
    with pytest.raises(
        TableError, match=rf"merged cells, {cells} in sheet 'Sheet1'.* Unmerge them"
    ):
        read_table(workbook(lambda book: book.active.merge_cells(cells)))


def test_mistakes_in_cells_are_located(workbook):
    rows = [list(row) for row in ROWS]
    rows[2][3] = "#DIV/0!"
    with pytest.raises(
        TableError, match=r"text '#DIV/0!' where a number should be: line 3, row 'g2'"
    ):
        read_table(workbook(s=rows))
    rows[2][3] = datetime.date(2001, 3, 1)
    with pytest.raises(TableError, match=r"text '2001-03-01' where a number should be"):
        read_table(workbook(s=rows))


@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        ({"s": []}, "holds no table: its sheet 's' is empty$"),
        ({"s": [[None, " "]], "t": ROWS}, "sheet 's' is empty. Name another sheet with sheet"),
        ({"s": ROWS[:1]}, "holds a header only in sheet 's'"),
        ({"s": [["only"]] * 3}, "has a single column"),
        ({"s": [["a", "b"], ["x", "y"], ["u", "v"]]}, "holds no column of numbers"),
    ],
)
def test_sheets_without_a_table(workbook, sheets, message):
    with pytest.raises(TableError, match=message.rstrip("$") + (r"\.$" if "$" in message else "")):
        read_table(workbook(**sheets))


def test_a_workbook_without_cells(workbook):
    def add_a_chart(book):
        chart = openpyxl.chart.BarChart()
        chart.add_data(openpyxl.chart.Reference(book["s"], min_col=2, min_row=1, max_row=3))
        book.create_chartsheet("chart", 0).add_chart(chart)

    def leave_a_chart(book):
        add_a_chart(book)
        del book["s"]

    assert_read(read_table(workbook(add_a_chart, s=ROWS)))
    with pytest.raises(TableError, match="holds no sheet with cells"):
        read_table(workbook(leave_a_chart, s=ROWS))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_workbook_that_is_cut_off(workbook, tmp_path, share):
    content = workbook().read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(content[: int(share * len(content))])
    with pytest.raises(TableError, match="is not a complete Excel workbook"):
        read_table(tmp_path / "cut.xlsx")


def test_damaged_parts_of_a_workbook(workbook, tmp_path):
    with zipfile.ZipFile(workbook()) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name in ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "[Content_Types].xml"):
        with zipfile.ZipFile(tmp_path / "damaged.xlsx", "w") as archive:
            for part, content in parts.items():
                archive.writestr(part, content[: len(content) // 2] if part == name else content)
        with pytest.raises(TableError, match="is not a complete Excel workbook"):
            read_table(tmp_path / "damaged.xlsx")


def test_workbooks_of_other_formats_get_advice(tmp_path):
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(
        TableError, match=r"encrypted or in the old format \.xls\. Save it as \.xlsx"
    ):
        read_table(tmp_path / "old.xls")
    with zipfile.ZipFile(tmp_path / "binary.xlsb", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("xl/workbook.bin", "")
    with pytest.raises(TableError, match=r"in binary format \(\.xlsb\)\. Save it as \.xlsx or CSV"):
        read_table(tmp_path / "binary.xlsb")


def test_a_workbook_cannot_be_read_in_blocks(workbook):
    with pytest.raises(TableError, match="cannot be read in blocks"):
        read_table(workbook(), in_memory=False)


def test_without_the_library_the_extra_is_named(workbook, monkeypatch):
    path = workbook()
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"needs the extra 'excel': pip install 'mrshc\[excel\]'"):
        read_table(path)


def test_annotations_of_samples_in_a_workbook(workbook):
    clinic = workbook(
        name="clinic.xlsx", s=[["sample", "age"], ["c", 50], ["a", 41.5], ["b", None]]
    )
    table = read_table(workbook(), samples=clinic)
    np.testing.assert_array_equal(table.sample_annotations["age"], [41.5, np.nan, 50])
