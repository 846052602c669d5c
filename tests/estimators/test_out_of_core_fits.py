"""The estimators find the same wherever X lives."""

import os
import pickle
import shutil
from functools import cache

import dask.array
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mrshc import SHC, HighVarianceHC, MrSHC, refine_features
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.core.data.data_matrix import DataMatrix, UnreadableError
from mrshc.errors import UserError
from storage_backends import (
    STORAGE_BACKENDS,
    backed,
    backed_sparse,
    clustered,
    in_group,
    in_hdf5,
    in_zarr,
    mapped,
    use_small_blocks,
    zarr_group,
)

# Ten reference samples do not always see clusters.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning"),
]

A = clustered(30, 300)
HOLES = np.where(np.random.default_rng(1).random(A.shape) < 0.05, np.nan, A)


def quick(n_features_to_select=20, **options):
    """A search small enough for a test."""
    options = {"max_rank": 2, "n_references": 10, "random_state": 0, **options}
    return MrSHC(n_features_to_select, **options)


# Each with the table that it is fitted to.
MODELS = {
    "MrSHC": (quick(), A),
    "MrSHC, auto": (quick("auto"), HOLES),
    "MrSHC, evidence": (quick([10, 20, 40], selection="evidence"), HOLES),
    "MrSHC, association": (quick("auto", selection="association", linkage="ward"), HOLES),
    "MrSHC, refine": (quick([10, 20], refine=True), HOLES),
    "MrSHC, n_clusters": (quick([10, 20], n_clusters=3, center="grand"), A),
    "MrSHC, ward": (quick(linkage="ward", center=False), HOLES),
    "MrSHC, cityblock": (quick(metric="cityblock"), A),
    "MrSHC, correlation": (quick([10, 20], metric="correlation", refine=True), HOLES),
    "SHC": (SHC(20, n_clusters=3), HOLES),
    "SHC, bound": (SHC(l1_bound=3.0, n_clusters=3, refine=True), A),
    "SHC, auto": (SHC(l1_bound="auto", n_permutations=2, random_state=0, n_clusters=3), A),
    "SHC, cityblock": (SHC([10, 20], metric="cityblock", n_permutations=2, random_state=0), HOLES),
    "SHC, ssl": (SHC(penalty="ssl", spike_penalty=60.0, n_clusters=3), HOLES),
    "HighVarianceHC": (HighVarianceHC(20, n_clusters=3), HOLES),
    "HighVarianceHC, cityblock": (HighVarianceHC(20, linkage="average", metric="cityblock"), A),
    "HighVarianceHC, correlation": (HighVarianceHC(20, linkage="ward", metric="correlation"), A),
}


@cache
def expected_of(name, single):
    """Return the fit to the array, in single precision or not, and what it says of it."""
    model, table = MODELS[name]
    X = table.astype(np.float32 if single else np.float64).astype(np.float64)
    model = clone(model).fit(X)
    return model, model.sample_distances(X), model.markers(X, k=3), model.transform(X)


def assert_same_fit(model, expected, rtol=1e-9):
    np.testing.assert_array_equal(model.get_support(), expected.get_support())
    close = {"rtol": rtol, "atol": rtol}
    np.testing.assert_allclose(model.linkage_matrix_, expected.linkage_matrix_, **close)
    assert hasattr(model, "labels_") == hasattr(expected, "labels_")
    if hasattr(expected, "labels_"):
        np.testing.assert_array_equal(model.labels_, expected.labels_)
    for name in ("components_", "feature_weights_", "feature_qvalues_", "dissimilarity_"):
        if hasattr(expected, name):
            np.testing.assert_allclose(
                getattr(model, name), getattr(expected, name), rtol=1e-7, atol=1e-8
            )
    if hasattr(expected, "search_results_"):
        assert model.search_results_.keys() == expected.search_results_.keys()
        for name, values in expected.search_results_.items():
            np.testing.assert_allclose(model.search_results_[name], values, **close, err_msg=name)
        # The candidates are the same to the last digit.
        for name in {"l1_bound", "spike_penalty"} & expected.search_results_.keys():
            np.testing.assert_array_equal(
                model.search_results_[name], expected.search_results_[name]
            )


def test_fits_are_those_to_the_array(backend):
    assert_fit_is_that_to_the_array("MrSHC", backend)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "MrSHC"])
def test_fits_of_other_models_are_those_to_the_array(implementation, name):
    assert_fit_is_that_to_the_array(name, implementation)


