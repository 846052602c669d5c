"""A table of three samples and four features, as text, and what reading it must give."""

import numpy as np
import pandas as pd

X = np.array([[1.5, -2.0, 3.25, 0.1], [4.0, 5e-7, 6.0, 1e10], [7.0, 8.0, 9.125, -0.3]])
SAMPLES, FEATURES = ["a", "b", "c"], ["g1", "g2", "g3", "g4"]


def features_in_rows(separator="\t", corner="gene", decimal=".", missing=None):
    """Return the table as text."""
    frame = pd.DataFrame(X.T, index=FEATURES, columns=SAMPLES)
    if missing is not None:
        frame = frame.astype(object)
        frame.iloc[1, 2] = missing
    text = frame.to_csv(sep=separator, decimal=decimal, index_label=corner, na_rep="")
    return text if corner is not None else text.removeprefix(separator)


def assert_read(table, *, dtype=np.float64):
    np.testing.assert_array_equal(table.X, X.astype(dtype))
    assert table.X.dtype == dtype
    assert list(table.sample_names) == SAMPLES
    assert list(table.feature_names) == FEATURES
