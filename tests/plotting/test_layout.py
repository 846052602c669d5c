import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram as scipy_dendrogram
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from mrshc.plotting import (
    clusters_of_merges,
    cut_height,
    dendrogram_lines,
    fitting_labels,
    free_places,
    shortened,
    shortened_names,
)
from mrshc.plotting.dendrogram_layout import LINE_HEIGHT, singleton_branches
from mrshc.plotting.search_explanation import format_count

X = np.random.default_rng(0).normal(size=(30, 3))


def caterpillar(n):
    """Return the deepest tree: each merge adds one sample."""
    grown = np.r_[0, n + np.arange(n - 2)]
    return np.column_stack([grown, np.arange(1, n), np.arange(1.0, n), np.arange(2, n + 1)])


@pytest.mark.parametrize("method", ["complete", "average", "single"])
def test_lines_are_those_of_scipy(method):
    Z = linkage(X, method)
    lines = dendrogram_lines(Z)
    expected = scipy_dendrogram(Z, no_plot=True)
    np.testing.assert_array_equal(lines.order, expected["leaves"])
    # scipy's leaves stand at 5, 15, 25, ...
    theirs = {
        tuple(np.round(np.column_stack([(np.array(x) - 5) / 10, y]).ravel(), 9))
        for x, y in zip(expected["icoord"], expected["dcoord"], strict=True)
    }
    assert {tuple(np.round(fork.ravel(), 9)) for fork in lines.forks} == theirs


def test_a_tip_is_the_middle_of_its_fork():
    Z = linkage(X)
    lines = dendrogram_lines(Z)
    root = 2 * len(X) - 2
    x, y = lines.tip(root)
    assert x == (lines.forks[-1, 1, 0] + lines.forks[-1, 2, 0]) / 2
    assert y == Z[-1, 2]


def test_deep_trees_do_not_exhaust_the_call_stack():
    n = 20_000
    lines = dendrogram_lines(caterpillar(n))
    assert sorted(lines.order) == list(range(n))
    assert lines.top == n - 1


def test_a_tree_without_height_still_has_room_to_be_drawn_in():
    assert dendrogram_lines(linkage(np.zeros((5, 1)))).top > 0


def test_distances_turn_forks_but_keep_the_tree():
    distances = squareform(pdist(X))
    Z = linkage(pdist(X), "complete")
    plain, turned = dendrogram_lines(Z), dendrogram_lines(Z, distances=distances)

    def between_neighbours(lines):
        return distances[lines.order[:-1], lines.order[1:]].sum()

    assert between_neighbours(turned) < between_neighbours(plain)
    np.testing.assert_array_equal(turned.forks[:, 1, 1], plain.forks[:, 1, 1])
    # Every merge still holds a run of neighbouring leaves.
    for k in range(1, 30):
        runs = fcluster(Z, k, "maxclust")[turned.order]
        assert np.count_nonzero(np.diff(runs)) + 1 == np.unique(runs).size


def test_distances_must_fit_the_tree():
    with pytest.raises(ValueError, match=r"distances must have the shape \(30, 30\), got \(4, 4\)"):
        dendrogram_lines(linkage(X), distances=np.zeros((4, 4)))


def test_merges_inside_a_cluster_belong_to_it_and_the_others_to_none():
    Z = linkage(X, "complete")
    labels = fcluster(Z, 4, "maxclust") - 1
    clusters = clusters_of_merges(Z, labels)
    # Four clusters are joined by the last three merges.
    assert (clusters[-3:] == -1).all()
    below = [{i} for i in range(30)]
    for left, right in Z[:, :2].astype(int):
        below.append(below[left] | below[right])
    for members, cluster in zip(below[30:-3], clusters[:-3], strict=True):
        assert {labels[i] for i in members} == {cluster}


def test_a_single_cluster_holds_every_merge():
    assert (clusters_of_merges(linkage(X), np.zeros(30, dtype=int)) == 0).all()


def test_labels_must_fit_the_tree():
    with pytest.raises(ValueError, match="one cluster for each of the 30 samples"):
        clusters_of_merges(linkage(X), [0, 1])


def test_a_sample_alone_in_its_cluster_has_its_leg_found():
    Z = caterpillar(4)
    labels = [0, 0, 0, 1]
    assert singleton_branches(Z, labels) == [(1, 2, 1)]
    leg = dendrogram_lines(Z).forks[2, 2:4]
    np.testing.assert_array_equal(leg[:, 1], [Z[2, 2], 0.0])


