"""Files of AnnData in HDF5 and Zarr that are damaged or incomplete are refused in one sentence."""

import gzip
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse

from mrshc.app.cli import main
from mrshc.core.data.files import UnreadableError
from mrshc.io import TableError, read_table

ORACLES = Path(__file__).parents[1] / "oracles"

N, P = 6, 9


def numbers():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, P)).round(2) * (rng.random((N, P)) < 0.6)


def write(group, name, values):
    if not isinstance(group, zarr.Group):
        group[name] = values
    elif np.asarray(values).dtype.kind == "U":
        array = group.create_array(name, shape=np.shape(values), dtype=str)
        array[...] = np.array(values, dtype=object)
    else:
        group.create_array(name, data=np.asarray(values))


def annotate(root, kind="csr", *, values=None):
    """Write X, obs and var as AnnData does."""
    values = numbers() if values is None else values
    if kind == "dense":
        write(root, "X", values)
    else:
        matrix = getattr(sparse, f"{kind}_array")(values)
        group = root.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": list(values.shape)})
        for part in ("data", "indices", "indptr"):
            write(group, part, getattr(matrix, part))
    for name, size in (("obs", values.shape[0]), ("var", values.shape[1])):
        frame = root.create_group(name)
        frame.attrs.update({"_index": "_index", "column-order": ["about", "class"]})
        write(frame, "_index", [f"{name} {i}" for i in range(size)])
        write(frame, "about", np.arange(size))
        inner = frame.create_group("class")
        inner.attrs["encoding-type"] = "categorical"
        write(inner, "categories", ["u", "v"])
        write(inner, "codes", (np.arange(size) % 3 - 1).astype(np.int8))
    return root


@pytest.fixture(params=["h5ad", "zarr"])
def root(request, tmp_path):
    """Return an HDF5 or Zarr store that can be written to."""
    if request.param == "zarr":
        yield zarr.open_group(tmp_path / "x.zarr", mode="w")
    else:
        with h5py.File(tmp_path / "x.h5ad", "w") as file:
            yield file


def path_of(root):
    if isinstance(root, zarr.Group):
        return root.store_path.store.root
    root.flush()
    name = root.filename
    root.close()
    return name


def replace(group, name, values):
    del group[name]
    write(group, name, values)


def check_refused(root, message, **options):
    with pytest.raises(TableError, match=message) as raised:
        read_table(path_of(root), **options)
    assert str(raised.value).count("\n") == 0
    return str(raised.value)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_complete_file(root, kind, in_memory):
    table = read_table(path_of(annotate(root, kind)), in_memory=in_memory)
    np.testing.assert_array_equal(table.to_frame(), numbers())
    assert list(table.sample_names[:2]) == ["obs 0", "obs 1"]
    assert table.feature_annotations["class"].fillna("?").tolist()[:4] == ["?", "u", "v", "?"]
    assert not any("absent" in note for note in table.notes)


# ---- sparse matrices


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("index", [10**6, -1])
def test_an_index_out_of_range(root, kind, index, in_memory):
    group = annotate(root, kind)["X"]
    indices = group["indices"][:]
    indices[3] = index
    replace(group, "indices", indices)
    with pytest.raises(
        (TableError, UnreadableError), match=r"x\.(h5ad|zarr).* must be (between|< |>= 0)"
    ):
        read_table(path_of(root), in_memory=in_memory).to_frame()


