"""Arrays of other packages are divided into large blocks and copied only column by column."""

import array_api_strict
import numpy as np
import pytest
import torch

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.device_array import DeviceMatrix, is_device_array
from mrshc.core.data.host_transfer import to_device_of, to_host


def block_range(block, start, _xp):
    return start, start + block.shape[1]


@pytest.mark.parametrize(
    ("n", "p", "ends"),
    [
        (1 << 24, 9, [4, 8, 9]),  # 256 MB, more than a quarter of the array
        (1 << 26, 12, [3, 6, 9, 12]),  # a quarter of the array
        (1 << 26, 17, [4, 8, 12, 16, 17]),
        (1 << 26, 20, [4, 8, 12, 16, 20]),  # 1 GB, less than a quarter
        ((1 << 26) + 1, 17, [3, 6, 9, 12, 15, 17]),
        (1 << 27, 2, [1, 2]),  # one column is never divided
        (1 << 29, 2, [1, 2]),
        (3, 5, [5]),
        (0, 5, [5]),
    ],
)
def test_blocks_are_a_quarter_of_the_array_within_limits(n, p, ends):
    matrix = DeviceMatrix(torch.zeros((1, 1)).expand(n, p))  # without memory for all values
    assert list(matrix.map_blocks(block_range)) == list(zip([0, *ends[:-1]], ends, strict=True))


@pytest.mark.parametrize(
    ("dtype", "expected", "is_integer"),
    [
        (torch.float16, np.float32, False),
        (torch.float32, np.float32, False),
        (torch.float64, np.float64, False),
        (torch.int8, np.float64, True),
        (torch.uint8, np.float64, True),
        (torch.bool, np.float64, False),
    ],
)
def test_types_of_blocks(dtype, expected, is_integer):
    matrix = DeviceMatrix(torch.ones((3, 4), dtype=dtype))
    assert matrix.dtype == expected
    assert matrix.holds_integers is is_integer
    assert matrix.has_local_blocks is False
    assert matrix.in_memory is False
    assert matrix.certification == "immediate"
    assert matrix.columns(np.array([0])).dtype == expected


def test_blocks_of_the_right_type_are_not_copied():
    X = torch.ones((3, 4))
    (pointer,) = DeviceMatrix(X).map_blocks(lambda block, _start, _xp: block.data_ptr())
    assert pointer == X.data_ptr()


def test_arrays_of_other_packages_are_recognised():
    assert is_device_array(torch.ones(3))
    assert is_device_array(array_api_strict.ones(3))
    for X in ([[1.0]], None, torch.nn.Linear(2, 2)):
        assert not is_device_array(X)


@pytest.mark.parametrize(("indices", "columns"), [([2], "Column 2"), ([1, 3], "Columns 1 to 3")])
def test_columns_that_cannot_be_copied_are_named(indices, columns):
    matrix = DeviceMatrix(torch.ones((3, 0)))
    with pytest.raises(
        UnreadableError, match=rf"(?s)^{columns} of the torch array cannot be read: .* free memory"
    ):
        matrix.columns(np.array(indices))


class Failing(torch.Tensor):
    """A tensor whose second block cannot be read."""

    def __getitem__(self, where):
        if where[1].start == 2:
            raise RuntimeError("out of memory")
        return torch.ones((3, 2))


def test_blocks_that_cannot_be_read_are_named(monkeypatch):
    monkeypatch.setattr("mrshc.core.data.device_array._BLOCK_CELLS", 6)
    matrix = DeviceMatrix(torch.ones((3, 5)))
    monkeypatch.setattr(matrix, "_array", torch.ones((3, 5)).as_subclass(Failing))
    blocks = matrix.map_blocks(block_range)
    assert next(blocks) == (0, 2)
    with pytest.raises(UnreadableError, match=r"^Columns 2 to 3 of the torch .*: out of memory"):
        next(blocks)


class OnDevice:
    """Stand-in for an array of CuPy, which is copied to main memory by its method `get`."""

    def __init__(self, values):
        self._values = values

    def get(self):
        """Return the array in main memory."""
        return self._values


def test_arrays_are_copied_to_and_from_their_device():
    A = np.arange(6.0).reshape(2, 3)
    assert to_host(A) is A
    assert to_host(OnDevice(A)) is A
    for array in (torch.from_numpy(A), array_api_strict.asarray(A)):
        host = to_host(array)
        assert type(host) is np.ndarray
        np.testing.assert_array_equal(host, A)
    assert to_device_of(A, A, np) is A
    moved = to_device_of(torch.ones(1), A, torch)
    assert isinstance(moved, torch.Tensor)
    np.testing.assert_array_equal(moved.numpy(), A)
