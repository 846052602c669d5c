"""Columns are read from storage in few operations of limited size."""

import numpy as np
import pytest

from mrshc.core.data.block_reading import BlockReader, aligned_blocks
from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.shape_and_dtype import OutOfRangeError


class Recorder(BlockReader):
    """A reader of an array that records the ranges of columns that are read."""

    def __init__(self, A, *, dtype=np.float64, **options):
        super().__init__(name="the array", shape=A.shape, dtype=np.dtype(dtype), **options)
        self.A, self.reads = A, []

    def _read_columns(self, start, stop):
        self.reads.append((start, stop))
        return self.A[:, start:stop]


@pytest.mark.parametrize(
    ("n", "p", "chunk", "ends"),
    [
        (1 << 22, 5, 1, [2, 4, 5]),  # 32 MB in single precision
        ((1 << 22) + 1, 2, 1, [1, 2]),
        (1 << 22, 7, 2, [2, 4, 6, 7]),
        (1 << 21, 9, 3, [3, 6, 9]),  # one chunk of three columns, not four columns
        (1 << 20, 13, 3, [6, 12, 13]),
        (1 << 22, 20, 8, [8, 16, 20]),  # a chunk of 128 MB is not divided
        (1 << 22, 20, 9, [8, 9, 17, 18, 20]),
        (1 << 24, 5, 3, [2, 3, 5]),
        (1 << 26, 2, 1, [1, 2]),  # one column is never divided
        (1 << 26, 3, 2, [1, 2, 3]),
        (3, 40, 7, [40]),
        (0, 4, 1, [4]),
    ],
)
def test_blocks_are_whole_chunks_up_to_128_megabytes(n, p, chunk, ends):
    blocks = [(block.start, block.stop) for block in aligned_blocks(n, p, chunk)]
    assert blocks == list(zip([0, *ends[:-1]], ends, strict=True))


def test_a_matrix_without_columns_has_no_blocks():
    assert aligned_blocks(3, 0, 1) == []
    reader = Recorder(np.ones((3, 0)))
    assert list(reader.map_blocks(lambda *_: 1)) == []
    assert reader.reads == []


@pytest.mark.parametrize(
    ("chunk", "indices", "reads"),
    [
        (None, [255, 0, 256], [(0, 256), (256, 257)]),
        (1, [511, 256, 512], [(256, 512), (512, 513)]),
        (100, [0, 199, 200], [(0, 200), (200, 201)]),  # two whole chunks
        (256, [255, 256, 7], [(7, 256), (256, 257)]),
        (300, [0, 299, 300], [(0, 300), (300, 301)]),
        (300, [4], [(4, 5)]),
        (300, [], []),
    ],
)
def test_columns_of_the_same_range_are_read_together(chunk, indices, reads):
    A = np.arange(1200.0).reshape(2, 600)
    reader = Recorder(A) if chunk is None else Recorder(A, chunk=chunk)
    indices = np.array(indices, dtype=int)
    np.testing.assert_array_equal(reader.columns(indices), A[:, indices])
    assert reader.reads == reads


@pytest.mark.parametrize(
    ("n", "reads"),
    [
        (1 << 24, [(0, 2), (2, 3)]),  # 128 MB in single precision
        ((1 << 24) + 1, [(0, 1), (1, 2), (2, 3)]),
        (1 << 26, [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_columns_that_are_read_together_take_at_most_128_megabytes(monkeypatch, n, reads):
    reader = Recorder(np.ones((2, 3)))
    reader.shape = (n, 3)
    # The array of the result is not needed here.
    monkeypatch.setattr(np, "empty", lambda shape, dtype: np.zeros((2, shape[1]), dtype))
    reader.columns(np.arange(3))
    assert reader.reads == reads


def test_columns_of_a_matrix_without_samples():
    assert Recorder(np.ones((0, 5))).columns(np.array([4, 1])).shape == (0, 2)


def test_blocks_are_copied_only_to_convert_them():
    A = np.ones((2, 3))
    assert np.shares_memory(Recorder(A).read_block(slice(0, 2)), A)
    assert Recorder(A, dtype=np.float32).read_block(slice(0, 2)).dtype == np.float32


def test_errors_name_the_columns_of_the_block():
    reader = Recorder(np.full((2, 3), 1e300), dtype=np.float32)
    with pytest.raises(OutOfRangeError):
        reader.read_block(slice(1, 3))
    reader.A = None
    with pytest.raises(UnreadableError, match=r"^Columns 1 to 2 of the array .*file is complete"):
        reader.read_block(slice(1, 3))
    with pytest.raises(UnreadableError, match=r"^Column 2 of the array cannot be read"):
        reader.columns(np.array([2]))
