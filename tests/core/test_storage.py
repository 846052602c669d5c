"""Wherever X is stored, columns and blocks are those of the array; damaged storage is named."""

import numpy as np
import pytest
from scipy import sparse

from mrshc.core.data import as_matrix, files, matrix
from mrshc.core.data.files import UnreadableError
from mrshc.core.data.matrix import to_host
from storage_backends import (
    STORAGE_BACKENDS,
    in_array_api,
    in_dask,
    in_hdf5,
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
    with pytest.raises(ValueError, match=r"its HDF5 file is closed\. Keep it open"):
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

    def refuse(*_):
        raise ValueError("not so")

    with pytest.raises(ValueError, match=r"^not so$"):
        list(as_matrix(in_dask(A, (7, 100))).map(refuse))


# Devices ------------------------------------------------------------------------------------


# Threads ------------------------------------------------------------------------------------
