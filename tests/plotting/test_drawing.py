from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans

from drawn_figures import boxes_of, marks_of, overlaps, words_of
from mrshc import SHC, HighVarianceHC
from mrshc.datasets import make_section2_example
from mrshc.plotting import (
    CLUSTER_PALETTE,
    PALETTE,
    annotation_bars,
    cut_height,
    dendrogram,
    dendrogram_lines,
    dendrograms,
    gap_tests,
    heatmap,
    loadings,
    markers,
    search_curves,
    silhouettes,
    standardised,
    write_picture,
)
from mrshc.plotting.colours import MISSING_COLOUR, NEUTRAL_COLOUR

DATA = make_section2_example(0)
MODEL = HighVarianceHC(4, linkage="average").fit(DATA.X)
ORDER = dendrogram_lines(MODEL.linkage_matrix_).order
CLASSES = [f"class {label}" for label in DATA.labels]


def random_model(n, *, k=None, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    model = HighVarianceHC(4, n_clusters=k).fit(X)
    model.X = X
    return model


def bars_of(ax):
    """Return the colours of each bar from left to right, the upper bar first."""
    found = [c for c in ax.collections if isinstance(c, PolyCollection)]
    return [[to_hex(colour).upper() for colour in c.get_facecolors()] for c in found]


# The dendrogram.


def test_leaves_carry_their_names_and_the_colours_of_the_first_classes():
    ax = dendrogram(
        MODEL,
        annotations={"age": np.arange(20.0), "true class": CLASSES},
        names=DATA.sample_names,
        title="Example",
    )
    for tick, i in zip(ax.get_xticklabels(), ORDER, strict=True):
        assert tick.get_text() == DATA.sample_names[i]
        assert tick.get_color() == PALETTE[DATA.labels[i]]
    assert ax.get_title(loc="left") == "Example"


def test_bars_under_the_leaves_have_the_colours_of_their_levels():
    stages = pd.Series([None, "I", "II", "I"] * 5)
    annotations = {"true class": CLASSES, "stage": stages}
    ax = dendrogram(MODEL, annotations=annotations)
    expected = annotation_bars(annotations, 20)
    assert bars_of(ax) == [[bar.colours[i] for i in ORDER] for bar in expected]
    assert MISSING_COLOUR in bars_of(ax)[1]
    assert [text.get_text() for text in ax.texts] == ["true class", "stage"]
    assert words_of(ax.get_legend()) == [
        "true class",
        *(f"class {k}" for k in range(4)),
        "stage",
        "I",
        "II",
        "missing",
    ]


def test_bars_lie_below_the_leaves_and_the_scale_of_heights_above():
    ax = dendrogram(MODEL, annotations={"a": CLASSES, "b": CLASSES})
    bars = [c for c in ax.collections if isinstance(c, PolyCollection)]
    tops = [max(path.vertices[:, 1].max() for path in bar.get_paths()) for bar in bars]
    lows = [min(path.vertices[:, 1].min() for path in bar.get_paths()) for bar in bars]
    assert 0 > tops[0] > lows[0] > tops[1] > lows[1] > ax.get_ylim()[0]
    assert ax.get_yticks().min() >= 0
    assert ax.spines["left"].get_bounds()[0] == 0


def test_the_label_of_the_scale_stays_near_it_and_in_its_middle_if_bars_have_long_names():
    bars = {"an annotation of a long name": CLASSES, "b": CLASSES}
    ax = dendrogram(MODEL, annotations=bars)
    plain = dendrogram(MODEL)
    gaps = []
    for one in (ax, plain):
        (label,) = boxes_of(one.figure, [one.yaxis.label])
        gaps.append(one.get_window_extent().x0 - label.x1)
        low, high = one.transData.transform([(0, 0), (0, MODEL.distances_[-1])])[:, 1]
        assert (label.y0 + label.y1) / 2 == pytest.approx((low + high) / 2, abs=1)
    assert gaps[0] == pytest.approx(gaps[1], abs=1)


@pytest.mark.parametrize(
    ("metric", "method", "label"),
    [
        ("sqeuclidean", "average", "height of merge"),
        ("correlation", "average", "1 - correlation"),
        ("correlation", "ward", "height of merge"),
    ],
)
def test_the_scale_of_heights_names_correlations(metric, method, label):
    """The heights of Ward's linkage are on the scale of square roots."""
    model = model_with_tests().set_params(linkage=method, metric=metric)
    for draw in (dendrogram, gap_tests):
        assert draw(model).get_ylabel() == label


def test_a_model_without_a_metric_has_plain_heights():
    model = SimpleNamespace(linkage_matrix_=MODEL.linkage_matrix_)
    assert dendrogram(model).get_ylabel() == "height of merge"


def test_branches_inside_a_cluster_have_its_colour_and_those_above_none():
    model = random_model(30, k=3)
    (forks,) = (c for c in dendrogram(model).collections if isinstance(c, LineCollection))
    colours = [to_hex(colour).upper() for colour in forks.get_colors()]
    assert colours[27:29] == [NEUTRAL_COLOUR, NEUTRAL_COLOUR]
    first = model.linkage_matrix_[:27, 0]
    for colour, child in zip(colours[:27], first, strict=True):
        if child < 30:
            assert colour == CLUSTER_PALETTE[model.labels_[int(child)]]


def test_a_sample_alone_in_its_cluster_shows_its_colour():
    model = HighVarianceHC(1, n_clusters=2).fit([[0.0, 0], [1.0, 0], [1.5, 0], [9.0, 0]])
    (forks,) = (c for c in dendrogram(model).collections if isinstance(c, LineCollection))
    assert to_hex(forks.get_colors()[-1]).upper() == CLUSTER_PALETTE[model.labels_[3]]
    # It is the leg from the sample, wherever it stands, up to the last merge.
    place = dendrogram_lines(model.linkage_matrix_).order.tolist().index(3)
    leg = {tuple(corner) for corner in forks.get_segments()[-1]}
    assert leg == {(place, 0.0), (place, model.linkage_matrix_[-1, 2])}


def test_colour_branches_false_draws_branches_in_grey():
    ax = dendrogram(random_model(30, k=3), colour_branches=False)
    assert {to_hex(c).upper() for c in ax.collections[0].get_colors()} == {NEUTRAL_COLOUR}
    assert ax.get_legend() is None


def with_outliers(*rows):
    model = random_model(30, k=3)
    model.outlier_samples_ = np.array(rows, dtype=np.intp)
    return model


def test_outlying_samples_are_marked_and_explained():
    model = with_outliers(4, 17)
    order = dendrogram_lines(model.linkage_matrix_).order
    ax = dendrogram(model, annotations={"class": ["x"] * 30})
    outlying = next(c for c in ax.collections if isinstance(c, PolyCollection)).get_facecolors()
    assert {int(order[at]) for at in np.flatnonzero(outlying[:, 3])} == {4, 17}
    assert {to_hex(colour) for colour in outlying[outlying[:, 3] > 0]} == {"#000000"}
    assert words_of(ax.get_legend())[:2] == [
        "outlying",
        "excluded from the fit,\nadded to the tree last",
    ]
    assert [text.get_text() for text in ax.texts] == ["outlying", "class"]
    assert {tick.get_color() for tick in ax.get_xticklabels()} == {PALETTE[0]}, "of the class"


def test_without_outlying_samples_there_is_no_bar_for_them():
    assert bars_of(dendrogram(with_outliers())) == []


def test_the_heat_map_marks_outlying_samples_and_colours_the_others():
    model = with_outliers(4)
    X = model.X.copy()
    X[4] = 1e6
    figure = heatmap(model, X)
    assert "outlying" in words_of(figure.legends[0])
    order = dendrogram_lines(model.linkage_matrix_).order
    others = np.delete(cells_of(figure), list(order).index(4), axis=1)
    np.testing.assert_allclose(others.std(axis=1), 1.0)


def test_the_cut_is_drawn_where_it_separates_and_named():
    ax = dendrogram(MODEL, cut=3)
    (line,) = (line for line in ax.lines if line.get_label() == "cut")
    assert set(line.get_ydata()) == {cut_height(MODEL.linkage_matrix_, 3)}
    assert [text.get_text() for text in ax.texts] == ["cut into 3 clusters"]


def test_distances_reorder_names_and_bars_together():
    distances = squareform(pdist(DATA.X))
    ax = dendrogram(MODEL, annotations={"c": CLASSES}, distances=distances)
    order = dendrogram_lines(MODEL.linkage_matrix_, distances=distances).order
    assert order.tolist() != ORDER.tolist()
    assert [int(tick.get_text()) for tick in ax.get_xticklabels()] == order.tolist()
    assert bars_of(ax) == [[PALETTE[DATA.labels[i]] for i in order]]


@pytest.mark.parametrize("n", [10, 62, 500, 1000])
def test_names_do_not_overlap_and_figure_width_is_limited(n):
    names = [f"sample {i} of a long series of them" for i in range(n)]
    ax = dendrogram(random_model(n, k=3), names=names, annotations={"c": np.arange(n) % 5})
    assert ax.figure.get_figwidth() <= 16
    boxes = boxes_of(ax.figure, ax.get_xticklabels())
    assert len(boxes) >= min(n, 80)
    assert not overlaps(boxes)
    said = f"{n} samples (every" in ax.get_xlabel()
    assert said == (len(boxes) < n)


def test_names_are_shown_as_they_are(tmp_path):
    names = ["$x_1$", "a_b", r"\alpha^2", "50%", "$", "名前", "ß"]
    ax = dendrogram(
        random_model(7, k=1),
        names=names,
        annotations={"$y_1$": ["$z$"] * 7},
        title="of $10 and $20",
    )
    texts = [*ax.get_xticklabels(), *ax.texts, ax.title, ax._left_title]
    texts += ax.get_legend().get_texts()
    shown = {text.get_text() for text in texts if not text.get_parse_math()}
    assert {*names, "$y_1$", "$z$", "of $10 and $20"} <= shown
    # A letter that the font lacks does not stop the writing; warnings are errors here.
    write_picture(ax.figure, tmp_path / "names.png")


@pytest.mark.slow
def test_text_of_any_kind_gives_a_valid_picture(tmp_path):
    unsafe = ["\x00", "\x1b[1m", "\x9b", "\ufffe", "\ud800", "\u202e"]
    model = HighVarianceHC(2, n_clusters=2).fit(np.arange(12.0).reshape(6, 2) ** 2)
    names, text = [f"{each}s" for each in unsafe], f"a{'b'.join(unsafe)}b"
    notes = {text: [text, None, *names[2:]]}
    X = np.arange(12.0).reshape(6, 2)
    drawn = {
        "dendrogram": dendrogram(model, annotations=notes, names=names, title=text).figure,
        "heatmap": heatmap(model, X, annotations=notes, names=names, feature_names=["x", text]),
        "silhouettes": silhouettes(np.arange(6) / 10, names, names=names, title=text).figure,
        "loadings": loadings([[0.6, 0.8]], ["x", text], title=text),
    }
    for name, figure in drawn.items():
        write_picture(figure, tmp_path / f"{name}.svg")
        ElementTree.parse(tmp_path / f"{name}.svg")
        written = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert [each for each in unsafe if each in written] == []


@pytest.mark.parametrize(
    "Z",
    [
        linkage(np.zeros((6, 1))),
        linkage(np.arange(3.0)[:, None]),
        linkage(np.eye(8), "centroid"),
    ],
    ids=["no heights", "three samples", "equal heights"],
)
def test_degenerate_trees_can_be_drawn(Z, tmp_path):
    n = len(Z) + 1
    model = SimpleNamespace(linkage_matrix_=Z, labels_=np.zeros(n, dtype=int))
    ax = dendrogram(model, annotations={"only": ["x"] * n}, cut=2)
    assert bars_of(ax) == [[PALETTE[0]] * n]
    write_picture(ax.figure, tmp_path / "tree.png", dpi=50)


def test_given_axes_are_used():
    ax = Figure().subplots()
    assert dendrogram(MODEL, ax=ax) is ax
    assert ax.get_legend() is None


def test_too_few_names_are_refused():
    with pytest.raises(ValueError, match="names must hold one entry for each of the 20 samples"):
        dendrogram(MODEL, names=["a"])


# The heat map.


def cells_of(figure):
    return figure.axes[0].images[0].get_array()


def test_cells_stand_in_the_order_of_both_trees():
    X = DATA.X[:, :6].copy()
    X[3, 2] = np.nan
    figure = heatmap(MODEL, X, names=DATA.sample_names, feature_names=list("abcdef"))
    heat = figure.axes[0]
    columns = [tick.get_text() for tick in heat.get_xticklabels()]
    rows = [tick.get_text() for tick in heat.get_yticklabels()]
    assert columns == [DATA.sample_names[i] for i in ORDER]
    assert sorted(rows) == list("abcdef")
    picked = standardised(X)[np.ix_(ORDER, ["abcdef".index(name) for name in rows])].T
    np.testing.assert_array_equal(np.ma.filled(cells_of(figure), np.nan), picked)
    assert np.ma.count_masked(cells_of(figure)) == 1


def test_columns_stand_under_their_leaves():
    figure = heatmap(MODEL, DATA.X[:, :5], annotations={"class": CLASSES})
    FigureCanvasAgg(figure).draw()
    heat, above, left = figure.axes[:3]
    assert heat.get_xlim() == above.get_xlim() == (-0.5, 19.5)
    assert heat.get_ylim() == left.get_ylim() == (4.5, -0.5)
    assert heat.get_position().x0 == pytest.approx(above.get_position().x0)
    assert heat.get_position().x1 == pytest.approx(above.get_position().x1)
    assert heat.get_position().y0 == pytest.approx(left.get_position().y0)
    assert bars_of(above) == [[PALETTE[DATA.labels[i]] for i in ORDER]]


def test_colour_scale_is_limited_but_values_are_not():
    X = np.zeros((20, 1))
    X[0] = 100.0
    figure = heatmap(MODEL, X)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (-3.0, 3.0)
    assert cells_of(figure).max() > 4


def test_legend_explains_missing_cells():
    X = DATA.X[:, :4].copy()
    assert not heatmap(MODEL, X).legends
    X[0, 0] = np.nan
    figure = heatmap(MODEL, X)
    assert words_of(figure.legends[0]) == ["heat map", "missing value"]
    drawn = figure.axes[0].images[0].cmap.get_bad()
    assert tuple(drawn) == figure.legends[0].legend_handles[-1].get_facecolor()


@pytest.mark.parametrize("q", [1, 2, 40, 1000])
def test_any_number_of_features_fits_without_names_overlapping(q):
    X = np.random.default_rng(0).normal(size=(20, q))
    figure = heatmap(MODEL, X, feature_names=[f"feature {i}" for i in range(q)])
    assert cells_of(figure).shape == (q, 20)
    assert max(figure.get_size_inches()) <= 16
    heat = figure.axes[0]
    assert not overlaps(boxes_of(figure, heat.get_yticklabels()))
    assert not overlaps(boxes_of(figure, heat.get_xticklabels()))


def test_columns_of_a_frame_name_the_features():
    X = pd.DataFrame(DATA.X[:, :2], columns=["gene_a", "$b$"])
    heat = heatmap(MODEL, X).axes[0]
    ticks = heat.get_yticklabels()
    assert {tick.get_text() for tick in ticks} == {"gene_a", "$b$"}
    assert not any(tick.get_parse_math() for tick in ticks)


def test_heatmap_refuses_other_samples_than_those_of_the_tree():
    with pytest.raises(ValueError, match=r"the 20 samples of the tree .* the shape \(19, 2\)"):
        heatmap(MODEL, DATA.X[:19, :2])
    with pytest.raises(ValueError, match="one name for each of the 2 selected features, got 1"):
        heatmap(MODEL, DATA.X[:, :2], feature_names=["a"])


# The search and the gap tests.


def search_model(n_targets=4, n_ranks=3, *, survive=True):
    size = n_targets * n_ranks
    first = np.arange(size) % n_ranks == 0
    table = {
        "n_features_target": np.repeat(10 * np.arange(1, n_targets + 1), n_ranks),
        "n_features": np.repeat(10 * np.arange(1, n_targets + 1), n_ranks),
        "rank": np.tile(np.arange(1, n_ranks + 1), n_targets),
        "n_leaves": np.full(size, 3),
        "silhouette": np.linspace(0.1, 0.6, size),
        "screened_out": np.full(size, not survive),
        "chosen": np.arange(size) == (n_ranks if n_targets > 1 else 0),
        "best_rank": first & survive,
        "removed": np.zeros(size, dtype=bool),
    }
    return SimpleNamespace(search_results_=table)


def test_the_chosen_candidate_is_marked_where_it_stands_in_both_panels():
    model = search_model()
    table = model.search_results_
    table["removed"][[0, 4]] = True
    table["screened_out"][[9, 10, 11]] = True
    table["best_rank"][9] = False
    over_q, over_rank = search_curves(model).axes
    silhouette = table["silhouette"]
    assert marks_of(over_q) == {
        "chosen": [[1.0, silhouette[3]]],
        "removed": [[0.0, silhouette[0]]],
        "kept": [[2.0, silhouette[6]]],
        "screened out": [[3.0, silhouette[11]]],
    }
    assert marks_of(over_rank) == {
        "chosen": [[0.0, silhouette[3]]],
        "removed": [[1.0, silhouette[4]]],
        "kept": [[2.0, silhouette[5]]],
    }
    assert [tick.get_text() for tick in over_q.get_xticklabels()] == ["10", "20", "30", "40"]
    assert words_of(over_rank.get_legend()) == [
        "candidates",
        "chosen",
        "compared in the last step",
        "removed: local minimum",
        "excluded: fewer than 3 clusters",
    ]


def test_removed_candidates_are_hollow():
    model = search_model()
    model.search_results_["removed"][0] = True
    over_q = search_curves(model).axes[0]
    faces = {line.get_label(): line.get_markerfacecolor() for line in over_q.lines}
    assert to_rgba(faces["removed"]) == to_rgba("white")
    assert to_rgba(faces["kept"]) != to_rgba("white")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_targets", "n_ranks", "n_panels"), [(1, 3, 1), (4, 1, 1), (17, 5, 2), (60, 2, 2)]
)
@pytest.mark.parametrize("survive", [True, False])
def test_a_panel_for_each_choice_and_no_names_overlap(n_targets, n_ranks, n_panels, survive):
    model = search_model(n_targets, n_ranks, survive=survive)
    if not survive:
        model.search_results_["n_leaves"][model.search_results_["chosen"]] += 1
    figure = search_curves(model)
    assert len(figure.axes) == n_panels
    for ax in figure.axes:
        assert len(marks_of(ax)["chosen"]) == 1
        assert not overlaps(boxes_of(figure, ax.get_xticklabels()))


