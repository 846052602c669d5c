"""The command line on data that stay in their file, on workers or on a device."""

import asyncio
import gzip
import os
import pickle
import shutil
import sys
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import distributed
import h5py
import numpy as np
import pandas as pd
import pytest
import torch
import zarr
from distributed.comm import CommClosedError
from scipy import sparse

from command_line import without_pictures
from mrshc import MrSHC
from mrshc.app import cli, execution_backends, open_backend
from mrshc.core.data import matrix as data_matrix
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import TableError, load_result, memory, read_table
from mrshc.io.stored_matrix import StoredMatrix

pytestmark = pytest.mark.slow

N, P = 60, 120
SAMPLES, FEATURES = [f"s{i}" for i in range(N)], [f"g{j}" for j in range(P)]
QUICK = ("--paper", "-q", "10,20", "--max-rank", "2", "--n-references", "10", "--quiet")


def numbers():
    """Three clusters, and zeros, so that a sparse matrix can hold it."""
    X = make_simulation_1(6, mu=2.0).X[:, :P]
    return np.where(np.abs(X) < 0.3, 0.0, X)


X = numbers()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (data_matrix, execution_backends):
        monkeypatch.setattr(module, "BLOCK_CELLS", 25 * N)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Files ----------------------------------------------------------------------------------------


def in_npy(path, values=X):
    np.save(path, values)
    return path


def in_zarr(path, values=X, chunks=(N, 16)):
    array = zarr.create_array(path, shape=values.shape, chunks=chunks, dtype=values.dtype)
    array[:] = values
    return path


def in_zip(path, values=X):
    with zarr.storage.ZipStore(path, mode="w") as store:
        zarr.create_array(store, data=values, chunks=(N, 16))
    return path


