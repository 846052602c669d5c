"""A table of samples and features, with names and annotations of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.data.matrix import DataMatrix
from mrshc.shell.data_matrix import as_data_matrix


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A table of samples and features, as returned by `read_table`.

    Parameters
    ----------
    X : ndarray or DataMatrix of shape (n_samples, n_features)
        The values, with NaN for missing values. X is a DataMatrix if the values stay in the file
        and are read in blocks. Estimators accept both types.
    sample_names : ndarray of shape (n_samples,)
        Unique names of the samples.
    feature_names : ndarray of shape (n_features,)
        Unique names of the features.
    sample_annotations : DataFrame of shape (n_samples, n_annotations)
        Annotations of the samples. The index contains the names of the samples.
    feature_annotations : DataFrame of shape (n_features, n_annotations)
        Annotations of the features. The index contains the names of the features.
    source : str
        Name of the file in messages.
    notes : tuple of str
        Sentences that state how the file was interpreted.
    reading : dict, default={}
        Arguments of `read_table` that differed from their default values.
    name_counts : ndarray of shape (n_features,) or None, default=None
        How often the name of each feature occurs in the file, where names need not be unique; None
        if every name occurs once.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mrshc.io import Table
    >>> samples, features = np.array(["a", "b", "c"]), np.array(["TP53", "MYC"])
    >>> table = Table(
    ...     X=np.array([[1.0, 4.0], [2.0, np.nan], [3.0, 6.0]]),
    ...     sample_names=samples,
    ...     feature_names=features,
    ...     sample_annotations=pd.DataFrame(index=samples),
    ...     feature_annotations=pd.DataFrame(index=features),
    ...     source="an example",
    ...     notes=(),
    ... )
    >>> table.to_frame()
       TP53  MYC
    a   1.0  4.0
    b   2.0  NaN
    c   3.0  6.0
    """

    X: NDArray[Any] | DataMatrix
    sample_names: NDArray[Any]
    feature_names: NDArray[Any]
    sample_annotations: pd.DataFrame
    feature_annotations: pd.DataFrame
    source: str
    notes: tuple[str, ...]
    reading: dict[str, Any] = field(default_factory=dict)
    name_counts: NDArray[np.intp] | None = None

    @property
    def data(self) -> DataMatrix:
        """The values as a `DataMatrix`, which may be in memory or in a file."""
        return as_data_matrix(self.X)

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a data frame with names of samples and features.

        Values that stay in a file are read into memory.

        Returns
        -------
        DataFrame of shape (n_samples, n_features)
            The values. The index contains the names of the samples, and the columns have the names
            of the features.
        """
        X = self.data.columns(np.arange(self.X.shape[1]))
        return pd.DataFrame(X, index=self.sample_names, columns=self.feature_names)


def missing_values_message(count: int, shape: tuple[int, ...]) -> str:
    """Return a sentence that states how many values of a matrix are missing."""
    return f"{count:,} of {shape[0] * shape[1]:,} values are missing."
