"""A table of samples and features, with names and annotations of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.data.conversion import data_matrix
from mrshc.core.data.data_matrix import DataMatrix


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Samples and features of a file."""

    X: NDArray[Any] | DataMatrix  # (n, p), samples in rows; NaN: missing; or the file it stays in
    sample_names: NDArray[Any]  # (n,), texts, unique
    feature_names: NDArray[Any]  # (p,), texts, unique
    sample_annotations: pd.DataFrame  # (n, any), indexed by sample
    feature_annotations: pd.DataFrame  # (p, any), indexed by feature
    source: str
    notes: tuple[str, ...]  # sentences on what was understood
    reading: dict[str, Any] = field(default_factory=dict)  # options that were not the default

    @property
    def data(self) -> DataMatrix:
        """The values as a matrix, in memory or in a file."""
        return data_matrix(self.X)

    def to_frame(self) -> pd.DataFrame:
        """Return the values with their names; those that stay in a file are read."""
        X = self.data.columns(np.arange(self.X.shape[1]))
        return pd.DataFrame(X, index=self.sample_names, columns=self.feature_names)


def missing(count: int, shape: tuple[int, ...]) -> str:
    """Say how many values are missing."""
    return f"{count:,} of {shape[0] * shape[1]:,} values are missing."