def test_a_search_with_one_candidate_is_explained_in_the_figure():
    for model in (search_model(1, 1), SHC(4).fit(DATA.X)):
        (ax,) = search_curves(model).axes
        assert [text.get_text() for text in ax.texts] == [
            "There was a single candidate, so no comparison was made."
        ]


def test_gaps_of_shc_are_drawn_with_whiskers():
    model = SHC([2, 4, 8], n_permutations=3, random_state=0).fit(DATA.X)
    (ax,) = search_curves(model).axes
    table = model.search_results_
    best = int(np.argmax(table["gap"]))
    assert marks_of(ax)["chosen"] == [[best, table["gap"][best]]]
    (whiskers,) = (c for c in ax.collections if isinstance(c, LineCollection))
    lengths = [end[1] - start[1] for start, end in whiskers.get_segments()]
    np.testing.assert_allclose(lengths, 2 * table["gap_sd"])


def test_silhouettes_over_the_number_of_clusters_are_drawn():
    table = {"n_clusters": [2, 3, 4], "silhouette": [0.2, 0.5, 0.3], "chosen": [False, True, False]}
    (ax,) = search_curves(SimpleNamespace(search_results_=table), title="HC").axes
    assert marks_of(ax) == {"kept": [[0.0, 0.2], [2.0, 0.3]], "chosen": [[1.0, 0.5]]}
    assert ax.figure.get_suptitle() == "HC\nChosen: 3 clusters (average silhouette 0.50)"


