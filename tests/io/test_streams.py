"""Every kind of input is read once and completely, or refused in one sentence."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import WITHOUT_PICTURES
from mrshc.io import TableError, can_read_in_blocks, read_table
from small_table import assert_read, features_in_rows

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


def test_can_stay_does_not_read_from_a_pipe(frame, tmp_path):
    def ask_and_read(path):
        assert not can_read_in_blocks(path)
        return read_table(path)

    table = through_fifo(tmp_path / "fifo", frame.to_csv().encode(), ask_and_read)
    assert table.X.shape == (12, 3000)


@pytest.mark.slow
def test_process_substitution_loses_nothing(frame, tmp_path):
    some = frame[:600]  # still more than a pipe holds at once
    some.to_csv(tmp_path / "table.tsv", sep="\t")
    assert (tmp_path / "table.tsv").stat().st_size > 100_000
    names = pd.DataFrame({"sample": frame.columns, "class": list("uv") * 6})
    names.to_csv(tmp_path / "clinic.csv", index=False)
    program = WITHOUT_PICTURES[-1]
    options = "--samples <(cat clinic.csv) --truth class --method hmv -q 5 -k 2 --json --out out"
    command = f'{sys.executable} -c "{program}" cluster <(cat table.tsv) {options}'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert b'"n_features": 600' in done.stdout
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


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"]
)
def test_compressed_files_are_read_by_their_content(write, compress):
    assert_read(read_table(write(compress(features_in_rows().encode()), "table.tsv")))


def test_standard_input():
    code = "from mrshc.io import read_table; t = read_table('-'); print(t.X.shape, t.source)"
    content = gzip.compress(features_in_rows().encode())
    done = subprocess.run(
        [sys.executable, "-c", code], input=content, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "(3, 4) standard input"


def test_absent_files_are_refused(tmp_path):
    with pytest.raises(TableError, match="There is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(TableError, match="There is no file"):
        read_table("a\0b")