def assert_fit_is_that_to_the_array(name, storage):
    expected, distances, markers, selected = expected_of(name, storage.is_single)
    model, table = MODELS[name]
    X = storage(table)
    model = clone(model).fit(X)
    assert_same_fit(model, expected)
    assert model.n_features_in_ == 300
    counts = storage.is_out_of_core and not name.startswith("HighVariance")
    assert hasattr(model, "n_passes_") == counts
    np.testing.assert_allclose(model.sample_distances(X), distances, rtol=1e-8, atol=1e-12)
    transformed = model.transform(X)
    assert type(transformed) is np.ndarray
    np.testing.assert_array_equal(transformed, selected)
    found = model.markers(X, k=3)
    pd.testing.assert_frame_equal(found, markers, rtol=1e-9)


@pytest.mark.parametrize("model", [quick([10, 20]), SHC(20)])
def test_sweeps_are_counted_and_forgotten_with_the_next_array(model, tmp_path):
    model = clone(model).fit(mapped(A, tmp_path))
    assert 2 < model.n_passes_ < 200
    assert not hasattr(model.fit(A), "n_passes_")


@pytest.mark.parametrize("place", ["map", "HDF5", "dask"])
@pytest.mark.parametrize(
    "model", [quick([10, 20, 40], refine=True), SHC([10, 20], random_state=0, n_permutations=3)]
)
def test_the_number_of_workers_does_not_matter(model, place, tmp_path, monkeypatch):
    use_small_blocks(monkeypatch, 3000)
    X = STORAGE_BACKENDS[place](HOLES, tmp_path)
    alone, others = (clone(model).set_params(n_jobs=k).fit(X) for k in (1, 2))
    assert_same_fit(alone, others, rtol=0)
    assert alone.n_passes_ == others.n_passes_


def test_an_interrupted_search_in_a_map_goes_on(tmp_path):
    X, path = mapped(HOLES, tmp_path), tmp_path / "steps"
    undisturbed = quick([5, 10, 20]).fit(X)
    model = quick([5, 10, 20], checkpoint=path)
    assert_same_fit(clone(model).fit(X), undisturbed, rtol=0)
    content = path.read_bytes()
    header = content.index(b"\n") + 1
    for cut in (header, len(content) // 3, 2 * len(content) // 3, len(content)):
        path.write_bytes(content[:cut])
        assert_same_fit(clone(model).fit(X), undisturbed, rtol=0)
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="holds the steps of a search with other data"):
        clone(model).fit(mapped(HOLES + 1.0, tmp_path / "other"))


@pytest.mark.parametrize(
    "made",
    [
        lambda folder: backed(in_hdf5(A, folder)),
        lambda folder: backed_sparse(A, folder),
        lambda _: backed(sparse.csr_matrix(A)),
        lambda _: backed(A),
    ],
    ids=["file", "sparse file", "sparse", "array"],
)
def test_annotated_data_are_taken_for_their_x(made, tmp_path):
    expected, distances, *_ = expected_of("MrSHC", False)
    X = made(tmp_path)
    model = quick().fit(X)
    assert_same_fit(model, expected)
    np.testing.assert_allclose(model.sample_distances(X), distances, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("model", [quick(), SHC(20), HighVarianceHC(20, n_clusters=3)])
def test_a_fitted_model_is_copied_and_stored_without_x(model, tmp_path):
    X = mapped(A, tmp_path)
    model = clone(model).fit(X)
    stored = pickle.dumps(model)
    assert len(stored) < A.nbytes
    again = pickle.loads(stored)
    assert_same_fit(again, model, rtol=0)
    np.testing.assert_array_equal(again.transform(X), model.transform(A))
    assert_same_fit(clone(model).fit(X), model, rtol=0)


def test_a_complement_is_found_where_cells_are_missing(tmp_path):
    for X in (HOLES, mapped(HOLES, tmp_path)):
        first = SHC(10).fit(X)
        second = SHC(10, complement_of=first.dissimilarity_).fit(X)
        overlap = np.sum(first.dissimilarity_ * second.dissimilarity_)
        assert overlap == pytest.approx(0, abs=1e-12)


def test_names_of_an_earlier_fit_are_forgotten(tmp_path):
    frame = pd.DataFrame(A).rename(columns="g{}".format)
    model = HighVarianceHC(20).fit(frame)
    np.testing.assert_array_equal(model.transform(mapped(A, tmp_path)), model.transform(frame))
    assert not hasattr(model.fit(mapped(A, tmp_path)), "feature_names_in_")


@pytest.mark.parametrize(
    "model", [quick([10, 20], refine=True), quick(robust=True), SHC(20, refine=True)]
)
def test_wide_arrays_are_read_in_blocks(model, monkeypatch):
    expected = clone(model).fit(HOLES)
    monkeypatch.setattr("mrshc.core.data.centre_data._MANY_FEATURES", 200)
    found = clone(model).fit(HOLES)
    assert_same_fit(found, expected)
    assert hasattr(found, "n_passes_") == isinstance(model, MrSHC)
    pd.testing.assert_frame_equal(found.markers(HOLES, k=3), expected.markers(HOLES, k=3))


def test_few_features_are_read_into_memory(backend):
    few = A[:, :20].copy()
    expected, model = quick(5).fit(backend.in_memory(few)), quick(5).fit(backend(few))
    assert_same_fit(model, expected)
    assert not hasattr(model, "n_passes_")


# Refusals -----------------------------------------------------------------------------------


def changed(i, j, value):
    X = A.copy()
    X[i, j] = value
    return X


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (A[:2], "minimum of 3 is required by MrSHC"),
        (changed(2, slice(None), np.nan), "sample 2 of X has none. Drop it"),
        (changed(slice(None), 3, np.nan), "feature 3 of X has none. Drop it"),
        (changed(2, 3, np.inf), "X must be finite, but holds inf"),
        (changed(0, 3, -np.inf), "X must be finite, but holds inf"),
        (changed(slice(4), 3, [np.inf, -np.inf, 1.0, np.nan]), "X must be finite, but holds inf"),
        (np.ones((5, 40)), "all 40 of its features are constant"),
    ],
)
def test_bad_data_are_refused(backend, table, message):
    with pytest.raises(ValueError, match=message):
        quick(5).fit(backend(table))


