import numpy as np
import pytest

from mrshc.plotting import (
    silhouette_rows,
)


def test_silhouettes_fall_within_each_cluster():
    widths = np.array([0.1, 0.9, 0.5, -0.2, 0.7])
    rows = silhouette_rows(widths, [0, 1, 0, 1, 0])
    assert rows.order.tolist() == [4, 2, 0, 1, 3]
    assert rows.clusters.tolist() == [0, 0, 0, 1, 1]
    assert rows.names == ("cluster 1", "cluster 2")
    np.testing.assert_allclose(rows.averages, [1.3 / 3, 0.35])
    gaps = np.diff(rows.places)
    assert gaps[2] > gaps[0] == gaps[1] == gaps[3]


def test_named_clusters_keep_their_names():
    assert silhouette_rows([0.1, 0.2], ["b", "a"]).names == ("a", "b")


def test_widths_and_labels_must_match():
    with pytest.raises(ValueError, match=r"got the shapes \(2,\) and \(3,\)"):
        silhouette_rows([0.1, 0.2], [0, 0, 1])
