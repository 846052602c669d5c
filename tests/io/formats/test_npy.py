"""Arrays of numpy keep their precision; incomplete files are refused."""

import gzip
import io

import numpy as np
import pytest

from mrshc.io import TableError, read_table


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, ">f8"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_numpy_arrays(write, dtype, compress):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    buffer = io.BytesIO()
    np.save(buffer, values)
    table = read_table(write(compress(buffer.getvalue())))
    np.testing.assert_array_equal(table.X, values.T)
    assert table.X.dtype == (np.float32 if dtype is np.float32 else np.float64)


def npy(header, content=b""):
    text = repr(header).encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


@pytest.mark.parametrize(
    "shape", [(10**7, 10**9), (10**12, 10**12), (2**32, 2**32), (-3, -4), (6, 9), (6.0, 9), 5, "a"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_an_array_with_fewer_values_than_declared(tmp_path, shape, packed):
    content = npy({"descr": "<f8", "fortran_order": False, "shape": shape}, b"\0" * 96)
    path = tmp_path / "x.npy"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(TableError, match=r"is not a complete \.npy file of numbers: "):
        read_table(path)
