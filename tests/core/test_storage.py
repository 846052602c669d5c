"""Wherever X is stored, columns and blocks are those of the array; damaged storage is named."""

import threading

import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse

from mrshc.core import parallel
from mrshc.core.data import device, files, matrix
from mrshc.core.data.device import is_device_array, namespace, to_device, to_host
from mrshc.core.data.files import UnreadableError, explain_read_errors
from mrshc.core.data.matrix import ArrayMatrix, as_matrix
from storage_backends import (
    STORAGE_BACKENDS,
    hdf5_group,
    in_array_api,
    in_dask,
    in_group,
    in_hdf5,
    in_torch,
    in_zarr,
    mapped,
    numbers_in,
    store,
    use_small_blocks,
)

A = np.where(np.random.default_rng(1).random((7, 300)) < 0.3, 0.0, 1.0)
A *= np.random.default_rng(0).normal(size=A.shape)
SOME = np.array([250, 3, 4, 299, 100, 3, 0])
STORED = [name for name in STORAGE_BACKENDS if name not in ("Fortran", "float32")]


@pytest.mark.parametrize("name", STORED)
def test_columns_and_blocks_are_those_of_the_array(name, tmp_path, monkeypatch):
    use_small_blocks(monkeypatch, 7 * 40)
    expected = numbers_in(name, A)
    stored = as_matrix(store(name, A, tmp_path / "one"))
    assert (stored.shape, stored.in_memory) == ((7, 300), False)
    assert stored.dtype == (np.float32 if "float32" in name else np.float64)
    assert as_matrix(stored) is stored
    for index in (SOME, np.arange(300), SOME[:0]):
        found = stored.columns(index)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected[:, index])
    starts, blocks = zip(
        *stored.map(lambda block, start: (start, to_host(block).astype(float))), strict=True
    )
    np.testing.assert_array_equal(np.hstack(blocks), expected)
    widths = [block.shape[1] for block in blocks]
    assert list(starts) == np.cumsum([0, *widths[:-1]]).tolist()
    if name == "Dask, row chunks":  # Dask chooses the widths
        return
    assert len(starts) > 3
    assert max(widths) <= 160, "not more than four blocks together"


def test_arrays_in_memory_are_divided_into_blocks_of_half_a_million_values():
    X = np.ones((1 << 10, 2000), dtype=np.float32)
    stored = ArrayMatrix(X)
    assert (stored.shape, stored.dtype, stored.in_memory) == (X.shape, np.float32, True)
    starts = list(stored.map(lambda block, start: (start, block.shape[1])))
    assert starts == [(0, 512), (512, 512), (1024, 512), (1536, 464)]
    assert stored.columns(SOME).dtype == np.float64
    assert stored.columns(SOME).flags.c_contiguous
    tall = ArrayMatrix(np.zeros(((1 << 19) + 1, 2)))
    assert [start for start in tall.map(lambda _, start: start)] == [0, 1]


@pytest.mark.parametrize("X", [A, A.tolist(), None, "text", 5, sparse])
def test_arrays_lists_and_other_objects_are_no_stored_data(X):
    assert as_matrix(X) is None


@pytest.mark.parametrize(
    ("n_cells", "width", "expected"),
    [(70, 1, 10), (70, 4, 8), (70, 7, 7), (70, 30, 30), (70, 60, 40), (3, 1, 1)],
)
def test_blocks_are_chunks_unless_these_are_too_large(monkeypatch, n_cells, width, expected):
    monkeypatch.setattr(matrix, "BLOCK_CELLS", n_cells)
    stored = files.SparseMatrix(sparse.csc_array(A))
    stored.chunk_width = width
    widths = list(stored.map(lambda block, _: block.shape[1]))
    assert set(widths[:-1]) == {expected}
    assert sum(widths) == 300


def test_columns_near_each_other_are_read_together(monkeypatch):
    calls, stored = [], files.FileMatrix(zarr.array(A, chunks=(7, 100)))
    read = stored._read
    monkeypatch.setattr(stored, "_read", lambda a, b: calls.append((a, b)) or read(a, b))
    np.testing.assert_array_equal(
        stored.columns(np.array([210, 5, 90, 10])), A[:, [210, 5, 90, 10]]
    )
    assert calls == [(5, 91), (210, 211)], "groups of two chunks, less than 256 columns"


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix"])
@pytest.mark.parametrize(
    "make", [hdf5_group, lambda folder: zarr.open_group(folder / "z", mode="w")]
)
def test_sparse_matrices_of_anndata_are_read_where_they_are(kind, make, tmp_path):
    group = in_group(A, make(tmp_path), kind)
    stored = as_matrix(group)
    np.testing.assert_array_equal(stored.columns(SOME), A[:, SOME])
    assert isinstance(stored, files.SparseMatrix) == (kind == "csr_matrix")