def model_with_tests(n=30, n_tests=5):
    model = random_model(n, k=3)
    nodes = np.arange(2 * n - 2, 2 * n - 2 - n_tests, -1)
    model.split_tests_ = {
        "node": nodes,
        "n_samples": nodes,
        "height": model.linkage_matrix_[nodes - n, 2],
        "drop": np.linspace(1.2, 0.0, n_tests),
        "expected_drop": np.full(n_tests, 0.4),
        "standard_error": np.full(n_tests, 0.1),
        "supported": np.linspace(1.2, 0.0, n_tests) > 0.5,
        "split": np.arange(n_tests) < 2,
    }
    return model


def test_tested_nodes_are_marked_on_the_tree_with_their_verdict():
    model = model_with_tests()
    ax = gap_tests(model)
    lines = dendrogram_lines(model.linkage_matrix_)
    tips = [lines.tip(node) for node in model.split_tests_["node"]]
    drawn = [(line.get_label(), tuple(line.get_xydata()[0])) for line in ax.lines]
    verdicts = ["made", "made", "supported, not made", "not supported", "not supported"]
    assert drawn == list(zip(verdicts, tips, strict=True))
    faces = {line.get_label(): to_hex(line.get_markerfacecolor()) for line in ax.lines}
    assert faces["not supported"] == "#ffffff"
    assert len(set(faces.values())) == 3
    assert [text.get_text() for text in ax.texts] == ["+8.0", "+5.0", "+2.0", "-1.0", "-4.0"]


