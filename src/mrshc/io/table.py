"""A table of samples and features, with names and annotations of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.data.interface import Source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Samples and features of a file."""

    X: NDArray[Any] | Source  # (n, p), samples in rows; NaN: missing; or where that lies
    sample_names: NDArray[Any]  # (n,), texts, unique
    feature_names: NDArray[Any]  # (p,), texts, unique
    sample_annotations: pd.DataFrame  # (n, any), indexed by sample
    feature_annotations: pd.DataFrame  # (p, any), indexed by feature
    source: str
    notes: tuple[str, ...]  # sentences on what was understood
    reading: dict[str, Any] = field(default_factory=dict)  # options that were not the default

    def to_frame(self) -> pd.DataFrame:
        """Return the values with their names; what lies in a file is read."""
        X = self.X if isinstance(self.X, np.ndarray) else self.X.columns(np.arange(self.X.shape[1]))
        return pd.DataFrame(X, index=self.sample_names, columns=self.feature_names)


def missing(count: int, shape: tuple[int, ...]) -> str:
    """Say how many values are missing."""
    return f"{count:,} of {shape[0] * shape[1]:,} values are missing."
