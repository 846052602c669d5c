"""Names, colours, limits, sizes and legends that users choose."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from cycler import cycler
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from drawn_figures import words_of
from mrshc import SHC, HighVarianceHC, SparseKMeans, stability
from mrshc.plotting import (
    CLUSTER_PALETTE,
    PALETTE,
    annotation_bars,
    cluster_colours,
    consensus_matrix,
    dendrogram,
    dendrogram_lines,
    dendrograms,
    gap_tests,
    heatmap,
    loadings,
    markers,
    search_curves,
    silhouettes,
    write_picture,
)
from mrshc.plotting.figure_parts import legend_columns, patch_section

RNG = np.random.default_rng(0)
SAMPLES = [f"s{i}" for i in range(12)]
FEATURES = [f"g{j}" for j in range(6)]
X = pd.DataFrame(RNG.normal(size=(12, 6)), index=SAMPLES, columns=FEATURES)
X.iloc[:4, :3] += 5.0
X.iloc[8:, :3] -= 5.0
MODEL = HighVarianceHC(3, n_clusters=3).fit(X)
ORDER = dendrogram_lines(MODEL.linkage_matrix_).order
PLAIN = HighVarianceHC(3, n_clusters=3).fit(X.to_numpy())
WEIGHTED = SHC([2, 3], n_clusters=3, n_permutations=2, random_state=0).fit(X)
CLASSES = pd.DataFrame({"class": list("aaaabbbbcccc")}, index=SAMPLES)
KINDS = pd.DataFrame({"kind": list("xxxyyy"), "place": np.arange(6)}, index=FEATURES)


def with_tests():
    model = HighVarianceHC(3, n_clusters=3).fit(X)
    model.split_tests_ = {
        "node": [22],
        "height": [model.distances_[-1]],
        "drop": [0.5],
        "expected_drop": [0.3],
        "standard_error": [0.1],
        "supported": [True],
        "split": [True],
    }
    return model


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


# Names of the fitted table.


def test_plots_show_the_index_of_the_fitted_table():
    expected = [SAMPLES[i] for i in ORDER]
    assert ticks(dendrogram(MODEL).xaxis) == expected
    assert ticks(heatmap(MODEL, X).axes[0].xaxis) == expected
    assert ticks(consensus_matrix(MODEL, np.eye(12)).xaxis) == expected
    assert ticks(dendrograms({"it": MODEL}).axes[0].xaxis) == expected
    assert sorted(ticks(silhouettes(MODEL, X).yaxis)) == sorted(SAMPLES)


def test_without_an_index_samples_are_numbered_or_have_no_names():
    assert ticks(dendrogram(PLAIN).xaxis) == [str(i) for i in ORDER]
    for ax in (
        consensus_matrix(PLAIN, np.eye(12)),
        dendrograms({"it": PLAIN}).axes[0],
        silhouettes(PLAIN, X.to_numpy()),
    ):
        assert ax.get_xticks().size == 0 or ax.get_yticks().size == 0


def test_names_that_are_given_replace_those_of_the_table():
    given = [name.upper() for name in SAMPLES]
    assert ticks(dendrogram(MODEL, names=given).xaxis) == [given[i] for i in ORDER]


# Data that are taken from a model.


def cells_by_name(figure):
    heat = figure.axes[0]
    return dict(zip(ticks(heat.yaxis), heat.images[0].get_array().tolist(), strict=True))


def test_a_heat_map_of_the_data_of_the_fit_shows_the_selected_features():
    selected = [FEATURES[j] for j in np.flatnonzero(MODEL.get_support())]
    expected = cells_by_name(heatmap(MODEL, X[selected]))
    assert sorted(expected) == selected
    for table in (X, X.to_numpy(), X[FEATURES[::-1]], MODEL.transform(X)):
        assert cells_by_name(heatmap(MODEL, table)) == expected


def test_a_heat_map_of_other_features_shows_all_of_them():
    other = X.rename(columns=str.upper)
    assert sorted(ticks(heatmap(MODEL, other).axes[0].yaxis)) == sorted(other.columns)
    assert len(ticks(heatmap(MODEL, X[FEATURES[:5]]).axes[0].yaxis)) == 5


def test_a_result_contains_the_values_of_its_heat_map():
    selected = X.loc[:, MODEL.get_support()]
    features = pd.DataFrame(index=[*selected, *X.columns.difference(selected.columns)])
    result = SimpleNamespace(
        linkage_matrix_=MODEL.linkage_matrix_,
        sample_names_in_=np.array(SAMPLES),
        selected=selected,
        features=features,
    )
    expected = cells_by_name(heatmap(MODEL, X))
    assert cells_by_name(heatmap(result)) == cells_by_name(heatmap(result, X)) == expected
    with pytest.raises(ValueError, match=r"got None. Write heatmap\(model, X\)"):
        heatmap(MODEL)


def test_features_without_names_have_their_number_in_the_data():
    rows = ticks(heatmap(PLAIN, X.to_numpy()).axes[0].yaxis)
    assert sorted(rows) == [str(j) for j in np.flatnonzero(PLAIN.get_support())]


def test_silhouettes_of_a_model_are_those_of_scikit_learn():
    from sklearn.metrics import silhouette_samples

    widths = silhouette_samples(MODEL.sample_distances(X), MODEL.labels_, metric="precomputed")
    drawn = [bar.get_width() for bar in silhouettes(MODEL, X).patches]
    np.testing.assert_allclose(sorted(drawn), sorted(widths))


def test_markers_of_a_model_are_those_of_its_table():
    figure, expected = markers(MODEL, X), markers(MODEL.markers(X), 3)
    for ax, other in zip(figure.axes, expected.axes, strict=True):
        assert ticks(ax.yaxis) == ticks(other.yaxis)
        assert [b.get_width() for b in ax.patches] == [b.get_width() for b in other.patches]


def test_loadings_of_a_model_have_the_names_of_its_features():
    (ax,) = loadings(WEIGHTED).axes
    order = np.argsort(-WEIGHTED.feature_weights_)[: len(ax.patches)]
    assert ticks(ax.yaxis) == [FEATURES[j] for j in order]
    (numbered,) = loadings(SHC(2).fit(X.to_numpy())).axes
    assert set(ticks(numbered.yaxis)) <= set("012345")


def test_names_of_features_in_a_series_are_matched_by_its_index():
    names = pd.Series([name.upper() for name in FEATURES], index=FEATURES)
    (ax,), (other,) = loadings(WEIGHTED, names[::-1]).axes, loadings(WEIGHTED).axes
    assert ticks(ax.yaxis) == [name.upper() for name in ticks(other.yaxis)]
    with pytest.raises(ValueError, match="feature_names must have one entry for each feature"):
        loadings(WEIGHTED, names.iloc[1:])


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: silhouettes(HighVarianceHC(3)), "silhouettes needs a fitted model with clusters"),
        (lambda: silhouettes(HighVarianceHC(3).fit(X), X), "with n_clusters if it is None"),
        (lambda: silhouettes(MODEL), r"None. Write silhouettes\(model, X\)"),
        (lambda: markers(MODEL), r"None. Write markers\(model, X\)"),
        (lambda: markers(HighVarianceHC(3).fit(X), X), "markers needs a fitted model with clus"),
        (lambda: loadings(MODEL), "loadings needs a fitted model with components_, or with one"),
        (lambda: loadings(SHC(2)), "loadings needs a fitted model with components_, or with one"),
    ],
)
def test_models_without_the_data_of_a_plot_are_refused(draw, expected):
    with pytest.raises(ValueError, match=expected) as refused:
        draw()
    assert "\n" not in str(refused.value)


def test_a_model_without_a_tree_has_no_silhouettes_of_its_own():
    model = SparseKMeans(2, n_features_to_select=2, n_init=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="needs a model with distances between samples"):
        silhouettes(model, X)
    assert len(loadings(model).axes) == 1


# Alignment.


def test_a_shuffled_consensus_is_matched_by_its_index():
    values = RNG.uniform(size=(12, 12))
    table = pd.DataFrame(values, index=SAMPLES, columns=SAMPLES)
    drawn = consensus_matrix(MODEL, table.loc[SAMPLES[::-1], SAMPLES[3:] + SAMPLES[:3]])
    expected = consensus_matrix(MODEL, values).images[0].get_array()
    np.testing.assert_array_equal(drawn.images[0].get_array(), expected)
    with pytest.raises(ValueError, match="The index of stability must have one entry for each"):
        consensus_matrix(MODEL, table.rename({"s0": "t0"}))


def feature_bars(figure):
    """Return the colours of the annotations of each feature, by its name."""
    names = ticks(figure.axes[0].yaxis)
    return dict(zip(names, figure.axes[3].images[0].get_array().tolist(), strict=True))


def test_annotations_of_features_are_matched_by_name():
    expected = feature_bars(heatmap(MODEL, X, feature_annotations=KINDS))
    assert len(expected) == 3
    shuffled = KINDS.sample(frac=1, random_state=1)
    assert feature_bars(heatmap(MODEL, X, feature_annotations=shuffled)) == expected
    series = {name: shuffled[name] for name in KINDS}
    assert feature_bars(heatmap(MODEL, X, feature_annotations=series)) == expected
    by_position = {name: KINDS[name].to_numpy() for name in KINDS}
    assert feature_bars(heatmap(MODEL, X, feature_annotations=by_position)) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (KINDS.iloc[1:].set_axis(list("abcde")), "has no entry for 3 of 3 features"),
        (KINDS.reset_index(drop=True), "has no entry for 3 of 3 features, such as 'g"),
        ({"kind": ["x"] * 4}, "must hold one value for each of the 3 features, got 4 values"),
        (pd.concat([KINDS, KINDS]), "has several entries for"),
    ],
)
def test_annotations_of_other_features_are_refused(annotations, expected):
    with pytest.raises(ValueError, match=expected):
        heatmap(MODEL, X, feature_annotations=annotations)


def test_bars_without_names_refuse_a_shuffled_default_index():
    shuffled = pd.DataFrame({"class": list("abc")}).iloc[[2, 0, 1]]
    with pytest.raises(ValueError, match="Sort it by its index"):
        annotation_bars(shuffled, 3)


# Colours.


def test_the_palette_colours_the_clusters_in_every_plot():
    palette = ["#102030", "orange", (0.0, 1.0, 0.0)]
    expected = ["#102030", to_hex("orange").upper(), "#00FF00"]
    assert list(cluster_colours(3, palette=palette)) == expected
    model = with_tests()
    for ax in (
        dendrogram(model, palette=palette),
        heatmap(model, X, palette=palette).axes[1],
        gap_tests(model, palette=palette),
    ):
        drawn = {to_hex(colour).upper() for colour in ax.collections[0].get_colors()}
        assert drawn > set(expected)
    bars = silhouettes(MODEL, X, palette=palette).patches
    assert {to_hex(bar.get_facecolor()).upper() for bar in bars} == set(expected)
    strips = consensus_matrix(MODEL, np.eye(12), palette=palette).patches
    assert {to_hex(p.get_facecolor()).upper() for p in strips} >= set(expected)


def test_a_palette_may_be_a_colour_map():
    assert len(set(cluster_colours(8, palette="Set2"))) == 8
    assert cluster_colours(2, palette="Set2") == cluster_colours(8, palette="Set2")[:2]
    low, _, high = cluster_colours(3, palette="viridis")
    assert (low, high) == ("#440154", "#FDE725")
    # Tints follow the colours of a short list.
    assert len(set(cluster_colours(4, palette=["red", "blue"]))) == 4


def test_levels_have_the_colours_of_a_mapping_in_any_order():
    given = {"class": {"c": "white", "a": "gold", "b": "navy", "not there": "red"}}
    (bar,) = annotation_bars(CLASSES, 12, colours=given)
    assert bar.legend == (("a", "#FFD700"), ("b", "#000080"), ("c", "#FFFFFF"))
    assert bar.colours[0] == "#FFD700"
    (listed,) = annotation_bars(CLASSES, 12, colours={"class": ["gold", "navy", "white"]})
    assert listed == bar


def test_a_continuous_annotation_has_the_colours_of_a_colour_map():
    numbers = {"age": np.arange(12.0)}
    (bar,) = annotation_bars(numbers, 12, colours={"age": "Greys"})
    assert (bar.colours[0], bar.colours[-1]) == ("#FFFFFF", "#000000")
    (listed,) = annotation_bars(numbers, 12, colours={"age": ["white", "black"]})
    assert (listed.colours[0], listed.colours[-1]) == ("#FFFFFF", "#000000")


def test_annotations_of_samples_and_features_share_the_argument_and_no_default_colour():
    figure = heatmap(MODEL, X, annotations=CLASSES, feature_annotations=KINDS[["kind"]])
    used = {tuple(colours[0]) for colours in feature_bars(figure).values()}
    assert {to_hex(colour).upper() for colour in used} <= set(PALETTE[3:])
    given = {"class": ["red", "lime", "blue"], "kind": {"x": "cyan", "y": "magenta"}}
    figure = heatmap(
        MODEL, X, annotations=CLASSES, feature_annotations=KINDS[["kind"]], colours=given
    )
    used = {to_hex(tuple(colours[0])) for colours in feature_bars(figure).values()}
    assert used <= {"#00ffff", "#ff00ff"}


def test_light_colours_have_an_outline_and_darker_names():
    ax = dendrogram(MODEL, annotations=CLASSES, colours={"class": ["white", "gold", "navy"]})
    first, second, third = ax.get_legend().legend_handles[1:4]
    assert [patch.get_edgecolor()[3] for patch in (first, second, third)] == [1, 1, 0]
    names = {label.get_text(): label.get_color() for label in ax.get_xticklabels()}
    assert names["s0"] == "#808080"
    assert names["s11"] == "#000080"
    assert len(ax.patches) == 1, "the outline of the bar"
    assert not dendrogram(MODEL, annotations=CLASSES).patches


def test_signs_and_candidates_have_the_colours_of_a_palette():
    (ax,) = loadings([[0.5, -0.5]], ["a", "b"], palette=["lime", "red"]).axes
    assert [to_hex(bar.get_facecolor()) for bar in ax.patches] == ["#00ff00", "#ff0000"]
    (ax,) = search_curves(WEIGHTED, palette=["lime", "red"]).axes
    drawn = {line.get_label(): to_hex(line.get_color()) for line in ax.lines}
    assert (drawn["chosen"], drawn["kept"]) == ("#00ff00", "#ff0000")


# Colour maps, limits and sizes.


def test_colour_maps_and_their_limits():
    image = heatmap(MODEL, X, cmap="PuOr", limits=(-1, 2)).axes[0].images[0]
    assert (image.cmap.name, image.get_clim()) == ("PuOr", (-1, 2))
    image = consensus_matrix(MODEL, np.eye(12), cmap="Greens", limits=(0.5, 1)).images[0]
    assert (image.cmap.name, image.get_clim()) == ("Greens", (0.5, 1))


def test_limits_of_axes():
    assert silhouettes(MODEL, X, limits=(-1, 2)).get_xlim() == (-1, 2)
    assert {ax.get_xlim() for ax in markers(MODEL, X, limits=(0, 50)).axes} == {(0, 50)}
    assert {ax.get_xlim() for ax in loadings(WEIGHTED, limits=(0, 7)).axes} == {(0, 7)}
    assert {ax.get_ylim() for ax in search_curves(WEIGHTED, limits=(-3, 3)).axes} == {(-3, 3)}


def test_trees_can_have_the_same_scale_of_heights():
    top = 2 * MODEL.distances_[-1]
    for ax in (
        dendrogram(MODEL, annotations=CLASSES, max_height=top),
        gap_tests(with_tests(), max_height=top),
        *dendrograms({"a": MODEL, "b": WEIGHTED}, max_height=top).axes,
    ):
        assert top < ax.get_ylim()[1] < 1.2 * top
        assert ax.spines["left"].get_bounds() == (0.0, top)
    with pytest.raises(
        ValueError, match=r"max_height must be a number at least .*, the height of the root"
    ):
        dendrogram(MODEL, max_height=MODEL.distances_[-1] / 2)


SIZED = {
    "dendrogram": lambda **o: dendrogram(MODEL, annotations=CLASSES, **o).figure,
    "dendrograms": lambda **o: dendrograms({"a": MODEL}, **o),
    "gap_tests": lambda **o: gap_tests(with_tests(), **o).figure,
    "heatmap": lambda **o: heatmap(MODEL, X, annotations=CLASSES, **o),
    "consensus_matrix": lambda **o: consensus_matrix(MODEL, np.eye(12), **o).figure,
    "silhouettes": lambda **o: silhouettes(MODEL, X, **o).figure,
    "markers": lambda **o: markers(MODEL, X, **o),
    "loadings": lambda **o: loadings(WEIGHTED, **o),
    "search_curves": lambda **o: search_curves(WEIGHTED, **o),
}


@pytest.mark.parametrize("name", SIZED)
def test_figures_have_the_size_that_is_asked_for(name, tmp_path):
    figure = SIZED[name](size=(7.5, 6))
    assert figure.get_size_inches().tolist() == [7.5, 6.0]
    write_picture(figure, tmp_path / "sized.png", dpi=40)


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize(
    "size", [5, "ab", (5,), (5, 6, 7), (0, 5), (5, 101), (-3, 4), (True, 5), (float("nan"), 4), X]
)
def test_other_sizes_are_refused(name, size):
    with pytest.raises(ValueError, match="size must be the width and height") as refused:
        SIZED[name](size=size)
    assert "\n" not in str(refused.value)


AXES = {
    "dendrogram": lambda **o: dendrogram(MODEL, **o),
    "gap_tests": lambda **o: gap_tests(with_tests(), **o),
    "consensus_matrix": lambda **o: consensus_matrix(MODEL, np.eye(12), **o),
    "silhouettes": lambda **o: silhouettes(MODEL, X, **o),
}


@pytest.mark.parametrize("name", AXES)
def test_given_axes_are_drawn_in_and_have_a_size(name):
    ax = Figure().subplots()
    assert AXES[name](ax=ax) is ax
    with pytest.raises(ValueError, match="size must be None if ax is given"):
        AXES[name](ax=ax, size=(4, 4))


# The function with all its other arguments, the argument, values that are refused, and how.
REFUSED = [
    (lambda palette: cluster_colours(3, palette=palette), "palette", "palette must"),
    (lambda palette: dendrogram(MODEL, palette=palette), "palette", "palette must"),
    (lambda palette: silhouettes(MODEL, X, palette=palette), "palette", "palette must"),
    (lambda palette: loadings(WEIGHTED, palette=palette), "palette", "palette must"),
    (lambda palette: search_curves(WEIGHTED, palette=palette), "palette", "palette must"),
    (lambda limits: heatmap(MODEL, X, limits=limits), "limits", "limits must be two finite"),
    (lambda limits: consensus_matrix(MODEL, np.eye(12), limits=limits), "limits", "limits must"),
    (lambda limits: silhouettes(MODEL, X, limits=limits), "limits", "limits must be two finite"),
    (lambda limits: search_curves(WEIGHTED, limits=limits), "limits", "limits must be two finite"),
    (lambda cmap: heatmap(MODEL, X, cmap=cmap), "cmap", "cmap must be a matplotlib colour map"),
    (lambda cmap: consensus_matrix(MODEL, np.eye(12), cmap=cmap), "cmap", "cmap must be a mat"),
    (lambda high: dendrogram(MODEL, max_height=high), "height", "max_height must be a number at"),
]
WRONG = {
    "palette": [5, "", "Set22", [], {}, {"a": "red"}, ["no colour"], [None], [5], ["none"], b"red"],
    "limits": [5, "ab", (1,), (2, 1), (1, 1), (0, np.inf), (np.nan, 1), (True, 2), X, (0, 10**400)],
    "cmap": [5, None, "RdBuu", ["red"], X],
    "height": ["x", -1, True, float("nan"), float("inf"), X, 10**400, [5]],
}


@pytest.mark.parametrize(("draw", "kind", "expected"), REFUSED)
def test_invalid_values_are_refused_with_a_sentence(draw, kind, expected):
    for value in WRONG[kind]:
        with pytest.raises(ValueError, match=expected) as refused:
            draw(value)
        assert "\n" not in str(refused.value)
        assert str(refused.value)[-1] in ".?"


@pytest.mark.parametrize(
    ("colours", "expected"),
    [
        (["red"], "colours must map names of annotations to their colours, got"),
        ("Set2", "colours must map names of annotations"),
        ({"clas": "Set2"}, "have names of annotations as keys, which are 'class', got 'clas'"),
        ({"class": {"a": "red"}}, r"colours\['class'\] must have a colour for each level, such as"),
        ({"class": "Set22"}, r"colours\['class'\] must be a matplotlib .* mean 'Set"),
        ({"class": ["noir"]}, r"colours\['class'\] must hold colours that matplotlib knows"),
        ({"class": 5}, r"colours\['class'\] must be a list of colours or the name of"),
    ],
)
def test_colours_of_annotations_are_checked(colours, expected):
    for draw in (dendrogram, lambda *a, **o: heatmap(*a, X, **o)):
        with pytest.raises(ValueError, match=expected):
            draw(MODEL, annotations=CLASSES, colours=colours)


def test_a_continuous_scale_needs_two_colours():
    with pytest.raises(ValueError, match="at least two colours for a continuous scale"):
        annotation_bars({"age": np.arange(12.0)}, 12, colours={"age": ["red"]})


# Legends.


def sections(*sizes):
    return [
        patch_section(f"title {i}", [(f"{i}: {j}", "#000000") for j in range(size)])
        for i, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("sizes", [(3,), (20, 5), (5, 20, 5), (20, 20, 20), (30, 2), (8,) * 9])
def test_no_section_of_a_legend_is_divided_between_columns(sizes):
    columns = legend_columns(sections(*sizes))
    assert [s.title for column in columns for s in column] == [
        f"title {i}" for i in range(len(sizes))
    ]
    for column in columns:
        assert sum(2 + len(s.entries) for s in column) <= 26 or len(column) == 1


def test_each_column_of_a_drawn_legend_begins_with_a_title():
    rng = np.random.default_rng(1)
    annotations = {
        name: [f"{name} {k}" for k in [*range(k_max), *rng.integers(0, k_max, 40 - k_max)]]
        for name, k_max in (("batch", 17), ("site", 13), ("day", 11), ("hand", 2))
    }
    model = HighVarianceHC(2, n_clusters=2).fit(rng.normal(size=(40, 2)))
    ax = dendrogram(model, annotations=annotations)
    texts = ax.get_legend().get_texts()
    ax.figure.draw_without_rendering()
    columns = {}
    for text in texts:
        if text.get_text():
            box = text.get_window_extent()
            columns.setdefault(round(box.x0), []).append((-box.y1, text))
    assert len(columns) > 1
    for column in columns.values():
        top = min(column, key=lambda entry: entry[0])[1]
        assert top.get_fontweight() == "bold", top.get_text()
    expected = sum(len(set(values)) for values in annotations.values()) + 5 + 2
    assert len(words_of(ax.get_legend())) == expected


def test_stability_of_a_table_is_drawn_with_its_names():
    result = stability(MODEL, X, n_resamples=5, random_state=0)
    assert ticks(consensus_matrix(MODEL, result).xaxis) == [SAMPLES[i] for i in ORDER]
    assert set(cluster_colours(3)) == set(CLUSTER_PALETTE[:3])


# Files.


@pytest.mark.parametrize(
    ("ending", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")]
)
def test_axes_can_be_written_in_every_format_and_always_the_same(ending, start, tmp_path):
    for name in ("one", "two"):
        write_picture(dendrogram(MODEL, annotations=CLASSES), tmp_path / f"{name}.{ending}")
    one, two = (tmp_path / f"{name}.{ending}" for name in ("one", "two"))
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == two.read_bytes()


def test_text_in_pdf_files_stays_text_and_pngs_have_300_dots_per_inch(tmp_path):
    ax = dendrogram(MODEL, size=(4, 3))
    write_picture(ax, tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content
    write_picture(ax, tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    assert [int.from_bytes(content[i : i + 4], "big") for i in (16, 20)] == [1200, 900]


@pytest.mark.parametrize(
    "settings",
    [
        {"image.origin": "lower"},
        {"text.usetex": True},
        {"axes.prop_cycle": cycler(color=[])},
        {"font.size": 30},
        {"savefig.bbox": "tight"},
        {"figure.autolayout": True},
        {"axes.grid": True},
        {"lines.linewidth": 9},
        {"axes.facecolor": "black", "text.color": "white"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_pictures_do_not_depend_on_the_settings_of_matplotlib(settings, tmp_path):
    def draw(name):
        for i, picture in enumerate([heatmap(MODEL, X), dendrogram(MODEL)]):
            write_picture(picture, tmp_path / f"{name}{i}.png", dpi=40)

    draw("default")
    with mpl.rc_context(settings):
        draw("other")
    for i in range(2):
        expected = (tmp_path / f"default{i}.png").read_bytes()
        assert (tmp_path / f"other{i}.png").read_bytes() == expected