def test_splits_that_are_made_without_support_are_told_apart():
    model = model_with_tests()
    model.split_tests_["split"] = np.arange(5) < 4
    ax = gap_tests(model)
    verdicts = [line.get_label() for line in ax.lines]
    assert verdicts == ["made", "made", "made", "made, not supported", "not supported"]
    assert any("made, but not supported" in text for text in words_of(ax.get_legend()))


@pytest.mark.parametrize(("n", "n_tests"), [(30, 20), (500, 60)])
def test_numbers_of_many_tests_do_not_overlap(n, n_tests):
    ax = gap_tests(model_with_tests(n, n_tests))
    boxes = boxes_of(ax.figure, ax.texts)
    assert len(boxes) >= n_tests // 2
    assert not overlaps(boxes)


def test_a_model_without_tests_is_refused():
    with pytest.raises(ValueError, match="gap_tests needs a model with split_tests_"):
        gap_tests(MODEL)
    with pytest.raises(ValueError, match="no node of this model was tested"):
        gap_tests(model_with_tests(n_tests=0))


# Several trees.


def test_models_without_a_tree_are_left_out_of_a_figure_of_several_trees():
    models = {"tree": MODEL, "k-means": KMeans(2).fit(DATA.X), "again": MODEL}
    figure = dendrograms(models, titles=["one", "two"])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]


