"""Sparse matrices with inconsistent parts are refused before any part is used."""

import dask.array
import h5py
import numpy as np
import pytest
from scipy import sparse

from mrshc import MrSHC
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.sparse_structure import (
    StructureError,
    check_extent,
    check_shape,
    check_sizes,
    check_sparse_structure,
)
from storage_backends import hdf5_group, in_group, zarr_group

N, P = 6, 9


def make_table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, P)).round(2) * (rng.random((N, P)) < 0.6)


def read_in_blocks(X):
    return np.concatenate(
        list(as_stored_matrix(X).map_blocks(lambda block, _start, _xp: block)), axis=1
    )


def with_value(array, at, value):
    changed = array.copy()
    changed[at] = value
    return changed


# Name of a damaged part of a CSR or CSC matrix, the damage, and the message.
DAMAGE = {
    "index too large": (
        "indices",
        lambda a: with_value(a, 3, 1000),
        "indices must be between 0 and",
    ),
    "index just too large": (
        "indices",
        lambda a: with_value(a, 3, P),
        "indices must be between 0 and",
    ),
    "index below zero": (
        "indices",
        lambda a: with_value(a, 3, -1),
        "indices must be between 0 and",
    ),
    "index far below zero": (
        "indices",
        lambda a: with_value(a, 0, -(2**31)),
        "indices must be between",
    ),
    "indices that are no whole numbers": ("indices", lambda a: a + 0.5, "indices must be whole"),
    "indices as text": ("indices", lambda a: a.astype("S3"), "indices must be whole"),
    "too few indices": ("indices", lambda a: a[:-1], r"indices must be .* as its data"),
    "indices in a matrix": ("indices", lambda a: a.reshape(-1, 1), "indices must be a vector"),
    "pointers that fall": ("indptr", lambda a: with_value(a, 2, 0), "indptr must not decrease"),
    "a pointer below zero": ("indptr", lambda a: with_value(a, 2, -5), "indptr must not decrease"),
    "a pointer beyond the end": (
        "indptr",
        lambda a: with_value(a, 2, 10**6),
        "indptr must not decrease",
    ),
    "pointers that begin late": (
        "indptr",
        lambda a: with_value(a, 0, 1),
        r"indptr must run from 0 to [\d,]+, but runs from 1 to",
    ),
    "pointers that end early": (
        "indptr",
        lambda a: with_value(a, -1, a[-1] - 1),
        "must run from 0 to",
    ),
    "pointers that end late": (
        "indptr",
        lambda a: with_value(a, -1, a[-1] + 99),
        "must run from 0 to",
    ),
    "too few pointers": ("indptr", lambda a: a[1:], "indptr must have length"),
    "too many pointers": ("indptr", lambda a: np.append(a, a[-1]), "indptr must have length"),
    "no pointers": ("indptr", lambda a: a[:0], "indptr must have length"),
    "pointers that are no whole numbers": ("indptr", lambda a: a * 1.0, "indptr must be whole"),
    "too few values": ("data", lambda a: a[1:], r"indices must be .* as its data"),
}
damage = pytest.mark.parametrize(("part", "change", "message"), DAMAGE.values(), ids=DAMAGE)
formats = pytest.mark.parametrize("kind", ["csr", "csc"])


@damage
@formats
def test_a_matrix_with_inconsistent_parts(kind, part, change, message):
    X = getattr(sparse, f"{kind}_array")(make_table())
    setattr(X, part, change(getattr(X, part)))
    with pytest.raises(
        ValueError, match=rf"^X must be a sparse matrix .*the sparse matrix.*{message}"
    ):
        as_stored_matrix(X)
    with pytest.raises(ValueError, match="the sparse matrix"):
        MrSHC(n_clusters=2).fit(X)


@damage
@formats
@pytest.mark.parametrize("group_of", [hdf5_group, zarr_group])
@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
def test_a_group_with_inconsistent_parts(tmp_path, group_of, kind, part, change, message):
    matrix = getattr(sparse, f"{kind}_array")(make_table())
    group = in_group(make_table(), group_of(tmp_path), f"{kind}_matrix")
    del group[part]
    values = change(getattr(matrix, part))
    if group_of is zarr_group:
        group.create_array(part, data=values)
    else:
        group[part] = values
    with pytest.raises(UnreadableError, match=rf"^Columns 0 to .*/X cannot be read: .*{message}"):
        read_in_blocks(group)