@pytest.mark.parametrize("place", ["map", "dask", "CSC", "array API", "torch"])
@pytest.mark.parametrize("scale", [1e155, 1e-155])
def test_squares_that_cannot_be_computed_are_refused(place, scale, tmp_path):
    with pytest.raises(ValueError, match=r"X must have values below 1e\+150 that differ by more"):
        quick().fit(STORAGE_BACKENDS[place](A * scale, tmp_path))


@pytest.mark.parametrize("table", [A + 1j, np.full(A.shape, "a")], ids=["complex", "text"])
def test_values_that_are_not_numeric_are_refused(table, tmp_path):
    for X in (mapped(table, tmp_path), dask.array.from_array(table, chunks=(30, 100))):
        with pytest.raises(ValueError, match=r"X must hold real numbers, but .* holds"):
            quick().fit(X)


def test_one_dimension_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"but .* has 1 dimensions"):
        quick().fit(mapped(A[0], tmp_path))


def test_robustness_needs_x_in_memory(tmp_path):
    with pytest.raises(ValueError, match=r"robust=True needs X in memory.*Load it, or leave"):
        quick(robust=True).fit(mapped(A, tmp_path))


def test_other_data_than_those_of_the_fit_are_refused(backend):
    model = HighVarianceHC(20, n_clusters=3).fit(A)
    for ask in (model.transform, model.markers, model.sample_distances):
        with pytest.raises(ValueError, match="300 features"):
            ask(backend(A[:, :200]))
    for ask in (model.markers, model.sample_distances):
        with pytest.raises(ValueError, match="with 30 samples, got 20"):
            ask(backend(A[:20]))