def branch_colours(ax):
    (forks,) = (c for c in ax.collections if isinstance(c, LineCollection))
    return [to_hex(colour).upper() for colour in forks.get_colors()]


def test_several_trees_have_the_colours_of_the_clusters_at_the_cut():
    models = {"none": MODEL, "three": random_model(20, k=3)}
    figure = dendrograms(models, cut=4, annotations={"class": CLASSES})
    for ax, model in zip(figure.axes, models.values(), strict=True):
        cut = SimpleNamespace(linkage_matrix_=model.linkage_matrix_, labels_=model.cut(4))
        assert branch_colours(ax) == branch_colours(dendrogram(cut))
        assert ax.get_legend() is None
    assert words_of(figure.legends[0])[5:] == [
        "clusters of each tree,\nfrom left to right",
        *(f"cluster {k}" for k in range(1, 5)),
    ]


def test_without_a_cut_several_trees_have_the_colours_of_their_own_clusters():
    figure = dendrograms({"none": MODEL, "two": random_model(20, k=2), "o": with_outliers(3)})
    assert set(branch_colours(figure.axes[0])) == {NEUTRAL_COLOUR}
    assert {NEUTRAL_COLOUR, *CLUSTER_PALETTE[:2]} == set(branch_colours(figure.axes[1]))
    assert words_of(figure.legends[0])[0] == "outlying"
    assert words_of(figure.legends[0])[-1] == "cluster 3"
    assert not dendrograms({"none": MODEL}).legends
    with pytest.raises(ValueError, match="cut must be a whole number in"):
        dendrograms({"none": MODEL}, cut=21)