@pytest.mark.parametrize("shape", [None, [6], [6, 9, 1], [-6, 9], [6.0, 9.5], "6, 9", [10**9] * 2])
@formats
def test_a_group_without_a_shape_of_two_numbers(tmp_path, kind, shape):
    group = in_group(make_table(), hdf5_group(tmp_path), f"{kind}_matrix")
    del group.attrs["shape"]
    if shape is not None:
        group.attrs["shape"] = shape
    message = "indptr must have length" if shape == [10**9] * 2 else "attribute 'shape' must be two"
    with pytest.raises(UnreadableError, match=rf"/X cannot be read: its {message}"):
        as_stored_matrix(group)


def test_a_shape_far_larger_than_the_number_of_values(tmp_path):
    group = in_group(make_table(), hdf5_group(tmp_path), "csc_matrix")
    group.attrs["shape"] = [10**9, P]
    with pytest.raises(UnreadableError, match="its shape must fit the number of its values"):
        as_stored_matrix(group)
    with pytest.raises(ValueError, match=r"its shape must fit .* is \(1000000000, 1000000000\)"):
        as_stored_matrix(sparse.coo_array((10**9, 10**9)))


def coo(**changes):
    X = sparse.coo_array(make_table())
    for part, value in changes.items():
        setattr(X, part, value(getattr(X, part)))
    return X


def bsr(part, change):
    X = sparse.bsr_array(make_table(), blocksize=(2, 3))
    setattr(X, part, change(getattr(X, part)))
    return X


def lil(change):
    X = sparse.lil_array(make_table())
    change(X)
    return X


def dia(**changes):
    X = sparse.dia_array(make_table())
    for part, value in changes.items():
        setattr(X, part, value(getattr(X, part)))
    return X


def dok(key):
    X = sparse.dok_array(make_table())
    X._dict[key] = 1.0
    return X


OTHER_FORMATS = {
    "COO, row too large": lambda: coo(row=lambda a: with_value(a, 0, N)),
    "COO, row below zero": lambda: coo(row=lambda a: with_value(a, 0, -1)),
    "COO, column too large": lambda: coo(col=lambda a: with_value(a, 0, 10**6)),
    "COO, column below zero": lambda: coo(col=lambda a: with_value(a, 0, -7)),
    "COO, too few values": lambda: coo(data=lambda a: a[1:]),
    "BSR, index too large": lambda: bsr("indices", lambda a: with_value(a, 0, 3)),
    "BSR, index below zero": lambda: bsr("indices", lambda a: with_value(a, 0, -1)),
    "BSR, pointers that fall": lambda: bsr("indptr", lambda a: with_value(a, 1, 90)),
    "BSR, too few blocks": lambda: bsr("data", lambda a: a[1:]),
    "BSR, blocks of another size": lambda: bsr("data", lambda a: a[:, :, :2]),
    "LIL, column too large": lambda: lil(lambda X: X.rows[0].__setitem__(0, 99)),
    "LIL, column below zero": lambda: lil(lambda X: X.rows[0].__setitem__(0, -1)),
    "LIL, too few values": lambda: lil(lambda X: X.data[0].pop()),
    "LIL, too many values": lambda: lil(lambda X: X.data[0].extend([1.0] * 99)),
    "LIL, too few rows": lambda: lil(lambda X: setattr(X, "rows", X.rows[1:])),
    "DIA, too few diagonals": lambda: dia(data=lambda a: a[1:]),
    "DIA, a diagonal twice": lambda: dia(offsets=lambda a: with_value(a, 0, a[1])),
    "DIA, offsets that are no whole numbers": lambda: dia(offsets=lambda a: a + 0.5),
    "DOK, row too large": lambda: dok((N, 0)),
    "DOK, column below zero": lambda: dok((0, -1)),
}