@pytest.mark.parametrize("k", [2, 3, 10, 30])
def test_a_line_at_the_cut_crosses_as_many_branches_as_there_are_clusters(k):
    Z = linkage(X, "complete")
    height = cut_height(Z, k)
    assert (Z[:, 2] > height).sum() == k - 1


def test_one_cluster_is_cut_off_above_the_root():
    Z = linkage(X)
    assert cut_height(Z, 1) > Z[-1, 2]


@pytest.mark.parametrize("k", [0, 31, 10**30, 2.5, True, "x", None])
def test_there_is_no_cut_into_fewer_than_one_or_more_clusters_than_samples(k):
    with pytest.raises(ValueError, match=rf"cut must be a whole number in \[1, 30\], got {k!r}\. "):
        cut_height(linkage(X), k)


def test_short_names_are_unchanged_and_long_names_keep_both_ends():
    assert shortened("exactly_18_letters", length=18) == "exactly_18_letters"
    short = shortened("GSM0000001_tumour_left_breast_replicate_12", length=18)
    assert len(short) == 18
    assert short.startswith("GSM000000")
    assert short.endswith("icate_12")


def test_line_breaks_do_not_enter_names():
    assert shortened("a\nb\t c") == "a b c"


def test_different_names_look_different_and_equal_ones_equal():
    ends = [f"a_long_prefix_of_all_of_them_{i:03d}" for i in range(300)]
    assert len(set(shortened_names(ends))) == 300
    middles = [f"start_of_the_name_{i}_end_of_the_name" for i in range(12)]
    short = shortened_names([*middles, middles[0]])
    assert len(set(short)) == 12
    assert short[0] == short[-1]
    assert max(map(len, short)) <= 18


@pytest.mark.parametrize("n", [1, 10, 62, 500, 1000])
@pytest.mark.parametrize("inches", [1.0, 5.0, 13.0])
def test_shown_names_do_not_touch(n, inches):
    fit = fitting_labels(n, inches=inches)
    points_between = fit.step * inches * 72 / n
    assert points_between >= LINE_HEIGHT * fit.size - 1e-9


def test_names_shrink_before_they_are_left_out():
    roomy, tight, crowded = (fitting_labels(n, inches=8.0) for n in (20, 80, 500))
    assert roomy.size > tight.size > crowded.size
    assert roomy.step == tight.step == 1
    assert crowded.step > 1
    # Below five points nobody reads a name.
    assert crowded.size >= 5


def test_placed_labels_overlap_neither_each_other_nor_marks_nor_the_border():
    rng = np.random.default_rng(0)
    anchors = [tuple(a) for a in rng.uniform(0, 200, size=(40, 2))]
    size, marker, width = (25.0, 10.0), 4.0, 200.0
    places = free_places(anchors, [size] * 40, width=width, marker=marker)
    labels = [(x, y, x + size[0], y + size[1]) for x, y in filter(None, places)]
    marks = [(x - marker, y - marker, x + marker, y + marker) for x, y in anchors]
    assert len(labels) > 10
    for i, (left, low, right, up) in enumerate(labels):
        assert left >= 0
        assert right <= width
        for a, b, c, d in labels[:i] + marks:
            assert right <= a or c <= left or up <= b or d <= low


def test_a_label_without_room_is_left_out():
    assert free_places([(5.0, 5.0)], [(50.0, 9.0)], width=20.0, marker=2.0) == [None]


def test_labels_stay_outside_obstacles():
    # The preferred position is the upper right one, which the obstacle covers.
    (place,) = free_places(
        [(50.0, 50.0)], [(20.0, 9.0)], width=99.0, marker=2.0, obstacles=[(60.0, 52.0, 70.0, 90.0)]
    )
    assert place == (28.0, 52.0)


def test_one_is_counted_in_the_singular():
    assert (format_count(1, "cluster"), format_count(2, "cluster")) == ("1 cluster", "2 clusters")


@pytest.mark.parametrize(
    "function",
    [
        dendrogram_lines,
        lambda tree: clusters_of_merges(tree, [0, 0, 1]),
        lambda tree: singleton_branches(tree, [0, 0, 1]),
        lambda tree: cut_height(tree, 2),
    ],
)
@pytest.mark.parametrize(
    "tree", [[[0, 1, 1.0, 2], [4, 2, 2.0, 3]], [[0, 10**9, 1.0, 2], [2, 3, 2.0, 3]], [], [[0, 1]]]
)
def test_invalid_trees_are_refused(function, tree):
    with pytest.raises(ValueError, match="linkage_matrix"):
        function(tree)