@pytest.mark.parametrize(("n", "fits"), [(62, True), (200, False)])
def test_names_of_several_trees_are_written_if_they_fit(n, fits):
    names = [f"sample of a long name {i}" for i in range(n)]
    figure = dendrograms({"it": random_model(n)}, names=names)
    boxes = boxes_of(figure, figure.axes[0].get_xticklabels())
    assert len(boxes) == (n if fits else 0)
    assert not overlaps(boxes)
    assert figure.axes[0].get_xlabel() == ""


# Bars.


def test_silhouettes_are_sorted_in_their_clusters_and_coloured_like_them():
    widths, labels = np.array([0.1, 0.9, 0.5, -0.2, 0.7]), [0, 1, 0, 1, 0]
    ax = silhouettes(widths, labels, names=list("abcde"), title="$t$")
    assert [bar.get_width() for bar in ax.patches] == [0.7, 0.5, 0.1, 0.9, -0.2]
    colours = [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
    assert colours == [CLUSTER_PALETTE[k] for k in (0, 0, 0, 1, 1)]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list("ecabd")
    (average,) = (line for line in ax.lines if line.get_label() == "average")
    assert average.get_xdata()[0] == pytest.approx(widths.mean())
    assert [text.get_text() for text in ax.texts] == [
        "cluster 1: 3 samples, average 0.43",
        "cluster 2: 2 samples, average 0.35",
    ]
    # The first cluster stands on top.
    assert ax.yaxis_inverted()


def test_texts_of_many_clusters_do_not_overlap():
    labels = np.r_[np.zeros(300, dtype=int), np.arange(1, 40)]
    ax = silhouettes(np.linspace(-1, 1, labels.size), labels, names=range(labels.size))
    boxes = boxes_of(ax.figure, ax.texts)
    assert len(boxes) > 5
    assert not overlaps(boxes)
    assert not overlaps(boxes_of(ax.figure, ax.get_yticklabels()))


def test_silhouettes_of_one_cluster_that_are_all_zero_can_be_drawn(tmp_path):
    ax = silhouettes(np.zeros(3), [0, 0, 0])
    assert len(ax.texts) == 1
    write_picture(ax.figure, tmp_path / "zero.png", dpi=50)


def test_loadings_show_size_by_length_and_sign_by_colour():
    components = [[0.0, -0.9, 0.3, 0.1], [0.5, 0.0, 0.0, 0.0]]
    first, second = loadings(components, ["a", "$b$", "c", "d"], top=2, title="of all").axes
    assert [tick.get_text() for tick in first.get_yticklabels()] == ["$b$", "c"]
    assert not any(tick.get_parse_math() for tick in first.get_yticklabels())
    assert [bar.get_width() for bar in first.patches] == [0.9, 0.3]
    colours = [to_hex(bar.get_facecolor()).upper() for bar in first.patches]
    assert colours == [PALETTE[1], PALETTE[0]]
    assert first.get_title(loc="left") == "component 1\n2 largest of 3 nonzero loadings"
    assert second.get_title(loc="left") == "component 2\n1 nonzero loading"
    assert second.get_legend() is not None


def test_every_component_has_a_panel():
    assert len(loadings(np.eye(6), list("abcdef")).axes) == 6


def test_loadings_want_the_names_of_all_features():
    with pytest.raises(ValueError, match="one name for each of the 3 features, got 1"):
        loadings([[1.0, 0.0, 0.0]], ["a"])


# Files.


@pytest.mark.slow
def test_equal_figures_give_equal_bytes(tmp_path):
    figure, again = (
        heatmap(MODEL, DATA.X[:, :5], annotations={"class": CLASSES}, title="Heat")
        for _ in range(2)
    )

    def content(figure, name):
        write_picture(figure, tmp_path / name)
        return (tmp_path / name).read_bytes()

    png, svg = content(figure, "one.png"), content(figure, "one.svg")
    # Writing leaves no trace in the figure, though it lays it out.
    assert content(figure, "two.png") == png
    assert content(figure, "two.svg") == svg
    assert content(again, "three.PNG") == png
    assert content(again, "three.svg") == svg


def test_suffix_determines_the_format_and_folders_are_created(tmp_path):
    write_picture(Figure(), tmp_path / "new" / "a.png")
    write_picture(Figure(), str(tmp_path / "a.svg"))
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "a.svg").read_text()
    assert "<svg" in text
    assert "dc:date" not in text


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .png, .svg or .pdf, got 'a.gif'"):
        write_picture(Figure(), tmp_path / "a.gif")


