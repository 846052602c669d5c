"""Collections of texts that HDF5 would never finish reading are detected, with bounded work."""

import numpy as np
import pytest

from mrshc.io.hdf5_heap_check import refuse_endless_heap
from mrshc.io.streams import FlawError


def header(size):
    """Return the header of a collection of so many bytes."""
    return b"GCOL\1\0\0\0" + size.to_bytes(8, "little")


def text(index, size):
    """Return the header of an object; what it holds follows."""
    return index.to_bytes(2, "little") + bytes(6) + size.to_bytes(8, "little")


class Counted(bytes):
    """Bytes that count how often they are read."""

    n_reads = 0

    def __getitem__(self, where):
        Counted.n_reads += 1
        return super().__getitem__(where)


def overlapping(n_headers, n_texts, *, sizes):
    """Return collections whose first object ends where a common list of objects begins."""
    heads = [
        header(size) + text(1, 32 * (n_headers - i) - 32)
        for i, size in enumerate(sizes(n_headers, n_texts))
    ]
    return b"".join(heads) + text(1, 0) * n_texts


@pytest.mark.parametrize(
    "sizes",
    [
        lambda n, _: [1 << 40] * n,
        lambda n, m: [32 * (n - i) + 16 * m * (i + 1) // n for i in range(n)],
    ],
    ids=["all to the end", "each a little further"],
)
def test_objects_of_overlapping_collections_are_checked_once(sizes):
    content = Counted(overlapping(400, 4000, sizes=sizes))
    Counted.n_reads = 0
    refuse_endless_heap(content)
    assert Counted.n_reads < 100 * (400 + 4000)  # of 400 * 4000 objects in all collections
    for damaged in (0, 2000, 3999):
        at = 32 * 400 + 16 * damaged
        with pytest.raises(FlawError, match="its texts are damaged"):
            refuse_endless_heap(Counted(content[:at] + text(0, 0) + content[at + 16 :]))


def is_endless(content):
    """Walk every collection from its beginning."""
    start = content.find(b"GCOL\1\0\0\0")
    while start >= 0:
        end = start + int.from_bytes(content[start + 8 : start + 16], "little")
        at = start + 16
        while at + 16 <= min(end, len(content)):
            index = int.from_bytes(content[at : at + 2], "little")
            size = int.from_bytes(content[at + 8 : at + 16], "little")
            step = size if index == 0 else (16 + -(-size // 8) * 8) % 2**64
            if step == 0:
                return True
            at += step
        start = content.find(b"GCOL\1\0\0\0", start + 1)
    return False


def test_a_simple_implementation_refuses_the_same_files():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(500):
        parts = []
        for _ in range(rng.integers(5, 120)):
            kind = rng.random()
            if kind < 0.2:
                parts.append(header(int(rng.integers(16, 3000))))
            elif kind < 0.97:
                size = int(rng.choice([0, 8, 16, 24, 160]))
                parts.append(text(int(rng.integers(1, 9)), size))
            else:
                parts.append(text(0, int(rng.choice([0, 16, 32]))))
        content = b"".join(parts)
        expected = is_endless(content)
        found.append(expected)
        if expected:
            with pytest.raises(FlawError, match="its texts are damaged"):
                refuse_endless_heap(content)
        else:
            refuse_endless_heap(content)
    assert 50 < sum(found) < 450
