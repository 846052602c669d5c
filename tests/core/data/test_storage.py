"""All storage backends yield the same blocks and columns of X, and refuse damaged data."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import array_api_strict
import dask.array
import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from mrshc.core.data import block_reading
from mrshc.core.data.array_file import FileMatrix
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.core.data.data_matrix import UnreadableError
from storage_backends import (
    backed,
    backed_sparse,
    hdf5_group,
    in_group,
    in_hdf5,
    in_zarr,
    mapped,
    use_small_blocks,
    zarr_group,
)

N, P = 12, 53


def make_table(dtype=np.float64):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(N, P)).clip(-3, 3) * 40 * (rng.random((N, P)) < 0.5)
    A = A.astype(dtype)
    if A.dtype.kind == "f":
        A[[0, 3, 3], [1, 20, P - 1]] = np.nan
    return A


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    use_small_blocks(monkeypatch, 7 * N)


STORAGES = {
    "map": mapped,
    "map, Fortran order": lambda A, folder: mapped(A, folder, "F"),
    "HDF5, contiguous": in_hdf5,
    "HDF5, chunks of columns": lambda A, f: in_hdf5(A, f, chunks=(N, 4), compression="gzip"),
    "HDF5, chunks of rows": lambda A, f: in_hdf5(A, f, chunks=(1, P), compression="gzip"),
    "HDF5, big-endian": lambda A, f: in_hdf5(A, f, dtype=A.dtype.newbyteorder(">")),
    "HDF5, transposed": lambda A, f: FileMatrix(in_hdf5(A.T, f, chunks=(9, 4)), transposed=True),
    "Zarr": in_zarr,
    "Zarr, small chunks": lambda A, folder: in_zarr(A, folder, (5, 2)),
    "Zarr, transposed": lambda A, f: FileMatrix(in_zarr(A.T, f, (5, N)), transposed=True),
    "group of columns": lambda A, folder: in_group(A, hdf5_group(folder), "csc_matrix"),
    "group of rows": lambda A, folder: in_group(A, hdf5_group(folder), "csr_matrix"),
    "group in Zarr": lambda A, folder: in_group(A, zarr_group(folder), "csc_matrix"),
    "AnnData, dense": lambda A, folder: backed(in_hdf5(A, folder)),
    "AnnData, sparse": backed_sparse,
    "CSC": lambda A, _: sparse.csc_array(A),
    "CSR": lambda A, _: sparse.csr_matrix(A),
    "COO": lambda A, _: sparse.coo_array(A),
    "dask": lambda A, _: dask.array.from_array(A, chunks=(N, 4)),
    "dask, uneven": lambda A, _: dask.array.from_array(A, chunks=(N, (20, 0, 1, P - 21))),
    "dask, by samples": lambda A, _: dask.array.from_array(A, chunks=(5, P)),
    "dask, both": lambda A, _: dask.array.from_array(A, chunks=(5, 7)),
    "dask, shared": lambda A, _: (lambda X: X + 0 * X.sum(axis=1, keepdims=True, split_every=2))(
        dask.array.from_array(np.nan_to_num(A), chunks=(N, 2))
    ),
    "torch": lambda A, _: torch.from_numpy(A),
    "array API": lambda A, _: array_api_strict.asarray(A),
}


class Storage:
    """A storage backend with a folder for its files."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder

    def __call__(self, A):
        return as_stored_matrix(STORAGES[self.name](A, self.folder))

    def expected(self, A):
        return np.nan_to_num(A) if self.name == "dask, shared" else A


@pytest.fixture
def storage(request, tmp_path):
    return Storage(request.param, tmp_path)


all_storages = pytest.mark.parametrize("storage", STORAGES, indirect=True)


def block_start(_block, start, _xp):
    return start


def to_numpy(block):
    return np.array(block.numpy() if isinstance(block, torch.Tensor) else block)