@pytest.mark.parametrize("make", OTHER_FORMATS.values(), ids=OTHER_FORMATS)
def test_matrices_of_other_formats_with_inconsistent_parts(make):
    with pytest.raises(ValueError, match=r"^X must be a sparse matrix .*the sparse matrix"):
        as_stored_matrix(make())


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("family", ["array", "matrix"])
def test_valid_matrices_of_every_format(kind, family):
    X = getattr(sparse, f"{kind}_{family}")(make_table())
    np.testing.assert_array_equal(read_in_blocks(X), make_table())


@pytest.mark.parametrize("dtype", [float, np.float32, np.int8, bool])
@pytest.mark.parametrize("kind", ["coo", "csc", "csr"])
def test_values_of_the_same_cell_are_summed(kind, dtype):
    rows, columns = [4, 0, 4, 4, 1], [2, 8, 2, 0, 2]
    X = sparse.coo_array((np.full(5, 100).astype(dtype), (rows, columns)), shape=(N, P))
    if kind != "coo":  # built by hand: scipy would sum them in its own type
        major, minor = (columns, rows) if kind == "csc" else (rows, columns)
        order = np.argsort(major, kind="stable")
        ends = np.searchsorted(np.array(major)[order], np.arange((P if kind == "csc" else N) + 1))
        parts = (X.data[order], np.array(minor)[order], ends)
        X = getattr(sparse, f"{kind}_array")(parts, shape=(N, P))
    expected = np.zeros((N, P))
    np.add.at(expected, (rows, columns), np.full(5, 100).astype(dtype).astype(float))
    np.testing.assert_array_equal(read_in_blocks(X), expected)
    np.testing.assert_array_equal(
        as_stored_matrix(X).columns(np.arange(P)[::-1]), expected[:, ::-1]
    )


@pytest.mark.parametrize("dtype", [np.float16, ">f4", ">i2", np.uint64, bool])
@formats
def test_values_of_every_type_of_a_group(tmp_path, kind, dtype):
    A = np.abs(make_table() * 10).round().astype(dtype)
    matrix = getattr(sparse, f"{kind}_array")(A.astype(float))
    group = in_group(A.astype(float), hdf5_group(tmp_path), f"{kind}_matrix")
    for part in ("data", "indices"):
        del group[part]
    group["data"], group["indices"] = matrix.data.astype(dtype), matrix.indices.astype(np.uint32)
    np.testing.assert_array_equal(read_in_blocks(group), A.astype(float))


@pytest.mark.parametrize("values", [np.ones(3, complex), np.array([b"a", b"b", b"c"])])
@formats
def test_a_group_of_other_values_than_numbers(tmp_path, kind, values):
    group = in_group(np.eye(3), hdf5_group(tmp_path), f"{kind}_matrix")
    del group["data"]
    group["data"] = values
    with pytest.raises(
        ValueError, match=r"X must hold real numbers, but .*/X holds (complex|text)"
    ):
        as_stored_matrix(group)


def damaged_chunk(block):
    chunk = sparse.csc_array(block)
    chunk.indices = with_value(chunk.indices, 0, 10**6)
    return chunk


