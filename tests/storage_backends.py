"""Kinds of storage for X: the same numbers in each, as a user would have them.

Packages are imported when they are needed: most tests need none of them.
"""

from types import SimpleNamespace

import numpy as np
from scipy import sparse

from mrshc.core.data import matrix


def use_small_blocks(monkeypatch, n_cells):
    """Make blocks so small that there are many of them."""
    monkeypatch.setattr(matrix, "BLOCK_CELLS", n_cells)


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
    stored = getattr(sparse, kind)(A)
    group.attrs.update({"encoding-type": kind, "shape": list(A.shape)})
    for part in ("data", "indices", "indptr"):
        values = getattr(stored, part)
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


STORAGE_BACKENDS = {
    "Fortran": lambda A, _: np.asfortranarray(A),
    "float32": lambda A, _: A.astype(np.float32),
    "map": mapped,
    "map, Fortran order": lambda A, folder: mapped(A, folder, "F"),
    "map, float32": lambda A, folder: mapped(A.astype(np.float32), folder),
    "HDF5": lambda A, f: in_hdf5(A, f, chunks=(len(A), min(30, A.shape[1])), compression="gzip"),
    "Zarr": lambda A, folder: in_zarr(A, folder, (len(A), 60)),
    "Dask": lambda A, _: in_dask(A, (len(A), 90)),
    "Dask, row chunks": lambda A, _: in_dask(A, (len(A) // 2, 70)),
    "CSC": lambda A, _: sparse.csc_array(A),
    "CSR": lambda A, _: sparse.csr_matrix(A),
    "CSC in HDF5": lambda A, folder: in_group(A, hdf5_group(folder), "csc_matrix"),
    "CSR in Zarr": lambda A, folder: in_group(A, zarr_group(folder), "csr_matrix"),
    "AnnData": lambda A, folder: backed(in_hdf5(A, folder)),
    "array API": lambda A, _: in_array_api(A),
    "torch": lambda A, _: in_torch(A),
    "torch, float32": lambda A, _: in_torch(A.astype(np.float32)),
}


def store(name, A, folder):
    """Place the numbers in the storage of this name, and return what a user would pass."""
    folder.mkdir(exist_ok=True)
    return STORAGE_BACKENDS[name](A, folder)


def numbers_in(name, A):
    """Return the numbers that the storage holds, in memory and in double precision."""
    return A.astype(np.float32).astype(np.float64) if "float32" in name else A