def read_in_pass(source):
    """Return the table that a pass reads and its number of blocks, and check the blocks."""
    end, blocks = 0, []
    for start, block, ours in source.map_blocks(
        lambda b, start, xp: (start, to_numpy(b), xp.sum(xp.zeros(3)) == 0)
    ):
        assert start == end
        assert block.dtype == source.dtype
        assert ours
        blocks.append(block)
        end += block.shape[1]
    return np.concatenate(blocks, axis=1), len(blocks)


@all_storages
def test_a_pass_reads_every_column_once_in_order(storage):
    A = make_table()
    source = storage(A)
    assert source.shape == (N, P)
    assert source.dtype == np.float64
    seen, n_blocks = read_in_pass(source)
    np.testing.assert_array_equal(seen, storage.expected(A))
    assert n_blocks > 1 or "dask" in storage.name
    np.testing.assert_array_equal(read_in_pass(source)[0], seen)  # and once more


@all_storages
@pytest.mark.parametrize("indices", [[3], [50, 2, 2, 20, 1, 52, 2], [], range(P)])
def test_columns_are_returned_in_the_requested_order(storage, indices):
    A = make_table()
    indices = np.array(indices, dtype=np.intp)
    columns = storage(A).columns(indices)
    assert type(columns) is np.ndarray
    assert columns.dtype == np.float64
    np.testing.assert_array_equal(columns, storage.expected(A)[:, indices])


def can_hold(name, dtype):
    if dtype == np.float16:  # not for sparse matrices, not in the array API
        return not any(word in name for word in ("C", "group", "sparse", "API", "shared"))
    if np.dtype(dtype).itemsize == 1 and "big-endian" in name:
        return False
    return name != "dask, shared" or dtype == np.float32  # sums of others have other types


@pytest.mark.parametrize(
    ("storage", "dtype", "wanted"),
    [
        (name, dtype, wanted)
        for name in STORAGES
        for dtype, wanted in (
            (np.float32, np.float32),
            (np.float16, np.float32),
            (np.int32, np.float64),
            (np.int8, np.float64),
            (bool, np.float64),
        )
        if can_hold(name, dtype)
    ],
    indirect=["storage"],
)
def test_blocks_are_floats(storage, dtype, wanted):
    A = make_table(dtype)
    source = storage(A)
    assert source.dtype == wanted
    np.testing.assert_array_equal(read_in_pass(source)[0], storage.expected(A).astype(wanted))
    columns = source.columns(np.array([4, 1]))
    assert columns.dtype == wanted
    np.testing.assert_array_equal(columns, storage.expected(A)[:, [4, 1]].astype(wanted))


@all_storages
def test_errors_of_the_function_are_raised_unchanged(storage):
    def fails(_block, _start, _xp):
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        list(storage(make_table()).map_blocks(fails))


def test_arrays_and_tables_in_memory_are_not_stored_matrices():
    A = make_table()
    for X in (A, A.tolist(), pd.DataFrame(A), np.float64(3), None, "text", np.ma.masked_invalid(A)):
        assert as_stored_matrix(X) is None
    assert as_stored_matrix(SimpleNamespace(X=A, isbacked=False)) is None
    source = as_stored_matrix(sparse.csc_array(A))
    assert as_stored_matrix(source) is source


def test_optional_packages_are_not_imported():
    code = (
        "import sys, numpy as np, pandas as pd\n"
        "from mrshc.core.data.conversion import as_stored_matrix\n"
        "[as_stored_matrix(X) for X in (np.eye(3), [[1]], pd.DataFrame([[1]]))]\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"anndata", "array_api_compat", "dask", "distributed", "h5py", "torch", "zarr"}
    assert not heavy & set(done.stdout.split())


# ---- refused data


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((3, 4), dtype=complex), "complex numbers. Take their real parts"),
        (np.full((3, 4), "a"), "text. Drop or encode it"),
        (np.full((3, 4), np.datetime64("2020-01-01")), "dates. Drop or encode them"),
        (np.full((3, 4), np.timedelta64(1, "s")), "times. Drop or encode them"),
        (np.zeros((3, 4), dtype=[("a", float)]), "records. Pass one field of them"),
    ],
)
def test_other_values_than_real_numbers_are_refused(tmp_path, values, message):
    with pytest.raises(
        ValueError, match=rf"X must hold real numbers, but .*X\.npy holds {message}"
    ):
        as_stored_matrix(mapped(values, tmp_path))
    with pytest.raises(ValueError, match=f"the dask array holds {message}"):
        as_stored_matrix(dask.array.from_array(values, chunks=(3, 2)))


