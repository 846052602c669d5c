"""The values of a table as a data matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix, DataMatrix


def as_data_matrix(X: Any) -> DataMatrix:
    """Return an array, a table or data that are stored elsewhere as a data matrix."""
    matrix = as_matrix(X)
    return ArrayMatrix(np.asarray(X)) if matrix is None else matrix