@pytest.mark.parametrize("chunks", [(N, 3), (2, P)], ids=["by columns", "by samples"])
def test_a_dask_chunk_with_inconsistent_parts(chunks):
    X = dask.array.from_array(make_table() + 1, chunks=chunks)
    X = X.map_blocks(damaged_chunk, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(UnreadableError, match=r"dask array cannot be read: .*must be between 0"):
        read_in_blocks(X)


def test_sparse_dask_chunks_over_samples():
    X = dask.array.from_array(make_table(), chunks=(2, 4))
    X = X.map_blocks(sparse.csr_array, dtype=float, meta=np.empty((0, 0)))
    np.testing.assert_array_equal(read_in_blocks(X), make_table())


@pytest.mark.parametrize("make", [lambda b: b * 1j, lambda b: b.astype("S8")])
def test_a_dask_chunk_of_another_type_than_declared(make):
    X = dask.array.from_array(make_table(), chunks=(N, 3)).map_blocks(make, dtype=float)
    with pytest.raises(UnreadableError, match=r"the dask array cannot be read: .*real numbers"):
        read_in_blocks(X)


# ---- references to other files


@pytest.fixture
def other(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = np.ones((3, 4))
    return tmp_path / "other.h5"


def test_datasets_that_refer_to_other_files_are_refused(tmp_path, other):
    layout = h5py.VirtualLayout((3, 4), float)
    layout[:] = h5py.VirtualSource(other, "X", (3, 4))
    with h5py.File(tmp_path / "X.h5", "w") as file:
        outside = file.create_dataset("outside", (3, 4), float, external=[(str(other), 0, 96)])
        with pytest.raises(
            ValueError, match=r"X\.h5/outside keeps the .* another file, '.*other\.h5'"
        ):
            as_stored_matrix(outside)
        virtual = file.create_virtual_dataset("virtual", layout)
        with pytest.raises(ValueError, match=r"X\.h5/virtual holds .* as a virtual dataset"):
            as_stored_matrix(virtual)


def test_a_sparse_group_with_a_part_in_another_file(tmp_path, other):
    group = in_group(make_table(), hdf5_group(tmp_path), "csc_matrix")
    del group["data"]
    group["data"] = h5py.ExternalLink(str(other), "/X")
    with pytest.raises(ValueError, match=r"X\.h5ad.* external link to .*other\.h5"):
        as_stored_matrix(group)


@pytest.mark.parametrize(
    ("form", "part", "value"),
    [
        ("csr", "data", None),
        ("csc", "indptr", [0, 1]),
        ("csr", "indices", 5),
        ("coo", "data", None),
        ("dia", "offsets", [0]),
        ("lil", "rows", None),
        ("bsr", "data", [[1.0]]),
    ],
)
def test_parts_that_are_no_arrays_are_refused(form, part, value):
    matrix = sparse.csr_array(np.eye(4, 6)).asformat(form)
    setattr(matrix, part, value)
    kind = type(value).__name__
    with pytest.raises(ValueError, match=f"its {part} must be an array, but is a {kind}"):
        as_stored_matrix(matrix)


@pytest.mark.parametrize(
    ("extent", "n_cells", "n_listed", "is_valid"),
    [
        (10**6, 0, 0, True),
        (10**6 + 1, 0, 0, False),
        (10**6 + 1, 500, 500, False),
        (1_001_000, 500, 501, True),
        (1_001_001, 501, 500, False),
    ],
)
def test_a_shape_has_at_most_1000_rows_or_columns_for_each_value(
    extent, n_cells, n_listed, is_valid
):
    for shape in ((extent, 2), (2, extent)):
        if is_valid:
            check_extent(shape, n_cells=n_cells, n_listed=n_listed)
        else:
            with pytest.raises(StructureError, match=rf"but is .* for {n_cells} values$"):
                check_extent(shape, n_cells=n_cells, n_listed=n_listed)


def test_shapes_of_two_integers_are_returned_and_others_are_shown_in_part():
    for shape in ([0, 3], (4, 0), np.array([2, 10]), [2**70, 1]):
        assert check_shape(shape) == tuple(map(int, shape))
    for shape, shown in ((None, "is missing$"), ("x" * 70, "is 'x{60}'$"), ([True, True], "is ")):
        with pytest.raises(StructureError, match=f"must be two whole numbers, but {shown}"):
            check_shape(shape)


def test_numbers_of_values_indices_and_pointers_are_named():
    parts = np.ones(3), np.zeros(2, int), np.array([0, 3])
    with pytest.raises(StructureError, match=r"there are 2 for 3 values$"):
        check_sizes(*parts, n_major=1)
    with pytest.raises(StructureError, match=r"must have length 6, but has length 2$"):
        check_sizes(parts[0], np.zeros(3, int), parts[2], n_major=5)


@pytest.mark.parametrize("part", ["rows", "data"])
def test_lists_of_another_number_of_rows_are_refused(part):
    X = lil(lambda X: setattr(X, part, getattr(X, part)[1:]))
    with pytest.raises(StructureError, match="its rows and data must be 6 lists"):
        check_sparse_structure(X)


@pytest.mark.parametrize("shape", [(9, 0, 3), (9, 2, 0), (9, 6)])
def test_blocks_without_values_are_refused(shape):
    X = bsr("data", lambda _: np.ones(shape))
    with pytest.raises(StructureError, match="must be blocks that divide the shape"):
        check_sparse_structure(X)
