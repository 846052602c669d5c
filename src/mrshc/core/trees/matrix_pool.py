"""Square matrices in which trees of many samples are built, and which are used several times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mrshc.core.array_types import Float


class MatrixPool:
    """A pool of uninitialised matrices of shape (n, n), which threads borrow one after another.

    To obtain the memory of a large matrix from the operating system takes about as long as to build
    a tree in it. The pool therefore keeps the matrices. There are at most as many as threads that
    borrow matrices at the same time.

    Parameters
    ----------
    n : int
        Number of rows and columns of the matrices.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        # The list methods `pop` and `append` are atomic, so no lock is needed.
        self._idle: list[Float] = []

    @contextmanager
    def borrow(self) -> Iterator[Float]:
        """Return a context that provides a matrix and takes it back at the end."""
        try:
            matrix = self._idle.pop()
        except IndexError:
            matrix = np.empty((self._n, self._n))
        try:
            yield matrix
        finally:
            self._idle.append(matrix)
