"""Whatever the parts of a sparse matrix are, it is read as they say, or refused in one sentence.

What they say is worked out here a second time, cell by cell and with every bound checked.
"""

import os
import warnings

import h5py
import numpy as np
import pytest
from scipy import sparse

from mrshc.core.data.files import UnreadableError
from mrshc.io import TableError, read_table

pytestmark = pytest.mark.slow

# 3,000 are run by hand.
CASES, PARTS = int(os.environ.get("MRSHC_FUZZ_CASES", "90")), 4
SHARES = {"files": 0.67, "bytes": 0.33}

NUMBERS = (-(2**31), -3, -1, 0, 1, 2, 3, 5, 6, 7, 99, 2**31 - 1)
TYPES = ("f8", "f4", "f2", ">f8", "i1", "i2", "i4", ">i4", "i8", "u1", "u4", "u8", "?", "c16", "S4")
parts = pytest.mark.parametrize("part", range(PARTS))


def n_cases(kind):
    return max(int(CASES * SHARES[kind]) // PARTS, 1)


def whole(rng):
    """Return the parts of a matrix as they should be."""
    n, p = int(rng.integers(3, 7)), int(rng.integers(2, 8))
    A = rng.integers(-9, 9, size=(n, p)) * (rng.random((n, p)) < 0.5)
    kind = str(rng.choice(["csr", "csc"]))
    matrix = getattr(sparse, f"{kind}_array")(A.astype(float))
    return kind, {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}, (n, p)


def changed(array, rng):
    """Return an array in which something is not as it was."""
    at, kind = int(rng.integers(max(array.size, 1))), int(rng.integers(8))
    number = np.array(rng.choice(NUMBERS)).astype(array.dtype)
    if kind <= 2 and array.size:
        array = array.copy()
        array[at] = number
    elif kind == 3:
        array = np.delete(array, at) if array.size else array
    elif kind == 4:
        array = np.insert(array, min(at, array.size), number)
    elif kind == 5:
        array = rng.permutation(array)
    elif kind == 6:
        array = array.astype(rng.choice(TYPES))
    elif rng.random() < 0.3:
        array = array.reshape(-1, 1)
    elif array.size > 1:
        array = array.copy()
        array[at] = array[at - 1]  # a cell twice
    return array


def broken(rng):
    kind, content, shape = whole(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that no longer fit
        for _ in range(rng.integers(3)):
            name = str(rng.choice(list(content)))
            content[name] = changed(content[name], rng)
    return kind, content, shape


def expected(kind, content, shape):
    """Return the matrix that parts stand for, None if they do not agree."""
    data, indices, indptr = (content[name] for name in ("data", "indices", "indptr"))
    if any(part.ndim != 1 for part in content.values()) or data.dtype.kind not in "fiub":
        return None
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        return None
    values, places, ends = data.tolist(), indices.tolist(), indptr.tolist()
    n_major, n_minor = shape if kind == "csr" else shape[::-1]
    if len(ends) != n_major + 1 or not len(values) == len(places) == ends[-1] or ends[0] != 0:
        return None
    A = [[0.0] * n_minor for _ in range(n_major)]
    for i in range(n_major):
        if ends[i] > ends[i + 1]:
            return None
        for cell in range(ends[i], ends[i + 1]):
            if not 0 <= cell < len(places) or not 0 <= places[cell] < n_minor:
                return None
            A[i][places[cell]] += float(values[cell])
    return np.array(A) if kind == "csr" else np.array(A).T


def read_or_refused(read):
    """Return what is read, or the sentence that it is refused with."""
    try:
        return read()
    except (TableError, UnreadableError, ValueError) as error:
        return str(error)


def checked(read, wanted):
    """Check what is read, or that it is refused; return whether it was read."""
    found = read_or_refused(read)
    if isinstance(found, str):
        assert wanted is None, found
        assert found.startswith(("X must", "Column", "/", "<"))  # and not what a library says
        assert found.count("\n") == 0
        assert found.endswith(".")
        return False
    assert wanted is not None
    np.testing.assert_array_equal(found, wanted)
    return True


def put(group, kind, content, shape):
    group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": list(shape)})
    for name, values in content.items():
        group[name] = values


def annotate(file, shape):
    for name, size in zip(("obs", "var"), shape, strict=True):
        frame = file.create_group(name)
        frame.attrs.update({"_index": "names", "column-order": ["about"]})
        frame["names"], frame["about"] = [f"{name} {i}" for i in range(size)], np.arange(size)


def table_of(path, in_memory):
    return lambda: read_table(path, in_memory=in_memory).to_frame()


@parts
def test_files_of_anndata(part, tmp_path):
    rng, n_read = np.random.default_rng([2, part]), 0
    for i in range(n_cases("files")):
        kind, content, shape = broken(rng)
        path = tmp_path / f"{i}.h5ad"  # another name: a table holds its file open
        with h5py.File(path, "w") as file:
            put(file.create_group("X"), kind, content, shape)
            annotate(file, shape)
        wanted = expected(kind, content, shape)
        for in_memory in (True, False):
            n_read += checked(table_of(path, in_memory), wanted)
        path.unlink()
    assert 0 < n_read < 2 * n_cases("files")


def edited(content, rng):
    """Return a file in which some bytes are others, often of a collection of texts."""
    data = bytearray(content)
    texts = content.find(b"GCOL")
    first = texts if texts >= 0 and rng.random() < 0.5 else 0
    for at in rng.integers(first, len(data), size=rng.integers(1, 6)):
        data[at] = rng.choice([0, 1, 255, rng.integers(256)])
    return bytes(data)


@parts
@pytest.mark.filterwarnings("ignore")  # libraries may warn of what they read
def test_bytes_of_files(part, tmp_path):
    rng, n_read = np.random.default_rng([3, part]), 0
    for i in range(n_cases("bytes")):
        path = tmp_path / f"{i}.h5ad"
        with h5py.File(path, "w") as file:
            kind, content, shape = whole(rng)
            put(file.create_group("X"), kind, content, shape)
            annotate(file, shape)
        path.write_bytes(edited(path.read_bytes(), rng))
        for in_memory in (True, False):
            found = read_or_refused(table_of(path, in_memory))
            if isinstance(found, str):
                assert found.startswith((str(path), "Column"))
                assert found.count("\n") == 0
                assert found.endswith(".")
            n_read += not isinstance(found, str)
        path.unlink()
    assert 0 < n_read < 2 * n_cases("bytes")