def test_text_and_complex_numbers_are_refused_in_other_storages(tmp_path):
    with pytest.raises(ValueError, match=r"X\.h5/X holds text or other objects"):
        as_stored_matrix(in_hdf5(np.full((3, 4), "a", dtype=object), tmp_path))
    with pytest.raises(ValueError, match="the sparse matrix holds complex numbers"):
        as_stored_matrix(sparse.csc_array(np.ones((3, 4), dtype=complex)))
    with pytest.raises(ValueError, match="the torch array holds complex numbers"):
        as_stored_matrix(torch.ones((3, 4), dtype=torch.complex64))


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
def test_arrays_of_other_dimensions_are_refused(tmp_path, shape):
    A = np.ones(shape)
    makers = (
        mapped,
        in_hdf5,
        lambda A, f: in_zarr(A, f, A.shape),
        lambda A, _: dask.array.from_array(A),
        lambda A, _: torch.from_numpy(A),
    )
    for make in makers:
        with pytest.raises(ValueError, match=f"has {len(shape)} dimensions. Reshape it"):
            as_stored_matrix(make(A, tmp_path))


def test_other_groups_are_refused(tmp_path):
    for group in (hdf5_group(tmp_path), zarr_group(tmp_path)):
        with pytest.raises(ValueError, match=r"/X is a group of other objects. Pass one of them"):
            as_stored_matrix(group)


def test_a_closed_file_is_refused(tmp_path):
    dataset = in_hdf5(make_table(), tmp_path)
    dataset.file.close()
    with pytest.raises(ValueError, match=r"HDF5 file is closed\. Keep the file open"):
        as_stored_matrix(dataset)


def test_dask_arrays_of_unknown_size_are_refused():
    X = dask.array.from_array(make_table(), chunks=(N, 5))
    with pytest.raises(ValueError, match=r"Call X\.compute_chunk_sizes\(\) first"):
        as_stored_matrix(X[X[:, 0] > 0])


def test_a_missing_optional_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"array of torch, .* pip install 'mrshc\[gpu\]'"):
        as_stored_matrix(torch.ones((3, 4)))


# ---- unreadable data


def assert_unreadable(source, message):
    """Check the error of a pass over unreadable data, and of a selection of columns."""
    with pytest.raises(UnreadableError, match=message):
        list(source.map_blocks(block_start))
    with pytest.raises(UnreadableError, match=r"^Columns \d+ to \d+ of .* cannot be read: "):
        source.columns(np.arange(P))


def test_a_truncated_hdf5_file(tmp_path):
    A = np.random.default_rng(0).normal(size=(N, P))
    in_hdf5(A, tmp_path, chunks=(N, 7), compression="gzip").file.close()
    path = tmp_path / "X.h5"
    with h5py.File(path) as file:
        dataset = file["X"]
        source = as_stored_matrix(dataset)
        os.truncate(path, dataset.id.get_chunk_info(5).byte_offset)
        assert_unreadable(
            source, r"^Columns \d+ to \d+ of .*X\.h5/X cannot be read: .*file is complete"
        )
        assert next(source.map_blocks(lambda block, _start, _xp: block.shape)) == (N, 7)


