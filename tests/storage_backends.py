"""Kinds of storage for X: the same numbers in each, as a user would have them.

Packages are imported when they are needed: most tests need none of them.
"""

from types import SimpleNamespace

import numpy as np
from scipy import sparse

from mrshc.core.data import array_matrix, block_reading, device_array
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.centre_data import centre
from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.sparse_pca.l1_path import component_path
from mrshc.core.sparse_pca.solvers import AlternationLimits


class ArrayInBlocks(ArrayMatrix):
    """An array in memory that is read in blocks, as if it were in a file."""

    in_memory = False


def use_small_blocks(monkeypatch, n_cells):
    """Make blocks so small that there are many of them."""
    for module in (array_matrix, block_reading, device_array):
        monkeypatch.setattr(module, "_BLOCK_CELLS", n_cells)
    monkeypatch.setattr(block_reading, "_LARGEST_BLOCK", 4 * n_cells)


def mapped(A, folder, order="C"):
    path = folder / "X.npy"
    np.save(path, np.asarray(A, order=order))
    return np.load(path, mmap_mode="r")


def in_hdf5(A, folder, **options):
    import h5py

    file = h5py.File(folder / "X.h5", "w")
    return file.create_dataset("X", data=A, **options)


def in_zarr(A, folder, chunks=None):
    import zarr

    store, chunks = folder / "X.zarr", chunks or (A.shape[0], 5)
    array = zarr.create_array(store=store, shape=A.shape, chunks=chunks, dtype=A.dtype)
    array[:] = A
    return array


def in_dask(A, chunks):
    import dask.array

    return dask.array.from_array(A, chunks=chunks)


def in_torch(A):
    import torch

    return torch.from_numpy(A)


def in_array_api(A):
    import array_api_strict

    return array_api_strict.asarray(A)


def in_group(A, group, kind):
    """Write a sparse matrix as AnnData does."""
    matrix = getattr(sparse, kind)(A)
    group.attrs.update({"encoding-type": kind, "shape": list(A.shape)})
    for part in ("data", "indices", "indptr"):
        values = getattr(matrix, part)
        if hasattr(group, "create_array"):  # Zarr
            group.create_array(part, data=values)
        else:
            group[part] = values
    return group


def hdf5_group(folder):
    import h5py

    return h5py.File(folder / "X.h5ad", "w").create_group("X")


def zarr_group(folder):
    import zarr

    return zarr.open_group(folder / "X.zarr", mode="w").create_group("X")


def backed(X):
    """Stand for an AnnData object whose X lies in a file."""
    n, p = X.shape if hasattr(X, "shape") else getattr(X, "group", X).attrs["shape"]
    names = {"obs_names": [f"s{i}" for i in range(n)], "var_names": [f"f{j}" for j in range(p)]}
    return SimpleNamespace(X=X, isbacked=True, **names)


def backed_sparse(A, folder):
    """Stand for one whose X is sparse: AnnData covers the group thinly."""
    return backed(SimpleNamespace(group=in_group(A, hdf5_group(folder), "csc_matrix")))


STORAGE_BACKENDS = {
    "Fortran": lambda A, _: np.asfortranarray(A),
    "float32": lambda A, _: A.astype(np.float32),
    "map": mapped,
    "map, Fortran order": lambda A, folder: mapped(A, folder, "F"),
    "map, float32": lambda A, folder: mapped(A.astype(np.float32), folder),
    "HDF5": lambda A, f: in_hdf5(A, f, chunks=(len(A), min(30, A.shape[1])), compression="gzip"),
    "Zarr": lambda A, folder: in_zarr(A, folder, (len(A), 60)),
    "dask": lambda A, _: in_dask(A, (len(A), 90)),
    "CSC": lambda A, _: sparse.csc_array(A),
    "CSR": lambda A, _: sparse.csr_matrix(A),
    "array API": lambda A, _: in_array_api(A),
    "torch": lambda A, _: in_torch(A),
    "torch, float32": lambda A, _: in_torch(A.astype(np.float32)),
}

# One storage for each implementation of DataMatrix: that the others of the same implementation hold
# the same numbers is tested with the data and with the estimators.
IMPLEMENTATIONS = ("float32", "map", "HDF5", "CSC", "dask", "array API")


def latin_square(first, second):
    """Return triples of an implementation and levels of two factors with as many levels each.

    Every implementation has all levels of both factors, and every pair of their levels is combined
    with some of the implementations.
    """
    first, second = list(first), list(second)
    return [
        (name, level, second[(i + j) % len(second)])
        for i, name in enumerate(IMPLEMENTATIONS)
        for j, level in enumerate(first)
    ]


class StorageBackend:
    """A kind of storage, with a folder of its own for each matrix."""

    def __init__(self, name, folder):
        self.name, self._folder, self._placed = name, folder, 0

    @property
    def is_out_of_core(self):
        """Whether X is read in blocks."""
        return self.name not in ("Fortran", "float32")

    @property
    def is_single(self):
        """Whether it has single precision."""
        return "float32" in self.name

    def __call__(self, A):
        """Place numbers there."""
        folder = self._folder / str(self._placed)
        folder.mkdir()
        self._placed += 1
        return STORAGE_BACKENDS[self.name](A, folder)

    def in_memory(self, A):
        """Return the numbers that are there: in memory, in double precision."""
        return A.astype(np.float32).astype(np.float64) if self.is_single else A


def matrix_at(X, *, center="columns", drop_constant=True, **options):
    """Return X, wherever it is stored, as the algorithms use it."""
    return centre(as_data_matrix(X), center=center, drop_constant=drop_constant, **options)


def path_on(matrix, *, n_components=5, most=500, max_iter=20):
    """Return the path of the sparse components of a matrix, for at most so many features."""
    return component_path(
        matrix,
        n_components=n_components,
        max_features=most,
        limits=AlternationLimits(max_iter=max_iter, tol=1e-7),
    )


def searched(path, targets, ranks):
    """Return the features for every (q, rank), certified."""
    grid = [(q, r) for q in targets for r in ranks]
    return dict(path.search_grid(grid, tolerance=0, n_jobs=None))


def assert_same_features(one, other):
    for key, features in one.items():
        assert other[key].l1_bound == features.l1_bound, key
        np.testing.assert_array_equal(other[key].indices, features.indices, err_msg=str(key))


def assert_same_components(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(other.indices, one.indices)
        np.testing.assert_allclose(other.weights, one.weights, atol=1e-8)
        np.testing.assert_allclose(other.u, one.u, atol=1e-8)


def clustered(n=24, p=400, seed=0):
    """Return three clusters of samples that show in some forty features."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p))
    A[: n // 3, :25] += 2.0
    A[n // 3 : n // 2, 15:40] -= 2.5
    return A


def tables(backend):
    """Yield tables of many kinds, those that the backend can hold."""
    A, rng = clustered(), np.random.default_rng(1)
    yield A
    yield np.where(rng.random(A.shape) < 0.1, np.nan, A)
    constant = A.copy()
    constant[:, [0, 7, 200]] = [0.1, 100.0, 0.0]
    yield constant
    copies = A.copy()
    copies[:, 300:] = A[:, :100]
    yield copies
    yield A + 1e6
    if not backend.is_single:
        yield A * 1e120
        yield A * 1e-120


def tables_in_turn(backend, levels):
    """Yield tables, each with one of the levels of a factor, which differs between implementations.

    Every implementation has all tables and all levels, and every table has all levels.
    """
    start = IMPLEMENTATIONS.index(backend.name)
    for i, table in enumerate(tables(backend)):
        yield table, levels[(start + i) % len(levels)]
