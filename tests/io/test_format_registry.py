"""A format is one object: registered, it is read, listed and shown in the help."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import rand_score

from mrshc.io import TableError, can_read_in_blocks, load_result, read_table
from mrshc.io.formats import TableFormat, register, unregister
from mrshc.io.raw_table import RawTable

DOCS = Path(__file__).parents[2] / "docs"
MAGIC = b"TOY\0"
UNKNOWN = b"\x7fELF\0\0"


def toy_file(path, values):
    """Write the magic bytes, two sizes and the numbers."""
    sizes = np.array(values.shape, np.int64)
    path.write_bytes(MAGIC + sizes.tobytes() + np.ascontiguousarray(values, float).tobytes())
    return path


def read_toy(file, _):
    content = file.content.read()
    shape = np.frombuffer(content, np.int64, count=2, offset=len(MAGIC))
    values = np.frombuffer(content, float, offset=len(MAGIC) + 16).reshape(shape)
    names = [f"toy {i}" for i in range(len(values))]
    return RawTable(values=values, row_names=names, column_names=None, features_in="columns")


TOY = TableFormat(
    name="a toy file",
    labels=(".toy",),
    suffixes=(".toy",),
    recognise=lambda file: file.head.startswith(MAGIC),
    read_stream=read_toy,
)


@pytest.fixture
def registered():
    """Return a function that registers a format until the end of a test."""
    added = []

    def add(table_format):
        register(table_format)
        added.append(table_format)

    yield add
    for table_format in added:
        unregister(table_format)


@pytest.fixture
def values():
    X = np.random.default_rng(0).normal(size=(12, 30))
    X[6:, :4] += 8
    return X


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def without_frames(shown):
    return " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_registered_format_is_read(registered, tmp_path, values, pack):
    path = toy_file(tmp_path / "x.toy", values)
    path.write_bytes(pack(path.read_bytes()))
    with pytest.raises(TableError, match="is not a table in a known format"):
        read_table(path)
    registered(TOY)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, values)
    assert list(table.sample_names[:2]) == ["toy 0", "toy 1"]
    assert not can_read_in_blocks(path)
    with pytest.raises(TableError, match=r"only \.npy, \.h5ad and \.zarr, not compressed"):
        read_table(path, in_memory=False)


def test_a_registered_format_is_read_by_the_command_line(registered, tmp_path, values, main):
    path = toy_file(tmp_path / "x.toy", values)
    options = ("--method", "hmv", "-q", 4, "-k", 2, "--quiet", "--out", tmp_path / "out")
    code, _, message = main("cluster", path, *options)
    assert (code, "Known formats are" in message) == (2, True)
    registered(TOY)
    assert main("cluster", path, *options)[0] == 0
    assert rand_score(load_result(tmp_path / "out").labels_, [0] * 6 + [1] * 6) == 1


def test_a_registered_format_is_listed_in_the_help_and_in_sentences(registered, tmp_path, main):
    (tmp_path / "x").write_bytes(UNKNOWN)
    for is_registered in (False, True):
        if is_registered:
            registered(TOY)
        _, shown, _ = main("cluster", "--help")
        listed = ".npz, .h5ad, Excel, 10x .h5 or .toy, also compressed"
        assert (listed in without_frames(shown)) == is_registered
        _, _, message = main("cluster", tmp_path / "x", "--out", tmp_path / "out")
        assert ("10x matrix.mtx and .toy." in message) == is_registered


def test_a_format_that_can_stay_in_its_file(registered, tmp_path, values, main):
    from mrshc.io.formats.npy import read_array
    from mrshc.io.stored_matrix import StoredMatrix

    def open_toy(path, _):
        shape = tuple(map(int, np.fromfile(path, np.int64, count=2, offset=len(MAGIC))))
        return np.memmap(path, float, mode="r", offset=len(MAGIC) + 16, shape=shape)

    def read_path(path, options):
        return read_array(
            open_toy(path, ""), StoredMatrix(path, open_toy), in_memory=options.in_memory
        )

    registered(
        TableFormat(
            name="a toy file",
            labels=(".toy",),
            recognise=TOY.recognise,
            read_stream=read_toy,
            read_path=read_path,
            open_matrix=open_toy,
        )
    )
    path = toy_file(tmp_path / "x.toy", values)
    assert can_read_in_blocks(path)
    table = read_table(path, in_memory=False, features="columns")
    assert isinstance(table.X, StoredMatrix)
    np.testing.assert_array_equal(table.to_frame(), values)
    np.testing.assert_array_equal(read_table(path, features="columns").X, values)
    _, shown, _ = main("cluster", "--help")
    assert ".npy, .h5ad, .zarr and .toy files that do not fit into memory" in without_frames(shown)


def test_a_format_that_is_a_folder(registered, tmp_path, values):
    def read_folder(path, _):
        return RawTable(values=np.loadtxt(Path(path) / "X"), row_names=None, column_names=None)

    registered(
        TableFormat(
            name="a folder of numbers",
            labels=("folders",),
            container="with a file X",
            recognise=lambda file: file.is_folder and file.has_entry("X"),
            read_path=read_folder,
        )
    )
    with pytest.raises(TableError, match="is a folder, but a file with a table was wanted"):
        read_table(tmp_path)
    np.savetxt(tmp_path / "X", values)
    assert read_table(tmp_path, features="columns").X.shape == values.shape
    assert not can_read_in_blocks(tmp_path)


def test_a_format_that_is_known_but_not_read(registered, tmp_path):
    registered(
        TableFormat(
            name="a program",
            recognise=lambda file: file.head.startswith(b"\x7fELF"),
            advice="Run it, and name what it writes",
        )
    )
    (tmp_path / "x").write_bytes(UNKNOWN)
    with pytest.raises(TableError, match=r"x is a program\. Run it, and name what it writes\."):
        read_table(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"\0\0")
    with pytest.raises(TableError, match=r"Known formats are CSV, .* and 10x matrix\.mtx\.$"):
        read_table(tmp_path / "x")


def test_an_extra_that_is_absent_is_named(registered, tmp_path):
    needy = TableFormat(
        name="a needy file",
        labels=(".needy",),
        extra="needs",
        recognise=lambda file: file.head.startswith(b"NEEDY"),
        read_stream=lambda *_: needy.import_library("mrshc_has_no_such_module"),
    )
    registered(needy)
    (tmp_path / "x").write_bytes(b"NEEDY")
    with pytest.raises(
        TableError, match=r"is a needy file, which needs the extra 'needs': pip install 'mrshc\[ne"
    ):
        read_table(tmp_path / "x")