def test_a_damaged_hdf5_file(tmp_path):
    A = np.random.default_rng(0).normal(size=(N, P))
    dataset = in_hdf5(A, tmp_path, chunks=(N, 7), compression="gzip")
    offset = dataset.id.get_chunk_info(1).byte_offset
    dataset.file.close()
    with (tmp_path / "X.h5").open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 50)
    with h5py.File(tmp_path / "X.h5") as file:
        assert_unreadable(as_stored_matrix(file["X"]), "^Columns 7 to 13 of")


def test_a_damaged_zarr_chunk(tmp_path):
    array = in_zarr(make_table(), tmp_path, chunks=(N, 7))
    (tmp_path / "X.zarr" / "c" / "0" / "2").write_bytes(b"nonsense")
    assert_unreadable(
        as_stored_matrix(array), r"^Columns 14 to 20 of file://.*X\.zarr.* cannot be read: "
    )


def test_a_truncated_memory_map(tmp_path):
    A = np.zeros((N, 4096))
    source = as_stored_matrix(mapped(A, tmp_path))
    os.truncate(tmp_path / "X.npy", 10_000)
    assert_unreadable(
        source, r"X\.npy cannot be read: the file has 10000 bytes, but \d+ are expected\. C"
    )


@pytest.mark.parametrize("kind", ["csc_matrix", "csr_matrix"])
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_a_sparse_group_that_lacks_a_part(tmp_path, kind, part):
    group = in_group(make_table(), hdf5_group(tmp_path), kind)
    del group[part]
    with pytest.raises(UnreadableError, match=rf"^Columns 0 to {P - 1} of .*/X cannot be read: "):
        as_stored_matrix(group)


@pytest.mark.parametrize("kind", ["csc_matrix", "csr_matrix"])
def test_a_sparse_group_with_an_index_out_of_range(tmp_path, kind):
    group = in_group(make_table(), hdf5_group(tmp_path), kind)
    group["indices"][3] = 1000
    with pytest.raises(UnreadableError, match=r"^Columns 0 to .*/X cannot be read: "):
        list(as_stored_matrix(group).map_blocks(block_start))


def with_failing_chunk(A, start, error):
    """Return a dask array of which the chunk at a column raises an error."""

    def chunk(block, block_info=None):
        if block_info[0]["array-location"][1][0] == start:
            raise error
        return block

    return dask.array.from_array(A, chunks=(N, 5)).map_blocks(chunk, dtype=A.dtype)


def test_a_dask_chunk_that_raises():
    X = with_failing_chunk(make_table(), 20, RuntimeError("the disk is gone. Really"))
    assert_unreadable(
        as_stored_matrix(X),
        "^Columns 20 to 24 of the dask array cannot be read: the disk is gone. Check",
    )


def test_a_dask_chunk_of_another_shape_than_declared():
    X = dask.array.from_array(make_table(), chunks=(N, 5))
    X = X.map_blocks(lambda block: block[:, :1], dtype=float, chunks=X.chunks)
    assert_unreadable(
        as_stored_matrix(X), r"^Columns 0 to 4 of .* the chunk has shape \(12, 1\), not \(12, 5\)"
    )


def test_masked_and_sparse_dask_chunks():
    A = make_table()
    X = dask.array.from_array(A, chunks=(N, 5))
    masked = X.map_blocks(lambda b: np.ma.masked_array(np.nan_to_num(b), np.isnan(b)), dtype=float)
    np.testing.assert_array_equal(read_in_pass(as_stored_matrix(masked))[0], A)
    thin = X.map_blocks(sparse.csc_array, dtype=float, meta=np.empty((0, 0)))
    np.testing.assert_array_equal(read_in_pass(as_stored_matrix(thin))[0], A)


class Dataset:
    """Stand-in for an array in a file that records which columns are read."""

    def __init__(self, A, chunks):
        self.A, self.chunks = A, chunks
        self.shape, self.dtype, self.store_path = A.shape, A.dtype, "somewhere"
        self.reads = []
        self.error = None

    def __getitem__(self, where):
        self.reads.append((where[1].start, where[1].stop))
        if self.error is not None:
            raise self.error
        return self.A[where]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_interrupts_and_memory_errors_are_not_translated(error):
    dataset = Dataset(make_table(), (N, 5))
    dataset.error = error
    with pytest.raises(type(error)):
        list(FileMatrix(dataset).map_blocks(block_start))


