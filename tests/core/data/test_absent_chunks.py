"""Chunks that are absent from HDF5 and Zarr arrays are counted and reported."""

import os
import pathlib
import shutil
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import zarr

from mrshc.core.data.absent_chunks import absent_chunk_warnings, chunk_storage, walk_directory

SHAPE, CHUNKS = (5, 7), (2, 3)  # a grid of three by three chunks


def in_hdf5_file(folder, **options):
    return h5py.File(folder / "X.h5", "w").create_dataset("X", SHAPE, float, **options)


def in_zarr_store(store, shape=SHAPE, **options):
    return zarr.create_array(store, shape=shape, dtype=float, **{"chunks": CHUNKS, **options})


def write_two_chunks(array):
    array[:2, :3] = 1.0
    array[4:, 6:] = 2.0


def counts(array):
    storage = chunk_storage(array)
    return storage.n_chunks, storage.n_present


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: in_hdf5_file(folder, chunks=CHUNKS),
        lambda folder: in_zarr_store(folder / "X.zarr"),
        lambda folder: in_zarr_store(folder / "X.zarr", zarr_format=2),
        lambda folder: in_zarr_store(folder / "X.zarr", chunks=(1, 1), shards=CHUNKS),
        lambda _: in_zarr_store({}),
    ],
    ids=["HDF5", "Zarr 3", "Zarr 2", "shards", "memory"],
)
def test_chunks_of_the_grid_and_present_chunks_are_counted(tmp_path, make):
    array = make(tmp_path)
    assert counts(array) == (9, 0)
    write_two_chunks(array)
    assert counts(array) == (9, 2)
    (message,) = absent_chunk_warnings(array, "X")
    assert message == "7 of 9 chunks of X are absent and are read as the fill value 0."
    array[:] = 3.0
    assert counts(array) == (9, 9)
    assert absent_chunk_warnings(array, "X") == []


def test_the_size_is_that_of_the_stored_chunks(tmp_path):
    hdf5 = in_hdf5_file(tmp_path, chunks=CHUNKS)
    on_disk = in_zarr_store(tmp_path / "X.zarr", compressors=None)
    in_memory = in_zarr_store({}, compressors=None)
    n_metadata = chunk_storage(in_memory).n_bytes
    for array in (hdf5, on_disk, in_memory):
        write_two_chunks(array)
    n_bytes = 2 * 8 * CHUNKS[0] * CHUNKS[1]
    assert chunk_storage(hdf5).n_bytes == n_bytes
    assert chunk_storage(on_disk).n_bytes == n_bytes
    assert chunk_storage(in_memory).n_bytes == n_metadata + n_bytes


def test_a_contiguous_dataset_is_one_chunk(tmp_path):
    dataset = in_hdf5_file(tmp_path, fillvalue=7.5)
    assert counts(dataset) == (1, 0)
    (message,) = absent_chunk_warnings(dataset, "X")
    assert message == "1 of 1 chunks of X are absent and are read as the fill value 7.5."
    dataset[0, 0] = 1.0
    assert counts(dataset) == (1, 1)
    assert chunk_storage(dataset).n_bytes == 8 * SHAPE[0] * SHAPE[1]
    assert absent_chunk_warnings(dataset, "X") == []


def test_vectors_are_counted_as_matrices_are(tmp_path):
    with h5py.File(tmp_path / "X.h5", "w") as file:
        vector = file.create_dataset("vector", (7,), float, chunks=(3,))
        vector[:2] = 1.0
        assert counts(vector) == (3, 1)
        single = file.create_dataset("single", (1,), np.int8)
        single[0] = 1
        assert counts(single) == (1, 1)
    vector = in_zarr_store(tmp_path / "X.zarr", shape=(7,), chunks=(3,))
    vector[:2] = 1.0
    assert counts(vector) == (3, 1)


def test_the_fill_value_of_zarr_arrays_is_named(tmp_path):
    array = in_zarr_store(tmp_path / "X.zarr", fill_value=7.5)
    assert absent_chunk_warnings(array, "X")[0].endswith("the fill value 7.5.")
    # Version 2 of the Zarr format permits arrays without a fill value.
    array = in_zarr_store(tmp_path / "Y.zarr", zarr_format=2, fill_value=None)
    assert absent_chunk_warnings(array, "X")[0].endswith("the fill value 0.")


def test_arrays_without_values_have_no_absent_chunks(tmp_path):
    with h5py.File(tmp_path / "X.h5", "w") as file:
        assert absent_chunk_warnings(file.create_dataset("X", (0, 4), float), "X") == []
        assert len(absent_chunk_warnings(file.create_dataset("Y", (1, 1), float), "Y")) == 1


@pytest.mark.parametrize("group", ["", "inner"])
def test_chunks_in_an_archive_are_those_of_the_array(tmp_path, group):
    path = tmp_path / "X.zip"
    with zarr.storage.ZipStore(path, mode="w") as store:
        array = in_zarr_store(store, name=group or None, compressors=None)
        write_two_chunks(array)
        if group:  # a second array, all of whose chunks are present
            in_zarr_store(store, name="other")[:] = 1.0
    with zarr.storage.ZipStore(path, mode="r") as store:
        array = zarr.open_array(store, path=group, mode="r")
        storage = chunk_storage(array)
    assert (storage.n_chunks, storage.n_present) == (9, 2)
    assert storage.n_bytes == 2 * 8 * CHUNKS[0] * CHUNKS[1]


def test_chunks_of_other_stores_cannot_be_counted(tmp_path):
    array = in_zarr_store(zarr.storage.WrapperStore(zarr.storage.MemoryStore()))
    assert chunk_storage(array) is None
    assert absent_chunk_warnings(array, "X") == []
    with zarr.storage.ZipStore(tmp_path / "X.zip", mode="w") as store:  # not yet complete
        array = in_zarr_store(store)
        assert chunk_storage(array) is None


def test_all_chunks_are_absent_if_the_folder_has_been_removed(tmp_path):
    array = in_zarr_store(tmp_path / "X.zarr")
    array[:] = 1.0
    shutil.rmtree(tmp_path / "X.zarr")
    assert counts(array) == (9, 0)


@pytest.mark.parametrize(
    ("names", "n_present"),
    [
        (["c/0/0", "c/2/2"], 2),
        (["0.0", "2.2", "1/1"], 3),
        (["c/0/0", "c.0.0"], 1),  # the same chunk
        (["c/3/0", "c/0/3", "5.5"], 0),  # outside the grid
        (["c/0", "c/1/0/0", "0"], 0),  # other numbers of axes
        (["c"], 0),
        (["c/0/x", "c/-1/0", "c/0/\u00b2", "c/\u0663/0", "d/0/0", "zarr.json"], 0),
    ],
)
def test_only_files_of_chunks_inside_the_grid_are_counted(tmp_path, names, n_present):
    for name in names:
        path = tmp_path / "inner" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    store_path = SimpleNamespace(store=SimpleNamespace(root=tmp_path), path="inner")
    storage = chunk_storage(SimpleNamespace(store_path=store_path, shape=SHAPE, chunks=CHUNKS))
    assert storage.n_present == n_present
    assert storage.n_bytes == 5 * n_present


def test_all_levels_of_a_folder_are_listed_without_following_links(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    pathlib.Path(tmp_path / "a" / "loop").symlink_to(tmp_path)
    paths = sorted(os.path.relpath(entry.path, tmp_path) for entry in walk_directory(tmp_path))
    assert paths == ["a", "a/b", "a/b/file", "a/loop"]