# Markers.


def marker_table(n_clusters, *, name):
    rng = np.random.default_rng(0)
    rows = [
        ("cluster", str(k), name.format(k, j), rng.normal())
        for k in range(1, n_clusters + 1)
        for j in range(12)
    ]
    return pd.DataFrame(rows, columns=["contrast", "inside", "feature", "effect_size"])


def test_markers_show_size_and_sign():
    table = pd.DataFrame(
        {
            "contrast": ["cluster"] * 2,
            "inside": ["1"] * 2,
            "feature": ["a", "b"],
            "effect_size": [1.5, -2.5],
        }
    )
    figure = markers(table, 3, title="What marks them")
    first, *others = figure.axes
    assert [tick.get_text() for tick in first.get_yticklabels()] == ["b", "a"]
    assert [bar.get_width() for bar in first.patches] == [2.5, 1.5]
    lower, higher = (to_hex(bar.get_facecolor()) for bar in first.patches)
    legend = others[-1].get_legend()
    looks = {t.get_text(): p for t, p in zip(legend.texts, legend.legend_handles, strict=True)}
    assert to_hex(looks["higher in the cluster"].get_facecolor()) == higher
    assert to_hex(looks["lower in the cluster"].get_facecolor()) == lower
    assert [ax.texts[0].get_text() for ax in others] == ["no markers"] * 2


def test_a_long_title_leaves_space_for_a_panel_without_markers():
    no_markers = pd.DataFrame(columns=["contrast", "inside", "feature", "effect_size"])
    figure = markers(no_markers, 2, title="a long title " * 15)
    figure.canvas.draw()  # matplotlib would warn if the panel had no space
    assert figure.axes[0].get_window_extent().height > 20


LONG_NAME = "ENSG{}000{}_a_name_that_goes_on_and_on_and_on_and_on"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_clusters", "name"),
    # Short names need less space than long ones, whatever the number of panels.
    [(2, "g{}{}"), (5, "g{}{}"), (2, LONG_NAME), (5, LONG_NAME), (30, LONG_NAME)],
)
def test_texts_of_many_marker_panels_do_not_overlap(n_clusters, name):
    figure = markers(marker_table(n_clusters, name=name), n_clusters)
    assert len(figure.axes) == (1 if n_clusters == 2 else min(20, n_clusters))
    assert figure.get_figwidth() <= 16
    texts = [tick for ax in figure.axes for tick in ax.get_yticklabels()]
    texts += [ax._left_title for ax in figure.axes] + [ax.xaxis.label for ax in figure.axes]
    assert not overlaps(boxes_of(figure, texts))