def annotate(group, values, kind):
    """Write what AnnData would."""
    if kind == "dense":
        write(group, "X", values)
    else:
        matrix = getattr(sparse, f"{kind}_matrix")(values)
        inner = group.create_group("X")
        inner.attrs.update({"encoding-type": f"{kind}_matrix", "shape": list(values.shape)})
        for part in ("data", "indices", "indptr"):
            write(inner, part, getattr(matrix, part))
    for name, names, about in (
        ("obs", SAMPLES, {"site": ["Oslo", "Bergen"] * (N // 2)}),
        ("var", FEATURES, {"chromosome": np.arange(P)}),
    ):
        frame = group.create_group(name)
        frame.attrs.update({"_index": "names", "column-order": list(about)})
        for column, content in {"names": names, **about}.items():
            write(frame, column, content)


def write(group, name, content):
    if isinstance(group, zarr.Group):
        text = isinstance(content[0], str)
        dtype = str if text else np.asarray(content).dtype
        array = group.create_array(name, shape=np.shape(content), dtype=dtype)
        array[...] = np.array(content, dtype=object) if text else content
    else:
        group[name] = content


def in_h5ad(path, values=X, kind="dense"):
    with h5py.File(path, "w") as file:
        annotate(file, values, kind)
    return path


def in_zarr_group(path, kind):
    annotate(zarr.open_group(path, mode="w", zarr_format=2), X, kind)
    return path


HOMES = {
    "npy": lambda f: in_npy(f / "x.npy"),
    "npy, features in rows": lambda f: in_npy(f / "x.npy", X.T),
    "zarr": lambda f: in_zarr(f / "x.zarr"),
    "zarr, features in rows": lambda f: in_zarr(f / "x.zarr", X.T, (16, N)),
    "zarr, archive": lambda f: in_zip(f / "x.zarr.zip"),
    "zarr, AnnData, csc": lambda f: in_zarr_group(f / "x.zarr", "csc"),
    "h5ad": lambda f: in_h5ad(f / "x.h5ad"),
    "h5ad, csc": lambda f: in_h5ad(f / "x.h5ad", kind="csc"),
    "h5ad, csr": lambda f: in_h5ad(f / "x.h5ad", kind="csr"),
}


def assert_same_result(one, other, *, named=False):
    """Check that two folders hold the same clusters and features; they may bear other names."""
    a, b = load_result(one), load_result(other)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_allclose(a.linkage_matrix_, b.linkage_matrix_)
    assert a.about["chosen"] == pytest.approx(b.about["chosen"])
    assert a.about["data"]["n_missing"] == b.about["data"]["n_missing"]
    mine, others = (r.features.sort_values("position") for r in (a, b))
    np.testing.assert_array_equal(mine["selected"], others["selected"])
    for column in ("effect_size", "loading_1", "mean_cluster_1"):
        np.testing.assert_allclose(mine[column], others[column], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a.selected, b.selected)
    same = ["contrast", "inside", "selected", "p_value", *(["feature"] if named else [])]
    pd.testing.assert_frame_equal(a.markers[same], b.markers[same])
    assert {file.name for file in one.iterdir()} == {file.name for file in other.iterdir()}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Write a result of the same data in memory, without pictures."""
    folder = tmp_path_factory.mktemp("reference")
    file = in_npy(folder / "x.npy")
    arguments = ["mrshc", "cluster", file, "--in-memory", *QUICK, "--out", folder / "out"]
    with pytest.MonkeyPatch.context() as patch, without_pictures():
        patch.setattr(sys, "argv", [str(word) for word in arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert ended.value.code == 0
    return folder / "out"


@pytest.mark.parametrize("home", HOMES)
def test_the_result_is_the_same_wherever_the_data_stay(main, folder, reference, home):
    file = HOMES[home](folder)
    for how in ("--out-of-core", "--in-memory") if home != "npy" else ("--out-of-core",):
        assert main("cluster", file, how, *QUICK, "--out", how) == (0, "", "")
        assert_same_result(Path(how), reference)
        notes = load_result(how).about["data"]["notes"]
        assert any("X is left in its file (58 kB)" in n for n in notes) == (how == "--out-of-core")
    if "AnnData" in home or "h5ad" in home:
        result = load_result("--out-of-core")
        assert list(result.samples.index) == SAMPLES
        assert set(result.features.index) == set(FEATURES)
        assert result.samples["site"].tolist()[:2] == ["Oslo", "Bergen"]
        assert result.features["chromosome"].equals(result.features["position"] - 1)


def test_missing_values_and_other_methods(main, folder):
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    file = in_zarr(folder / "x.zarr", gaps.astype(np.float32))
    for name, options in {
        "association": (),
        "mrshc": ("--paper", "-q", "20", "--max-rank", "2"),
        "shc": ("--method", "shc", "-q", "20"),
        "hmv": ("--method", "hmv", "-q", "20"),
    }.items():
        code, said, _ = main("cluster", file, *options, "--out-of-core", "--out", name)
        assert code == 0
        assert f"{np.isnan(gaps).sum()} of 7,200 values are missing." in said
        assert main("cluster", file, *options, "--in-memory", "--quiet", "--out", "near")[0] == 0
        a, b = load_result(name), load_result("near")
        np.testing.assert_array_equal(a.labels_, b.labels_)
        assert set(a.selected) == set(b.selected)
        assert a.about["data"]["n_missing"] == b.about["data"]["n_missing"] > 0
        shutil.rmtree("near")


def test_the_size_decides(main, folder, monkeypatch):
    file = in_npy(folder / "x.npy")
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * X.nbytes - 1)
    table = read_table(file)
    assert isinstance(table.X, StoredMatrix)
    sentence = "X does not fit into memory (58 kB): it is read in blocks, pass by pass."
    assert sentence in table.notes
    code, said, _ = main("cluster", file, *QUICK[:-1], "--out", "out")
    assert code == 0
    assert sentence in said
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * X.nbytes)
    assert isinstance(read_table(file).X, np.ndarray)
    # A sparse matrix counts as if it were dense.
    file = in_h5ad(folder / "x.h5ad", np.where(X > 2, X, 0), "csc")
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * X.nbytes - 1)
    assert isinstance(read_table(file).X, StoredMatrix)
    np.testing.assert_array_equal(read_table(file).to_frame(), np.where(X > 2, X, 0))


@pytest.mark.parametrize("home", ["npy, features in rows", "zarr", "h5ad, csr"])
def test_another_process_can_read_the_file(folder, home):
    there = pickle.loads(pickle.dumps(read_table(HOMES[home](folder), in_memory=False).X))
    np.testing.assert_array_equal(there[:, 7:90], X[:, 7:90])
    np.testing.assert_array_equal(there.columns(np.array([70, 3])), X[:, [70, 3]])


def test_a_table_in_a_file_is_what_an_estimator_takes(folder):
    table = read_table(in_npy(folder / "x.npy"), in_memory=False)
    far = MrSHC(20, rank=1, random_state=0).fit(table.X)
    near = MrSHC(20, rank=1, random_state=0).fit(X)
    np.testing.assert_array_equal(far.labels_, near.labels_)


# Refusals -------------------------------------------------------------------------------------


def spoilt(where, value):
    values = X.copy()
    values[where] = value
    return values


REFUSED = {
    "steps": (
        lambda f: in_npy(f / "x.npy"),
        ("--log2",),
        "Filters, logarithms and other",
    ),
    "robust": (lambda f: in_npy(f / "x.npy"), ("--robust",), "--robust needs X in memory, but it"),
    "all features": (lambda f: in_npy(f / "x.npy"), ("--method", "hc"), "Method hc takes all"),
    "weights": (lambda f: in_npy(f / "x.npy"), ("--method", "cosa"), "Method cosa takes all"),
    "too many": (
        lambda f: in_npy(f / "x.npy"),
        ("--paper", "-q", "500"),
        "--n-features must be a whole",
    ),
    "rows": (
        lambda f: in_h5ad(f / "x.h5ad", kind="csc"),
        ("--features", "rows"),
        "is sparse with samples in rows: its transpose needs --in-memory",
    ),
    "three dimensions": (
        lambda f: in_npy(f / "x.npy", np.zeros((3, 4, 5))),
        (),
        "must hold a matrix of numbers, but holds an array of float64 with 3 dimensions",
    ),
    "text": (
        lambda f: in_npy(f / "x.npy", np.full((9, 9), "a")),
        (),
        "must hold a matrix of numbers, but holds an array of <U1",
    ),
    "infinity": (
        lambda f: in_npy(f / "x.npy", spoilt((3, 4), np.inf)),
        (),
        "Values must be finite, but {} holds inf",
    ),
    "an empty feature": (
        lambda f: in_npy(f / "x.npy", spoilt((slice(None), 4), np.nan)),
        (),
        "Every feature needs a value, but feature 'feature 5' has none",
    ),
    "an empty sample": (
        lambda f: in_h5ad(f / "x.h5ad", spoilt(7, np.nan)),
        (),
        "Every sample needs a value, but sample 's7' has none",
    ),
    "no Zarr": (lambda f: f / "x.zarr", (), "{} is not a complete Zarr store: "),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_mistakes_get_one_sentence_and_leave_nothing(main, folder, mistake):
    make, options, sentence = REFUSED[mistake]
    if mistake == "no Zarr":
        (folder / "x.zarr").mkdir()
    file = make(folder)
    code, _, said = main("cluster", file, "--out-of-core", *options, "--quiet")
    assert (code, said.count("\n")) == (2, 1)
    assert sentence.format(file) in said
    assert list(folder.iterdir()) == [file]


def test_other_formats_do_not_stay(main, folder):
    pd.DataFrame(X).to_csv("x.csv")
    Path("x.npy.gz").write_bytes(gzip.compress(in_npy(folder / "x.npy").read_bytes()))
    for file in ("x.csv", "x.npy.gz"):
        code, _, said = main("cluster", file, "--out-of-core", *QUICK)
        assert (code, said.count("\n")) == (2, 1)
        assert f"{file} cannot be read in blocks: only .npy, .h5ad and .zarr" in said


def test_a_comparison_needs_memory(main, folder):
    code, _, said = main("compare", in_npy(folder / "x.npy"), "--out-of-core", "--quiet")
    assert (code, said.count("\n")) == (2, 1)
    assert (
        "A comparison needs X in memory, but it is read from its file in blocks. Add --in-memory"
        in said
    )


def test_groups_that_are_not_anndatas(folder):
    zarr.open_group("x.zarr", mode="w").create_array("X", data=X)
    with pytest.raises(TableError, match=r"^x.zarr must hold a matrix X and tables .* no 'obs'"):
        read_table("x.zarr")
    (folder / "x.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(TableError, match=r"is not a complete \.npz file"):
        read_table("x.zip")


def test_rows_that_cannot_be_turned_into_columns(folder, monkeypatch):
    file = in_h5ad(folder / "x.h5ad", kind="csr")
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000)
    with pytest.raises(TableError, match=r"by rows \(csr_matrix\), which needs .* by columns"):
        read_table(file)


@pytest.mark.parametrize(
    ("package", "options", "sentence"),
    [
        ("zarr", (), "x.zarr is a Zarr store, which needs the extra 'zarr': pip install"),
        ("distributed", ("--dask", "tcp://h:1"), "--dask needs the extra 'dask': pip install"),
        ("torch", ("--device", "cpu"), "--device needs the extra 'gpu': pip install"),
        ("array_api_compat", ("--device", "cpu"), "--device needs the extra 'gpu': pip install"),
    ],
)
def test_packages_that_are_missing(main, folder, monkeypatch, package, options, sentence):
    in_zarr(folder / "x.zarr")
    monkeypatch.setitem(sys.modules, package, None)
    code, _, said = main("cluster", "x.zarr", *options, *QUICK)
    assert (code, said.count("\n")) == (2, 1)
    assert sentence in said


# Faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["npy", "h5ad", "zarr, archive"])
@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
def test_files_that_are_cut(main, folder, home, how):
    file = HOMES[home](folder)
    os.truncate(file, file.stat().st_size // 2)
    code, _, said = main("cluster", file, how, *QUICK)
    assert (code, said.count("\n")) == (2, 1)
    assert f"{file} is not a complete " in said
    assert list(folder.iterdir()) == [file]


@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
def test_a_chunk_that_cannot_be_decoded(main, folder, how):
    file = in_zarr(folder / "x.zarr")
    chunk = file / "c" / "0" / "3"
    chunk.write_bytes(chunk.read_bytes()[::-1])
    code, _, said = main("cluster", file, how, *QUICK)
    assert (code, said.count("\n")) == (2, 1)
    if how == "--out-of-core":
        assert "mrshc: Columns 48 to 63 of " in said
        assert "cannot be read: " in said
    else:
        assert "x.zarr is not a complete Zarr store: " in said
    assert list(folder.iterdir()) == [file]


def test_a_file_that_breaks_during_the_run_leaves_the_old_result(main, folder, monkeypatch):
    file = in_zarr(folder / "x.zarr")
    assert main("cluster", file, "--out-of-core", *QUICK, "--out", "out")[0] == 0
    before = {f.name: f.read_bytes() for f in Path("out").iterdir()}
    read, calls = zarr.Array.__getitem__, []

    def fails_late(self, index):
        calls.append(index)
        if len(calls) > 30:
            raise RuntimeError("the disk is gone")
        return read(self, index)

    monkeypatch.setattr(zarr.Array, "__getitem__", fails_late)
    code, _, said = main("cluster", file, "--out-of-core", *QUICK, "--out", "out", "--overwrite")
    assert (code, said.count("\n")) == (2, 1)
    assert "cannot be read: the disk is gone. Check that the file is complete" in said
    assert {f.name: f.read_bytes() for f in Path("out").iterdir()} == before
    assert {f.name for f in folder.iterdir()} == {"x.zarr", "out"}


# Elsewhere ------------------------------------------------------------------------------------


def test_workers_of_a_cluster(main, folder, reference):
    file = in_zarr(folder / "x.zarr")
    # One worker process: passes over the chunks of several workers are tested with Dask arrays.
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", protocol="tcp"
    ) as cluster:
        address = cluster.scheduler_address
        given = ("--dask", address, *QUICK)
        code, said, wrong = main("cluster", file, *given[:-1], "--out", "out")
        assert (code, wrong) == (0, "")
        assert f"Fitting on the workers of {address}." in said
        assert_same_result(Path("out"), reference)
        # What cannot be read there is said here.
        chunk = file / "c" / "0" / "3"
        chunk.write_bytes(chunk.read_bytes()[::-1])
        code, _, said = main("cluster", file, *given, "--out", "broken")
        assert (code, said.count("\n")) == (2, 1)
        assert said.startswith("mrshc: Columns 48 to 63 of file://")
        assert said.count("cannot be read") == 1
        # Of a text table, only the search is spread.
        pd.DataFrame(X).to_csv("x.csv", index=False)
        assert main("cluster", "x.csv", *given, "--out", "text") == (0, "", "")
        assert_same_result(Path("text"), reference)
    assert not Path("broken").exists()


def test_a_cluster_that_is_lost(main, folder, monkeypatch):
    file = in_npy(folder / "x.npy")
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", protocol="tcp"
    ) as cluster:

        def lost(*_):
            raise CommClosedError("the network is down.")

        monkeypatch.setattr(execution_backends, "_to_workers", lost)
        code, _, said = main("cluster", file, "--dask", cluster.scheduler_address, *QUICK)
    assert (code, said.count("\n")) == (2, 1)
    assert f"The cluster at {cluster.scheduler_address} is lost: the network is down. S" in said
    assert list(folder.iterdir()) == [file]


@contextmanager
def scheduler_without_workers():
    """Run a scheduler in another thread and yield its address.

    A LocalCluster would fail if its thread did not start within 10 seconds, which can happen on a
    busy machine, and would not be closed then.
    """
    address, closing = Future(), Future()

    async def serve():
        try:
            async with distributed.Scheduler(
                host="127.0.0.1", protocol="tcp", port=0, dashboard=False
            ) as scheduler:
                address.set_result(scheduler.address)
                await asyncio.wrap_future(closing)
        except BaseException as error:
            if not address.done():
                address.set_exception(error)
            raise

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield address.result()
    finally:
        closing.set_result(None)
        thread.join()


def test_schedulers_that_do_not_answer(main, folder, monkeypatch):
    monkeypatch.setattr(execution_backends, "_CONNECTION_TIMEOUT", 0.3)
    file = in_npy(folder / "x.npy")
    for address in ("tcp://127.0.0.1:9", "here"):
        code, _, said = main("cluster", file, "--dask", address, *QUICK)
        assert (code, said.count("\n")) == (2, 1)
        assert f"No Dask scheduler answers at {address!r}: " in said
    # A scheduler that does answer, even if that takes long.
    monkeypatch.setattr(execution_backends, "_CONNECTION_TIMEOUT", 3)
    with scheduler_without_workers() as address:
        code, _, said = main("cluster", file, "--dask", address, *QUICK)
        assert (code, said.count("\n")) == (2, 1)
        assert "has no workers. Start some" in said


@pytest.mark.parametrize("home", ["npy, features in rows", "h5ad, csc", "csv"])
def test_a_device(main, folder, reference, home):
    if home == "csv":
        file = folder / "x.csv"
        pd.DataFrame(X).to_csv(file, index=False)
    else:
        file = HOMES[home](folder)
    code, said, _ = main("cluster", file, "--device", "cpu", *QUICK[:-1], "--out", "out")
    assert code == 0
    assert "  Fitting on cpu." in said
    assert_same_result(Path("out"), reference)


def test_a_device_after_preparing_the_data(main, folder):
    file = in_npy(folder / "x.npy", np.exp2(X))
    given = ("--log2", "--top-variance", "90", *QUICK, "--out")
    assert main("cluster", file, "--device", "cpu", *given, "there")[0] == 0
    assert main("cluster", file, *given, "here")[0] == 0
    assert_same_result(Path("there"), Path("here"), named=True)


def test_devices_that_are_not_there(main, folder):
    file = in_npy(folder / "x.npy")
    for name in ("abacus", "meta", *([] if torch.cuda.is_available() else ["cuda"])):
        code, _, said = main("cluster", file, "--device", name, *QUICK)
        assert (code, said.count("\n")) == (2, 1)
        assert f"There is no device {name!r} that can be used: " in said
    code, _, said = main("cluster", file, "--device", "cpu", "--robust", *QUICK)
    assert (code, said.count("\n")) == (2, 1)
    assert "--robust needs X in memory, but it is stored elsewhere" in said
    code, _, said = main("cluster", file, "--device", "cpu", "--dask", "tcp://h:1", *QUICK)
    assert (code, said) == (
        2,
        "mrshc: --dask and --device cannot be combined. Leave one of them out.\n",
    )


def test_devices_with_too_little_memory(folder, monkeypatch):
    source = read_table(in_npy(folder / "x.npy"), in_memory=False).X

    def full(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with open_backend(device="cpu") as place:
        monkeypatch.setattr(torch, "empty", full)
        said = r"^The memory of cpu does not suffice for X\. Leave --device out"
        with pytest.raises(UserError, match=said), place.activate():
            place.transfer(source)