def test_transposed_files_are_read():
    stored = files.FileMatrix(
        zarr.array(np.ascontiguousarray(A.T), chunks=(50, 3)), transposed=True
    )
    assert (stored.shape, stored.chunk_width) == ((7, 300), 50)
    np.testing.assert_array_equal(stored.columns(SOME), A[:, SOME])
    np.testing.assert_array_equal(np.hstack(list(stored.map(lambda b, _: b))), A)


def test_transposed_maps_are_read(tmp_path):
    stored = files.FileMatrix(mapped(A.T, tmp_path), transposed=True)
    np.testing.assert_array_equal(stored.columns(SOME), A[:, SOME])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), (">f4", "f4"), ("i2", "f8"), ("u8", "f8")],
)
def test_numbers_become_floats_without_loss(dtype, expected, tmp_path):
    whole = np.arange(12).reshape(3, 4).astype(dtype)
    for X in (mapped(whole, tmp_path), in_hdf5(whole, tmp_path), in_dask(whole, (3, 2))):
        stored = as_matrix(X)
        assert stored.dtype == np.dtype(expected)
        (block, *_) = stored.map(lambda block, _: block)
        assert block.dtype == np.dtype(expected)
        np.testing.assert_array_equal(stored.columns(np.arange(4)), whole.astype(float))
    assert as_matrix(sparse.csc_array(np.eye(4, dtype=bool))).dtype == np.float64


def test_masked_and_sparse_chunks_are_filled():
    import dask.array

    masked = np.ma.masked_array(A, mask=A > 1)
    chunks = dask.array.from_array(masked, chunks=(7, 100))
    found = as_matrix(chunks).columns(np.arange(300))
    np.testing.assert_array_equal(found, masked.filled(np.nan))
    for X in (dask.array.from_array(A, chunks=(7, 100)), dask.array.from_array(A, chunks=(3, 100))):
        chunks = X.map_blocks(sparse.csr_matrix)
        np.testing.assert_array_equal(as_matrix(chunks).columns(SOME), A[:, SOME])


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["map", "HDF5", "Zarr", "Dask", "array API"])
def test_other_dimensions_and_complex_numbers_are_refused(name, tmp_path):
    places = {
        "map": (mapped, r"X\.npy"),
        "HDF5": (in_hdf5, r"X\.h5/X"),
        "Zarr": (lambda X, folder: in_zarr(X, folder, X.shape), r"X\.zarr"),
        "Dask": (lambda X, _: in_dask(X, X.shape), "the Dask array"),
        "array API": (lambda X, _: in_array_api(X), "the array_api_strict array"),
    }
    place, shown = places[name]
    for X, message in ((A[0], "has 1 dimensions"), (A[None], "has 3 dimensions")):
        folder = tmp_path / str(X.ndim)
        folder.mkdir()
        with pytest.raises(ValueError, match=rf"X must be a matrix .*{shown} {message}\. Reshape"):
            as_matrix(place(X, folder))
    with pytest.raises(ValueError, match=rf"real numbers, but .*{shown} holds complex numbers"):
        as_matrix(place(A + 1j, tmp_path))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.full((3, 4), b"a"), "text or other objects. Drop or encode"),
        (np.zeros((3, 4), "m8[s]"), "times. Drop or encode"),
        (np.zeros((3, 4), "M8[s]"), "dates. Drop or encode"),
        (np.zeros((3, 4), [("a", "f8")]), "records. Pass one field"),
    ],
)
def test_values_that_are_no_numbers_are_refused(values, kind, tmp_path):
    with pytest.raises(ValueError, match=f"X must hold real numbers, but .* holds {kind}"):
        as_matrix(mapped(values, tmp_path))


def test_unknown_chunk_sizes_are_refused():
    X = in_dask(A, (7, 100))
    with pytest.raises(ValueError, match=r"chunks of known sizes.*compute_chunk_sizes"):
        as_matrix(X[:, X[0] > 0])


def test_closed_files_and_other_groups_are_refused(tmp_path):
    X = in_hdf5(A, tmp_path)
    group = X.file.create_group("other")
    with pytest.raises(ValueError, match=r"X\.h5/other is a group of other objects\. Pass one"):
        as_matrix(group)
    X.file.close()
    with pytest.raises(ValueError, match="its HDF5 file is closed. Keep it open"):
        as_matrix(X)


def damage(group, part, change):
    values = group[part][:]
    change(values)
    group[part][:] = values
    return group


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix"])
@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("indptr", lambda v: v.__setitem__(0, 1)),
        ("indptr", lambda v: v.__setitem__(-1, v[-1] + 1)),
        ("indptr", lambda v: v.__setitem__(2, v[-1])),
        ("indices", lambda v: v.__setitem__(0, 10**6)),
        ("indices", lambda v: v.__setitem__(0, -1)),
    ],
)
def test_parts_of_sparse_matrices_that_do_not_fit_are_refused(kind, part, change, tmp_path):
    group = damage(in_group(A, hdf5_group(tmp_path), kind), part, change)
    with pytest.raises((UnreadableError, ValueError), match=r"cannot be read|damaged"):
        as_matrix(group).columns(np.arange(300))


