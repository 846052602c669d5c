"""Every kind of source is read once and whole, or refused with one sentence."""

import bz2
import gzip
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc.io import TableError, can_stay, read_table

ORACLES = Path(__file__).parents[1] / "oracles"


@pytest.fixture(scope="module")
def frame():
    """Return 3,000 features of 12 samples: more than a pipe holds at once."""
    X = np.random.default_rng(0).normal(size=(3000, 12))
    return pd.DataFrame(X, [f"g{j}" for j in range(3000)], [f"s{i}" for i in range(12)])


def through_fifo(path, content, read):
    """Call read(path) while another thread writes to a named pipe."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    try:
        return read(path)
    finally:
        writer.join(timeout=60)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_named_pipe_is_read_whole(frame, tmp_path, pack):
    content = pack(frame.to_csv(sep="\t").encode())
    table = through_fifo(tmp_path / "fifo", content, read_table)
    pd.testing.assert_frame_equal(table.to_frame().T, frame, check_names=False)


@pytest.mark.parametrize("name", ["csr.h5ad", "dense.h5ad"])
def test_formats_that_are_not_read_front_to_back_come_through_a_pipe(tmp_path, name):
    table = through_fifo(tmp_path / "fifo", (ORACLES / name).read_bytes(), read_table)
    expected = read_table(ORACLES / name)
    np.testing.assert_array_equal(table.X, expected.X)
    assert list(table.sample_names) == list(expected.sample_names)


def test_asking_whether_a_pipe_can_stay_does_not_read_from_it(frame, tmp_path):
    def ask_and_read(path):
        assert not can_stay(path)
        return read_table(path)

    table = through_fifo(tmp_path / "fifo", frame.to_csv().encode(), ask_and_read)
    assert table.X.shape == (12, 3000)


def test_process_substitution_loses_nothing(frame, tmp_path):
    frame.to_csv(tmp_path / "table.tsv", sep="\t")
    names = pd.DataFrame({"sample": frame.columns, "class": list("uv") * 6})
    names.to_csv(tmp_path / "clinic.csv", index=False)
    program = "from mrshc.app.cli import main; main()"
    options = "--samples <(cat clinic.csv) --truth class --method hmv -q 5 -k 2 --json --out out"
    command = f'{sys.executable} -c "{program}" cluster <(cat table.tsv) {options}'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert b'"n_features": 3000' in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/tty0"])
def test_devices_are_refused(device):
    if not Path(device).exists():
        pytest.skip(f"there is no {device}")
    with pytest.raises(TableError, match=f"{device} (is a device|cannot be read)"):
        read_table(device)


def test_damaged_bzip2_is_an_error_of_the_input(frame, tmp_path):
    content = bytearray(bz2.compress(frame.to_csv().encode()))
    content[len(content) // 2] ^= 255
    (tmp_path / "table.csv.bz2").write_bytes(content)
    with pytest.raises(TableError, match=r"table\.csv\.bz2 is a compressed file that is damaged"):
        read_table(tmp_path / "table.csv.bz2")


def test_a_file_that_cannot_be_read_is_an_error_of_the_input():
    if not Path("/proc/self/mem").exists():
        pytest.skip("there is no file here that opens but cannot be read")
    with pytest.raises(TableError, match="/proc/self/mem cannot be read: Input/output error"):
        read_table("/proc/self/mem")


def archive(path, *members):
    with zipfile.ZipFile(path, "w") as content:
        for member in members:
            content.writestr(member, "1,2\n3,4\n")
    return path


def test_archives_that_hold_no_arrays(tmp_path):
    with pytest.raises(TableError, match=r"is an Excel workbook\. Save the sheet as CSV"):
        read_table(archive(tmp_path / "a.xlsx", "[Content_Types].xml", "xl/workbook.xml"))
    with pytest.raises(TableError, match=r"is an archive with 'table\.csv' in it.* Unpack it"):
        read_table(archive(tmp_path / "a.csv.zip", "table.csv"))


GCT = "#1.2\n{}\t3\nName\tDescription\ta\tb\tc\n" + "".join(
    f"g{i}\t\t{i}\t2\t3\n" for i in range(3)
)


@pytest.mark.parametrize("size", ["٣", "³", "3" * 5000, "-3", "3.0", ""])
def test_sizes_of_a_gct_file_are_plain_digits(tmp_path, size):
    (tmp_path / "table.gct").write_text(GCT.format(size), encoding="utf-8")
    with pytest.raises(TableError, match="second line does not give its size"):
        read_table(tmp_path / "table.gct")


def test_nested_columns_of_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=9) for name in "abc"}
    maps = arrow.array([[("k", 1)]] * 9, arrow.map_(arrow.string(), arrow.int64()))
    for nested in ([[1, 2]] * 9, [{"x": 1}] * 9, maps):
        parquet.write_table(arrow.table({"odd": nested, **numbers}), tmp_path / "t.parquet")
        with pytest.raises(TableError, match=r"holds .* values in column 'odd', but numbers or"):
            read_table(tmp_path / "t.parquet")


def write(path, header, *rows):
    lines = ["\t".join(map(str, row)) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_endless_name_or_annotation_is_refused(tmp_path):
    rows = [[f"g{j}", 1.5 * j, 2, j] for j in range(5)]
    path = write(tmp_path / "t.tsv", ["", "a", "b", "c"], ["x" * 2_000_000, 1, 2, 3], *rows)
    with pytest.raises(TableError, match="holds 2,000,000 characters as the name of a feature"):
        read_table(path)
    noted = [[f"g{j}", "y" * 40_000, 1.5 * j, 2, j] for j in range(5)]
    path = write(tmp_path / "t.tsv", ["", "about", "a", "b", "c"], *noted)
    with pytest.raises(TableError, match="holds 40,000 characters as an annotation"):
        read_table(path)


HOSTILE = "\x1b[31mred\x9b1m\u202egnp.exe\x85"


def test_names_titles_and_values_are_cleaned_where_they_enter(tmp_path):
    rng = np.random.default_rng(0)
    rows = [[f"s{i}{HOSTILE}", f"{HOSTILE}{i % 2}", *rng.normal(size=4)] for i in range(6)]
    genes = [f"g{j}{HOSTILE}" for j in range(4)]
    path = write(tmp_path / "t.tsv", ["", f"class{HOSTILE}", *genes], *rows)
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
    path = write(tmp_path / "t.tsv", ["", *"abcd"], *rows)
    clinic = write(
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
        text = write(tmp_path / "t.tsv", ["id", *names], *rows)
        for path in (tmp_path / "t.npy", text):
            notes = " ".join(read_table(path, features="columns").notes)
            assert ("24 values are 2^53 or larger" in notes) == noted