def attributes(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def broken_dask(_):
    def chunk(block, block_info=None):
        if block_info[0]["array-location"][1][0] == 100:
            raise RuntimeError("the disk is gone")
        return block

    return dask.array.from_array(A, chunks=(30, 50)).map_blocks(chunk, dtype=float)


def broken_hdf5(folder):
    in_hdf5(A, folder, chunks=(30, 50), compression="gzip").file.close()
    dataset = h5py.File(folder / "X.h5")["X"]
    os.truncate(folder / "X.h5", dataset.id.get_chunk_info(3).byte_offset)
    return dataset


@pytest.mark.parametrize("model", [quick(), SHC(20), HighVarianceHC(20)])
@pytest.mark.parametrize("made", [broken_dask, broken_hdf5])
def test_a_failed_read_leaves_no_fitted_attributes(model, made, tmp_path, monkeypatch):
    use_small_blocks(monkeypatch, 1500)
    model = clone(model)
    with pytest.raises(UnreadableError, match=r"^Columns \d+ to \d+ of .* cannot be read: "):
        model.fit(made(tmp_path))
    assert not attributes(model)
    with pytest.raises(NotFittedError):
        model.cut(2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("model", [quick(), SHC(20), HighVarianceHC(20)])
def test_data_that_are_refused_leave_nothing_behind(model, bad, tmp_path):
    model = clone(model)
    with pytest.raises(ValueError, match=r"X must be finite|feature 3 of X has none"):
        model.fit(mapped(changed(slice(None), 3, bad), tmp_path))
    assert not attributes(model)


class Failing(DataMatrix):
    """A matrix over which so many passes can be made, and then no more."""

    def __init__(self, X, n_passes):
        self._data, self._left = as_stored_matrix(X), n_passes
        self.shape, self.dtype = self._data.shape, self._data.dtype

    def map_blocks(self, function):
        self._left -= 1
        if self._left < 0:
            raise UnreadableError("The disk is gone.")
        return self._data.map_blocks(function)

    def columns(self, indices):
        return self._data.columns(indices)


def test_a_fit_that_fails_on_its_way_leaves_the_earlier_one(tmp_path):
    X = mapped(A, tmp_path)
    model = quick([10, 20], refine=True).fit(X)
    before = dict(vars(model))
    other = clone(model).set_params(n_features_to_select=[5, 30])
    n_passes = other.fit(X).n_passes_
    model.set_params(n_features_to_select=[5, 30])
    for left in (0, 1, 2, n_passes // 2, n_passes - 1):
        with pytest.raises(UnreadableError, match="The disk is gone"):
            model.fit(Failing(X, left))
        for name in ("labels_", "linkage_matrix_", "search_results_", "feature_qvalues_"):
            assert getattr(model, name) is before[name]
        assert model.n_passes_ == before["n_passes_"]
    assert_same_fit(model.fit(Failing(X, n_passes)), other, rtol=0)


def test_samples_in_another_order_are_other_data(tmp_path):
    X = np.random.default_rng(0).integers(0, 9, size=(32, 200)).astype(np.float64)
    found = []
    for rows in (X, X[::-1]):
        np.save(tmp_path / "X.npy", rows)
        found.append(as_stored_matrix(np.load(tmp_path / "X.npy", mmap_mode="r")).fingerprint())
    assert found[0] != found[1]


# ---- parts of a file that are absent


def zarr_without_a_chunk(folder):
    array = in_zarr(A, folder, (len(A), 60))
    (folder / "X.zarr/c/0/2").unlink()
    return array


def zarr_without_a_folder(folder):
    array = in_zarr(A, folder, (len(A), 60))
    shutil.rmtree(folder / "X.zarr")
    return array


def zarr_in_memory(_):
    array = zarr.create_array({}, shape=A.shape, chunks=(len(A), 60), dtype=A.dtype)
    array[:, 60:] = A[:, 60:]
    return array


def hdf5_without_a_chunk(folder):
    with h5py.File(folder / "X.h5", "w") as file:
        file.create_dataset("X", A.shape, float, chunks=(len(A), 60))[:, 60:] = A[:, 60:]
    return h5py.File(folder / "X.h5")["X"]


def hdf5_without_values(folder):
    return h5py.File(folder / "X.h5", "w").create_dataset("X", A.shape, float, fillvalue=7)


def sparse_without_a_chunk(folder):
    group = in_group(A, zarr_group(folder), "csc_matrix")
    cells = group["data"][:]
    del group["data"]
    group.create_array("data", shape=cells.shape, chunks=(len(cells) // 2,), dtype=float)[-9:] = 1
    return group


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (zarr_without_a_chunk, r"^1 of 5 chunks of .*X\.zarr are absent and are read as the fill"),
        (zarr_in_memory, r"^1 of 5 chunks of .* are absent and are read as the fill value 0\.$"),
        (hdf5_without_a_chunk, r"^1 of 5 chunks of .*X\.h5/X are absent and are read as the fill"),
        (lambda f: backed(hdf5_without_a_chunk(f)), r"^1 of 5 chunks of .*X\.h5/X are absent"),
        (sparse_without_a_chunk, r"^1 of 2 chunks of .*/X/data are absent and are read as the"),
    ],
)
@pytest.mark.parametrize("model", [HighVarianceHC(20), SHC(20), quick()])
def test_absent_chunks_give_a_warning(tmp_path, make, match, model):
    X = make(tmp_path)
    with pytest.warns(UserWarning, match=match) as given:
        clone(model).fit(X)
    ours = [w for w in given if "absent" in str(w.message)]
    assert len(ours) == 1


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (zarr_without_a_folder, r"^5 of 5 chunks of .* are read as the fill value 0\.$"),
        (hdf5_without_values, r"^1 of 1 chunks of .* are read as the fill value 7\.$"),
    ],
)
def test_arrays_without_any_value_give_a_warning(tmp_path, make, match):
    X = make(tmp_path)
    with (
        pytest.warns(UserWarning, match=match),
        pytest.raises(ValueError, match="all 300 of its features are constant"),
    ):
        HighVarianceHC(20).fit(X)


def test_features_of_a_file_with_absent_chunks_give_a_warning(tmp_path):
    X = hdf5_without_a_chunk(tmp_path)
    with pytest.warns(UserWarning, match=r"^1 of 5 chunks of .* are absent"):
        refine_features(X, range(60, 70))
