import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

import reference
from mrshc.core.trees.silhouette import average_silhouette, silhouette_widths
from mrshc.core.trees.tree import pairwise_distances

ROWS = reference.table("silhouette").to_dict("records")
HCLUST = {(r["input"], r["method"]): r for r in reference.runs("hclust")}


@pytest.mark.parametrize(
    "row",
    reference.table("silhouette").to_dict("records"),
    ids=lambda r: f"{r['input']}-{r['method']}-{r['k']}",
)
def test_averages_are_those_of_r(row):
    tree, _ = reference.tree_as_in_r(HCLUST[row["input"], row["method"]])
    squared = pairwise_distances(reference.matrix(f"input_{row['input']}"), "sqeuclidean")
    labels = tree.cut(row["k"])
    assert average_silhouette(squared, labels) == pytest.approx(row["sil_sq"], abs=1e-10)
    assert average_silhouette(np.sqrt(squared), labels) == pytest.approx(row["sil_eu"], abs=1e-10)


def test_widths_are_those_of_r_and_zero_for_singletons():
    points = reference.table("silhouette_points_A")
    squared = pairwise_distances(reference.matrix("input_A"), "sqeuclidean")
    for labels, widths, distances in (
        ("label_k6", "sil_sq", squared),
        ("label_k6", "sil_eu", np.sqrt(squared)),
        ("label_singleton", "sil_singleton", np.sqrt(squared)),
    ):
        found = silhouette_widths(distances, points[labels].to_numpy() - 1)
        np.testing.assert_allclose(found, points[widths], atol=1e-10)


def test_widths_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    distances = pairwise_distances(rng.normal(size=(40, 3)), "cityblock")
    labels = rng.integers(5, size=40)
    expected = silhouette_samples(distances, labels, metric="precomputed")
    np.testing.assert_allclose(silhouette_widths(distances, labels), expected, atol=1e-12)


def test_one_cluster_and_coinciding_clusters_have_width_zero():
    distances = np.zeros((4, 4))
    np.testing.assert_array_equal(silhouette_widths(distances, np.array([0, 0, 0, 0])), 0)
    np.testing.assert_array_equal(silhouette_widths(distances, np.array([0, 0, 1, 1])), 0)