# ---- order and size of the reads


@pytest.mark.parametrize(
    ("width", "ends"),
    [
        (1, [7, 14, 21, 28, 35, 42, 49, 53]),
        (3, [6, 12, 18, 24, 30, 36, 42, 48, 53]),  # two chunks fit into a block
        (20, [20, 40, 53]),  # a chunk may be larger than a block
        (30, [28, 30, 53]),  # but not larger than the largest block
    ],
)
def test_blocks_end_where_chunks_end(width, ends):
    dataset = Dataset(make_table(), (N, width))
    read_in_pass(FileMatrix(dataset))
    assert dataset.reads == list(zip([0, *ends[:-1]], ends, strict=True))


def test_adjacent_columns_are_read_together():
    dataset = Dataset(np.random.default_rng(0).normal(size=(2, 3000)), (2, 500))
    indices = np.array([2900, 10, 600, 20, 10, 2999])
    columns = FileMatrix(dataset).columns(indices)
    np.testing.assert_array_equal(columns, dataset.A[:, indices])
    assert dataset.reads == [(10, 21), (600, 601), (2900, 3000)]


def test_columns_are_read_in_parts_of_limited_size():
    dataset = Dataset(make_table(), (1, P))
    np.testing.assert_array_equal(FileMatrix(dataset).columns(np.arange(P)), dataset.A)
    assert dataset.reads == [(0, 28), (28, P)]


def test_the_next_block_is_read_during_the_call_of_the_function():
    dataset = Dataset(make_table(), (N, 7))
    read = threading.Event()

    def function(_block, start, _xp):
        for _ in range(1000):
            if start + 7 >= P or any(first == start + 7 for first, _ in dataset.reads):
                break
            read.wait(0.01)
        else:
            pytest.fail("nothing is read ahead")
        assert all(first <= start + 7 for first, _ in dataset.reads)  # two blocks are held
        return start

    assert list(FileMatrix(dataset).map_blocks(function)) == list(range(0, P, 7))


def test_an_abandoned_pass_leaves_no_thread():
    before = threading.active_count()
    pass_ = FileMatrix(Dataset(make_table(), (N, 7))).map_blocks(block_start)
    assert next(pass_) == 0
    pass_.close()
    assert threading.active_count() == before


def anonymous_memory():
    """Return the bytes that the process has allocated, without mapped files."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs the memory statistics of Linux"
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_memory_map_is_not_loaded_as_a_whole(tmp_path, monkeypatch, order):
    for limit in ("_BLOCK_CELLS", "_LARGEST_BLOCK"):
        monkeypatch.setattr(block_reading, limit, 1 << 17)  # 512 kB
    n, p = 100, 1 << 18  # 100 MB
    array = np.memmap(tmp_path / "X", np.float32, "w+", shape=(n, p), order=order)
    source = as_stored_matrix(array)
    before = anonymous_memory()
    held = max(source.map_blocks(lambda _block, _start, _xp: anonymous_memory()))
    assert held - before < 10 << 20


def test_tensors_with_gradients_and_of_type_bfloat16():
    A = make_table(np.float32)
    source = as_stored_matrix(torch.from_numpy(A).requires_grad_())
    np.testing.assert_array_equal(read_in_pass(source)[0], A)
    np.testing.assert_array_equal(source.columns(np.array([3, 1])), A[:, [3, 1]])
    rounded = torch.from_numpy(A).to(torch.bfloat16)
    source = as_stored_matrix(rounded)
    assert source.dtype == np.float32
    np.testing.assert_array_equal(source.columns(np.array([3])), rounded.float().numpy()[:, [3]])