def test_the_command_line_reports_damage_in_one_sentence(tmp_path, capsys, monkeypatch):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "csc")["X/indices"][3] = -1
    monkeypatch.chdir(tmp_path)
    between = "must be between 0 and 5, but one of them is -1"
    for options, reason in (([], between), (["--out-of-core"], "indices must be >= 0")):
        monkeypatch.setattr("sys.argv", ["mrshc", "cluster", "x.h5ad", "--quiet", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        message = capsys.readouterr().err
        assert ended.value.code == 2
        assert "x.h5ad" in message
        assert reason in message
        assert "Traceback" not in message


SPARSE = {
    "shape": (lambda X: X.attrs.__setitem__("shape", [N]), "'shape' must be two whole numbers"),
    "shape below zero": (lambda X: X.attrs.__setitem__("shape", [-N, P]), "'shape' must be two"),
    "shape as text": (lambda X: X.attrs.__setitem__("shape", "6 x 9"), "'shape' must be two"),
    "no shape": (lambda X: X.attrs.__delitem__("shape"), "'shape' must be two whole numbers"),
    "huge": (lambda X: X.attrs.__setitem__("shape", [10**9, 10**9]), "indptr must have length"),
    "no data": (lambda X: X.__delitem__("data"), "its data are missing"),
    "float": (lambda X: replace(X, "indices", X["indices"][:] * 1.0), "indices must be whole"),
    "complex": (lambda X: replace(X, "data", X["data"][:] * 1j), "holds an array of complex"),
    "kind": (lambda X: X.attrs.__setitem__("encoding-type", "dict"), "holds X as a group of kind"),
}


@pytest.mark.parametrize(
    ("root", "name"),
    [*(("h5ad", name) for name in SPARSE), ("zarr", "shape as text"), ("zarr", "no data")],
    indirect=["root"],
)
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_sparse_matrix_that_is_damaged(root, name, in_memory):
    change, message = SPARSE[name]
    change(annotate(root)["X"])
    check_refused(root, message, in_memory=in_memory)


def test_a_shape_larger_than_the_values_in_the_file(root):
    annotate(root, "csc")["X"].attrs["shape"] = [10**12, P]
    check_refused(root, r"its shape must fit the number of its values, but is \(1000000000000, 9\)")


def test_repeated_cells_are_summed_in_memory_and_in_blocks(root):
    group = annotate(root, "csc", values=np.zeros((N, P)))["X"]
    replace(group, "data", np.array([100, 100, 7], np.int8))
    replace(group, "indices", np.array([5, 5, 0], np.int32))
    replace(group, "indptr", np.array([0, 3, 3, 3, 3, 3, 3, 3, 3, 3], np.int64))
    path = path_of(root)
    for in_memory in (True, False):
        X = read_table(path, in_memory=in_memory).to_frame().to_numpy()
        assert X[:, 0].tolist() == [7, 0, 0, 0, 0, 200]
        assert not X[:, 1:].any()


# ---- names and annotations

FRAMES = {
    "no _index": (lambda f: f.attrs.__delitem__("_index"), "obs has no attribute '_index'"),
    "_index of numbers": (lambda f: f.attrs.__setitem__("_index", 3), "'_index' .* name"),
    "_index of nothing": (lambda f: f.attrs.__setitem__("_index", "no"), "obs has no member 'no'"),
    "_index outside": (lambda f: f.attrs.__setitem__("_index", "../../x"), "has no member"),
    "names in a matrix": (lambda f: replace(f, "_index", np.ones((N, 2))), r"shape \(6, 2\)"),
    "names that are floats": (lambda f: replace(f, "_index", np.ones(N)), "must be text"),
    "too few names": (lambda f: replace(f, "_index", ["a", "b"]), "for 2 samples and 9 features"),
    "names in a group": (lambda f: f.attrs.__setitem__("_index", "class"), "must be text"),
    "no order": (lambda f: f.attrs.__delitem__("column-order"), "no attribute 'column-order'"),
    "order of numbers": (lambda f: f.attrs.__setitem__("column-order", [1]), "'column-order'"),
    "absent column": (
        lambda f: f.attrs.__setitem__("column-order", ["about", "no"]),
        "obs has no member 'no'",
    ),
    "short column": (
        lambda f: replace(f, "about", np.arange(4)),
        r"'obs/about' must have a value for each of 6, but has shape \(4,\)",
    ),
    "a column in a matrix": (lambda f: replace(f, "about", np.ones((N, 2))), "for each of 6"),
    "code too large": (lambda f: replace(f["class"], "codes", [0, 1, 2, 0, 1, 0]), "in -1 to 1"),
    "code below -1": (lambda f: replace(f["class"], "codes", [0, 1, -2, 0, 1, 0]), "in -1 to 1"),
    "codes that are floats": (lambda f: replace(f["class"], "codes", np.ones(N)), "whole numbers"),
    "too few codes": (lambda f: replace(f["class"], "codes", [0, 1]), "for each of 6"),
    "no codes": (lambda f: f["class"].__delitem__("codes"), "has no member 'codes'"),
    "no mask": (
        lambda f: f["class"].attrs.__setitem__("encoding-type", "nullable-integer"),
        "has no member 'values'",
    ),
}


@pytest.mark.parametrize(
    ("root", "name"),
    [*(("h5ad", name) for name in FRAMES), ("zarr", "_index outside"), ("zarr", "short column")],
    indirect=["root"],
)
def test_names_and_annotations_that_do_not_fit(root, name):
    change, message = FRAMES[name]
    change(annotate(root)["obs"])
    check_refused(root, message)


def test_an_array_in_place_of_obs(root):
    annotate(root)
    replace(root, "obs", np.ones(N))
    check_refused(root, "holds 'obs' as an array")


def test_annotations_of_unknown_kinds_are_left_out(root):
    frame = annotate(root)["obs"]
    frame.create_group("nested").create_group("more")
    frame.attrs["column-order"] = ["about", "nested"]
    table = read_table(path_of(root))
    assert list(table.sample_annotations) == ["about"]
    assert any("'obs/nested'" in note and "left out" in note for note in table.notes)


def test_categories_that_refer_to_themselves(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        inner = annotate(file)["obs/class"]
        del inner["categories"]
        inner["categories"] = inner
        check_refused(file, "'obs/class/categories' must be an array")


def test_names_and_annotations_of_unsupported_types(tmp_path):
    for name, message in (("_index", "must be text"), ("about", None)):
        with h5py.File(tmp_path / "x.h5ad", "w") as file:
            frame = annotate(file)["obs"]
            del frame[name]
            frame.create_dataset(name, (N,), h5py.vlen_dtype(np.uint8))[0] = [1, 2]
        if message is None:
            assert list(read_table(tmp_path / "x.h5ad").sample_annotations) == ["class"]
        else:
            with pytest.raises(TableError, match=message):
                read_table(tmp_path / "x.h5ad")


# ---- references to other files


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.h5ad"
    with h5py.File(path, "w") as file:
        annotate(file, "dense")
    return str(path)


LINKS = {
    "X": lambda file, other: file.__setitem__("X", h5py.ExternalLink(other, "/X")),
    "obs": lambda file, other: file.__setitem__("obs", h5py.ExternalLink(other, "/obs")),
    "obs/about": lambda file, other: file.__setitem__(
        "obs/about", h5py.ExternalLink(other, "/obs/about")
    ),
    "obs/_index": lambda file, other: file.__setitem__(
        "obs/_index", h5py.ExternalLink(f"{other}.absent", "/X")
    ),
    "obs/class/codes": lambda file, other: file.__setitem__(
        "obs/class/codes", h5py.ExternalLink(other, "/obs/class/codes")
    ),
    "var": lambda file, other: (
        file.__setitem__("elsewhere", h5py.ExternalLink(other, "/")),
        file.__setitem__("var", h5py.SoftLink("/elsewhere/var")),
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", LINKS)
def test_links_to_other_files_are_refused(tmp_path, other, name, packed):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "dense")
        del file[name]
        LINKS[name](file, other)
    path = tmp_path / "x.h5ad"
    if packed:
        path = tmp_path / "x.h5ad.gz"
        path.write_bytes(gzip.compress((tmp_path / "x.h5ad").read_bytes()))
    for in_memory in (None, True) if packed else (None, True, False):
        with pytest.raises(TableError, match=r"x\.h5ad.* refers to another file: .*into one file"):
            read_table(path, in_memory=in_memory)


def test_values_in_other_files_are_refused(tmp_path, other):
    layout = h5py.VirtualLayout((N, P), float)
    layout[:] = h5py.VirtualSource(other, "X", (N, P))
    for made, message in (
        (lambda f: f.create_virtual_dataset("X", layout), "X as a virtual dataset"),
        (
            lambda f: f.create_dataset("X", (N, P), float, external=[(other, 0, 8 * N * P)]),
            "keeps the values of /X in another file",
        ),
    ):
        with h5py.File(tmp_path / "x.h5ad", "w") as file:
            annotate(file, "dense")
            del file["X"]
            made(file)
        for in_memory in (True, False):
            with pytest.raises(TableError, match=rf"x\.h5ad .*{message}.*into one file"):
                read_table(tmp_path / "x.h5ad", in_memory=in_memory)


@pytest.mark.parametrize("in_memory", [True, False])
def test_links_within_a_file_are_followed(tmp_path, in_memory):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "dense")
        file.move("X", "layers/counts")
        file["X"] = h5py.SoftLink("layers/counts")
    table = read_table(tmp_path / "x.h5ad", in_memory=in_memory)
    np.testing.assert_array_equal(table.to_frame(), numbers())


def test_a_link_to_itself(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "dense")
        del file["X"]
        file["X"] = h5py.SoftLink("/X")
        check_refused(file, "'X' as a link that leads to itself")


def test_links_out_of_a_zarr_folder_are_refused(tmp_path):
    write(zarr.open_group(tmp_path / "other.zarr", mode="w"), "X", numbers() + 1)
    write(zarr.open_group(tmp_path / "x.zarr", mode="w"), "X", numbers())
    chunk = tmp_path / "x.zarr" / "X" / "c" / "0" / "0"
    chunk.unlink()
    chunk.symlink_to(tmp_path / "other.zarr" / "X" / "c" / "0" / "0")
    with pytest.raises(TableError, match=r"x\.zarr holds the link .*X/c/0/0.* cp -rL"):
        read_table(tmp_path / "x.zarr")


def test_pickled_objects_of_zarr_are_refused(tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=numbers(), zarr_format=2, compressors=None)
    about = json.loads((path / ".zarray").read_text())
    about |= {"dtype": "|O", "fill_value": None}
    about |= {"filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}]}
    (path / ".zarray").write_text(json.dumps(about))
    with pytest.raises(TableError, match=r"x\.zarr .*pickled objects"):
        read_table(path)


# ---- parts that are absent


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("fill", [0.0, 7.0])
def test_chunks_that_are_absent_are_counted(tmp_path, in_memory, zarr_format, fill):
    path = tmp_path / "x.zarr"
    options = {"chunks": (2, 4), "dtype": float, "zarr_format": zarr_format, "fill_value": fill}
    array = zarr.create_array(path, shape=(N, P), **options)
    values = numbers() + 10
    array[...] = values
    for i, j in ((0, 0), (2, 1)):
        (path / (f"c/{i}/{j}" if zarr_format == 3 else f"{i}.{j}")).unlink()
        values[2 * i : 2 * i + 2, 4 * j : 4 * j + 4] = fill
    table = read_table(path, in_memory=in_memory, features="columns")
    np.testing.assert_array_equal(table.to_frame(), values)
    assert f"2 of 9 chunks of X are absent and are read as the fill value {fill:g}." in table.notes


def test_absent_chunks_of_an_archive_of_hdf5_and_of_sparse_matrices(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "x.zarr.zip", mode="w") as store:
        array = zarr.create_array(store, shape=(N, P), chunks=(3, P), dtype=float)
        array[:3] = 1 + numbers()[:3]
    note = "1 of 2 chunks of X are absent and are read as the fill value 0."
    assert note in read_table(tmp_path / "x.zarr.zip").notes
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "dense")
        del file["X"]
        file.create_dataset("X", (N, P), float, chunks=(3, P))[:3] = 1
    assert note in read_table(tmp_path / "x.h5ad").notes
    root = annotate(zarr.open_group(tmp_path / "y.zarr", mode="w"), "csc")
    cells = root["X/data"][:]
    del root["X/data"]
    array = root["X"].create_array("data", shape=cells.shape, chunks=(8,), dtype=float)
    array[:20] = 1
    n_chunks = -(-cells.size // 8)
    note = f"{n_chunks - 3} of {n_chunks} chunks of X/data are absent and are read as the fill "
    assert any(n.startswith(note) for n in read_table(tmp_path / "y.zarr").notes)


@pytest.mark.parametrize("chunks", [None, (2, 3)])
def test_a_dataset_that_was_never_written(tmp_path, chunks):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "dense")
        del file["X"]
        file.create_dataset("X", (N, P), float, chunks=chunks)
        check_refused(file, r"x\.h5ad declares X with 6 x 9 values, but holds none of them")


@pytest.mark.parametrize("shape", [(N, P), (10**7, 10**9)])
def test_an_array_that_was_never_written(tmp_path, shape):
    zarr.create_array(tmp_path / "x.zarr", shape=shape, chunks=shape, dtype=float)
    with pytest.raises(TableError, match=r"declares X with [\d,]+ x [\d,]+ values, but holds none"):
        read_table(tmp_path / "x.zarr")


@pytest.mark.parametrize("chunk", [(3, 2), (10**7, 10**9)])
def test_more_values_than_a_file_can_hold(tmp_path, chunk):
    path = tmp_path / "x.zarr"
    zarr.create_array(path, shape=(10**7, 10**9), chunks=chunk, dtype=float)
    (path / "c" / "0").mkdir(parents=True)
    (path / "c" / "0" / "0").write_bytes(b"\0" * 99)
    with pytest.raises(TableError, match=r"declares .* values, more than the 99 bytes .* can hold"):
        read_table(path)


def test_names_larger_than_the_file(root):
    frame = annotate(root, "csc", values=np.zeros((10**7, 2)).astype(bool)[:6])["obs"]
    root["X"].attrs["shape"] = [10**6, 2]
    del frame["_index"]
    if isinstance(root, zarr.Group):
        frame.create_array("_index", shape=(10**6,), chunks=(10**6,), dtype=str)
    else:
        frame.create_dataset("_index", (10**6,), h5py.string_dtype(), chunks=(10**6,))
    check_refused(root, r"declares obs/_index with 1,000,000 values, but holds none of them")


def test_categories_larger_than_the_file(root):
    inner = annotate(root)["obs/class"]
    del inner["categories"]
    if isinstance(root, zarr.Group):
        inner.create_array("categories", shape=(10**9,), chunks=(10**9,), dtype="i8")
    else:
        inner.create_dataset("categories", (10**9,), "i8", chunks=(10**6,))
    check_refused(root, "declares obs/class/categories with 1,000,000,000 values, but holds none")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_links_are_refused_without_opening_what_they_lead_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # to open it would wait for ever
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "dense")
        del file["obs"]
        file["obs"] = h5py.ExternalLink(str(tmp_path / "pipe"), "/obs")
        check_refused(file, "refers to another file")


def test_a_sparse_matrix_larger_than_the_memory_through_a_pipe(tmp_path, monkeypatch):
    monkeypatch.setattr("mrshc.io.memory.free_memory", lambda: 8 * N * P - 1)
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        annotate(file, "csc")
    (tmp_path / "x.h5ad.gz").write_bytes(gzip.compress((tmp_path / "x.h5ad").read_bytes()))
    for name, options in (("x.h5ad.gz", {}), ("x.h5ad", {"in_memory": True})):
        with pytest.raises(TableError, match=r"needs 432 bytes of memory as .* but 431 bytes"):
            read_table(tmp_path / name, **options)