def test_missing_pointers_are_refused(tmp_path):
    group = in_group(A, hdf5_group(tmp_path), "csc_matrix")
    values = group["indptr"][:-1]
    del group["indptr"]
    group["indptr"] = values
    with pytest.raises(UnreadableError, match="the pointers of .*/X do not fit its"):
        as_matrix(group)


def test_damaged_sparse_matrices_are_refused():
    X = sparse.csc_array(A)
    X.indices[0] = 10**6
    with pytest.raises(ValueError, match="parts fit together, but the sparse matrix is damaged"):
        as_matrix(X)


def test_a_truncated_map_is_refused_before_it_ends_the_process(tmp_path):
    X = mapped(np.ones((4, 30_000)), tmp_path)
    stored = as_matrix(X)
    with (tmp_path / "X.npy").open("r+b") as file:
        file.truncate(4096)
    expected = r"Columns 7 to 29999 of .*X\.npy cannot be read: the file has 4096 bytes, but 9"
    with pytest.raises(UnreadableError, match=expected):
        stored.columns(np.array([7]))
    with pytest.raises(UnreadableError, match="Columns 0 to 29999"):
        list(stored.map(lambda block, _: block.sum()))


def test_damaged_chunks_are_refused(tmp_path):
    X = in_hdf5(A, tmp_path, chunks=(7, 50), compression="gzip")
    offset = X.id.get_chunk_info(2).byte_offset
    X.file.close()
    with (tmp_path / "X.h5").open("r+b") as file:
        file.seek(offset)
        file.write(b"\0" * 200)
    with (
        h5py.File(tmp_path / "X.h5") as file,
        pytest.raises(UnreadableError, match=r"X\.h5/X cannot be read: .*copy or write it"),
    ):
        as_matrix(file["X"]).columns(np.arange(250))


def test_errors_of_chunks_name_the_columns_and_errors_of_functions_stay_as_they_are():
    import dask.array

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][1] == 1:
            raise RuntimeError("lost\nstack")
        return block

    X = dask.array.from_array(A, chunks=(7, 100)).map_blocks(fail, dtype=float, meta=A[:0])
    expected = "Columns 0 to 299 of the Dask array cannot be read: lost. Check the source"
    with pytest.raises(UnreadableError, match=expected):
        list(as_matrix(X).map(lambda block, _: block.sum()))

    def refuse(block, start):
        raise ValueError("not so")

    with pytest.raises(ValueError, match=r"^not so$"):
        list(as_matrix(in_dask(A, (7, 100))).map(refuse))


def test_read_errors_are_explained_once():
    with (
        pytest.raises(UnreadableError, match=r"^Columns 3 to 4 of X cannot be read: KeyError\. Do"),
        explain_read_errors("X", 3, 5, "Do it."),
    ):
        raise KeyError
    for error in (MemoryError(), UnreadableError("as it is")):
        with pytest.raises(type(error)) as caught, explain_read_errors("X", 3, 5):
            raise error
        assert caught.value is error


# Devices ------------------------------------------------------------------------------------


def test_arrays_of_other_packages_come_and_go():
    for X in (in_array_api(A), in_torch(A)):
        assert is_device_array(X)
        np.testing.assert_array_equal(to_host(X), A)
        back = to_device(A, X)
        assert type(back) is type(X)
        np.testing.assert_array_equal(to_host(back), A)
        assert namespace(X) is not np
    assert namespace(A) is np
    assert to_host(A) is A
    assert to_device(A, A) is A
    assert not is_device_array([1.0])


def test_a_tensor_with_a_gradient_is_taken():
    X = in_torch(A).requires_grad_()
    np.testing.assert_array_equal(as_matrix(X).columns(SOME), A[:, SOME])


def test_blocks_stay_on_the_device(monkeypatch):
    monkeypatch.setattr(device, "_BLOCK_CELLS", 7 * 64)
    X = in_array_api(A)
    kinds = list(as_matrix(X).map(lambda block, start: (type(block), start, block.shape)))
    assert [start for _, start, _ in kinds] == [0, 64, 128, 192, 256]
    assert kinds[-1] == (type(X), 256, (7, 44))
    whole = as_matrix(in_array_api(np.arange(12).reshape(3, 4)))
    assert whole.dtype == np.float64
    assert "float64" in str(next(iter(whole.map(lambda block, _: block.dtype))))


# Threads ------------------------------------------------------------------------------------


def test_blocks_are_read_by_several_threads_in_order(monkeypatch):
    use_small_blocks(monkeypatch, 7 * 10)
    stored, barrier = as_matrix(sparse.csc_array(A)), threading.Barrier(2, timeout=5)

    def wait(block, start):
        if start < 20:
            barrier.wait()
        return start

    with parallel.threads(2):
        assert list(stored.map(wait)) == list(range(0, 300, 10))
