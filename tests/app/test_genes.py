"""Genes from the command line to the files: descriptions, links, gene sets and ranked lists."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from damaged_results import check_refused, drop, edit
from mrshc import gene_set_enrichment
from mrshc.app import GeneSettings, fit, make_plan
from mrshc.app.cli.analysis_commands import _print_result
from mrshc.app.cli.terminal_output import TerminalOutput
from mrshc.app.output_folder import output_file_names, write_outputs
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import GeneSets, Table, load_result
from mrshc.plotting import heatmap, loadings, markers
from mrshc.report.top_features import top_features_sentence
from mrshc.shell.text_cleaning import clean_text

P = 200
PROBES = [f"p{j}" for j in range(P)]
# Every gene has two probes, except the last four probes, which have none.
SYMBOLS = [f"GENE{j // 2}" if j < P - 4 else None for j in range(P)]
SETS = GeneSets(
    genes={"first": tuple(f"GENE{j}" for j in range(12)), "late": ("GENE20", "GENE21", "X")},
    descriptions={"first": "informative", "late": ""},
    source="sets.gmt",
    notes=("2 gene sets with 15 genes.",),
)


def table(**annotations):
    data = make_simulation_1(4, mu=2.0, sizes=(9, 8, 7))
    X = data.X[:, :P].copy()
    X[:, P - 1] = 0.1  # a constant feature, whose mean has a rounding error
    columns = {"symbol": SYMBOLS, "title": [f"title, {j}" for j in range(P)], **annotations}
    samples = np.array(data.sample_names, dtype=object)
    return Table(
        X=X,
        sample_names=samples,
        feature_names=np.array(PROBES, dtype=object),
        sample_annotations=pd.DataFrame({"class": data.labels.astype(str)}, index=samples),
        feature_annotations=pd.DataFrame(columns, index=PROBES).astype(object),
        source="a test",
        notes=("Made up.",),
    )


def run(genes=None, *, data=None, **parameters):
    given = {"n_features_to_select": 20, "n_clusters": 3, **parameters}
    data = table() if data is None else data
    plan = make_plan(data, method="hmv", parameters=given, truth="class", genes=genes)
    return fit(plan)


ALL = GeneSettings(
    column="symbol", url="https://example.org/{gene}", sets=SETS, min_size=2, max_size=50
)


@pytest.fixture(scope="module")
def result():
    return run(ALL)


@pytest.fixture
def folder(result, tmp_path, drawn):  # noqa: ARG001 - which takes the pictures away
    write_outputs(result, tmp_path)
    return tmp_path


def test_scores_are_the_effect_sizes_of_markers_for_all_features(result):
    titles = [f"score_cluster_{k}" for k in (1, 2, 3)]
    own = result.markers.query("contrast == 'cluster'")
    for row in own.itertuples():
        score = result.features.loc[row.feature, f"score_cluster_{row.inside}"]
        assert score == pytest.approx(row.effect_size)
    assert result.features.loc[PROBES[-1], [*titles, "effect_size"]].isna().all()
    assert result.features[titles].drop(PROBES[-1]).notna().all(axis=None)
    assert not set(run(n_clusters=1).features) & set(titles)


def test_scores_of_missing_values_and_of_groups_without_variance():
    data = table()
    data.X[:, 0] = np.where(data.sample_annotations["class"] == "0", 0.3, 0.1)
    data.X[::5, 2] = np.nan
    found = run(data=data)
    sizes = found.about["cluster_sizes"]
    assert sorted(sizes) == [7, 8, 9]
    k = 1 + sizes.index(9)
    assert found.features.loc["p0", f"score_cluster_{k}"] == np.inf
    x, inside = data.X[:, 2], found.labels_ == k - 1
    a, b = (values[~np.isnan(values)] for values in (x[inside], x[~inside]))
    pooled = np.sqrt((a.var() * a.size + b.var() * b.size) / (a.size + b.size - 2))
    score = found.features.loc["p2", f"score_cluster_{k}"]
    assert score == pytest.approx((a.mean() - b.mean()) / pooled)


def test_markers_have_descriptions_and_directions(result):
    markers = result.markers
    assert list(markers)[6:9] == ["feature", "symbol", "title"]
    described = result.features.loc[markers["feature"], ["symbol", "title"]]
    pd.testing.assert_frame_equal(
        markers[["symbol", "title"]], described.reset_index(drop=True), check_dtype=False
    )
    assert set(markers["direction"]) == {"up", "down"}
    np.testing.assert_array_equal(markers["direction"] == "up", markers["effect_size"] > 0)


def test_annotations_with_titles_of_other_columns_keep_one_title_in_all_tables(tmp_path, drawn):  # noqa: ARG001
    data = table(direction="a", contrast="b", node=1, score_cluster_1="c")
    found = run(data=data)
    titles = ["symbol", "title", "direction.2", "contrast.2", "node.2", "score_cluster_1.2"]
    assert list(found.feature_annotations) == titles
    assert [t for t in found.markers if t in titles] == titles
    write_outputs(found, tmp_path)
    assert load_result(tmp_path).markers["contrast.2"].unique().tolist() == ["b"]


def test_gene_sets_are_compared_with_the_genes_that_were_tested(result):
    universe = PROBES[:-1]  # the last feature is constant
    expected = gene_set_enrichment(
        result.markers, SETS, universe=universe, genes=SYMBOLS[:-1], min_size=2, max_size=50
    )
    pd.testing.assert_frame_equal(result.gene_sets, expected)
    assert set(expected["n_tested"]) == {98}
    assert expected.iloc[0]["gene_set"] == "first"
    about = result.about["genes"]["sets"]
    assert about["notes"][1] == "14 of the 15 genes in the sets are among the 98 tested genes."
    assert (about["n_sets"], about["n_tested_sets"], about["n_genes"]) == (2, 2, 98)


def test_a_result_with_genes_is_written_and_loaded(result, folder):
    loaded = load_result(folder)
    assert loaded.genes == result.genes
    pd.testing.assert_frame_equal(loaded.gene_sets, result.gene_sets, check_dtype=False)
    pd.testing.assert_series_equal(loaded.gene_names, result.gene_names)
    pd.testing.assert_frame_equal(loaded.features, result.features, check_dtype=False)
    assert {path.name for path in folder.iterdir()} <= output_file_names()


def read_rnk(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: float(score) for name, score in (line.split("\t") for line in lines)}


def test_ranked_lists_have_all_tested_genes_in_decreasing_order(result, folder):
    assert sorted(path.name for path in folder.glob("*.rnk")) == [
        f"markers_cluster_{k}.rnk" for k in (1, 2, 3)
    ]
    for k in (1, 2, 3):
        ranked = read_rnk(folder / f"markers_cluster_{k}.rnk")
        assert list(ranked.values()) == sorted(ranked.values(), reverse=True)
        assert set(ranked) == {name for name in SYMBOLS if name is not None}
        scores = result.features[f"score_cluster_{k}"]
        pair = scores[["p6", "p7"]]
        assert ranked["GENE3"] == pair[pair.abs().idxmax()]


def test_ranked_lists_have_features_if_no_column_of_genes_is_given(tmp_path, drawn):  # noqa: ARG001
    found = run()
    write_outputs(found, tmp_path)
    ranked = read_rnk(tmp_path / "markers_cluster_2.rnk")
    assert set(ranked) == set(PROBES[:-1])
    assert ranked["p5"] == found.features.loc["p5", "score_cluster_2"]
    assert not (tmp_path / "gene_sets.csv").exists()
    single = run(GeneSettings(sets=SETS, column="symbol", min_size=2), n_clusters=1)
    assert single.gene_sets.empty


def names_on(axes):
    return {tick.get_text() for tick in axes.get_yticklabels()}


def test_pictures_and_sentences_name_genes(result):
    # Every gene has two probes, so their names tell them apart.
    assert result.feature_labels["p6"] == "GENE3 (p6)"
    assert result.feature_labels[PROBES[-1]] == PROBES[-1]
    selected = set(result.feature_labels[result.selected.columns])
    assert names_on(heatmap(result).axes[0]) == selected
    assert names_on(heatmap(result, feature_names=result.selected.columns).axes[0]) == set(
        result.selected.columns
    )
    own = result.markers.query("contrast == 'cluster'")["feature"]
    shown = set.union(*map(names_on, markers(result, top=3).axes))
    assert shown <= set(result.feature_labels[own])
    first = result.feature_labels[result.features.index[0]]
    assert f"between the clusters: {first}, " in top_features_sentence(result)
    symbols = [f"S{j}" for j in range(P - 1)] + ["p0"]
    single = run(GeneSettings(column="symbol"), data=table(symbol=symbols)).feature_labels
    assert single[["p0", "p1", PROBES[-1]]].tolist() == ["S0", "S1", "p0"]


def test_loadings_name_genes():
    found = fit(
        make_plan(
            table(),
            method="shc",
            parameters={"n_features_to_select": 5, "n_clusters": 3},
            genes=GeneSettings(column="symbol"),
        )
    )
    (ax,) = loadings(found).axes
    assert names_on(ax) == set(found.feature_labels[found.selected.columns])
    (ax,) = loadings(found, found.features.index).axes
    assert names_on(ax) == set(found.selected.columns)


@pytest.fixture(scope="module")
def with_small_cluster():
    """Return a result with a cluster of one sample, the first."""
    data = table()
    data.X[0, :100] += 30
    return run(ALL, data=data, n_clusters=4)


def test_clusters_of_one_or_two_samples_have_no_ranked_list(with_small_cluster, tmp_path, drawn):  # noqa: ARG001
    sizes = with_small_cluster.about["cluster_sizes"]
    assert sorted(sizes)[:2] == [1, 7]
    write_outputs(with_small_cluster, tmp_path)
    expected = {f"markers_cluster_{k}.rnk" for k, size in enumerate(sizes, start=1) if size > 1}
    assert {path.name for path in tmp_path.glob("*.rnk")} == expected
    assert f"score_cluster_{1 + sizes.index(1)}" in load_result(tmp_path).features
    tiny = run(n_clusters=24)
    assert tiny.ranked_clusters == [*range(1, 25)]


def test_samples_of_small_clusters_are_named_with_the_option_against_outliers(
    with_small_cluster, capsys
):
    name = with_small_cluster.samples.index[0]
    (sentence,) = with_small_cluster.caveats
    assert sentence == (
        f"Sample {name} is in a cluster of fewer than 3 samples and may be outlying; the method "
        "association with robust=True sets outlying samples apart."
    )
    _print_result(with_small_cluster, TerminalOutput())
    assert "outlying; the method association with --robust sets" in capsys.readouterr().out
    about = with_small_cluster.about
    mrshc = replace(with_small_cluster, about=about | {"method": "mrshc"})
    assert mrshc.caveats[0].endswith("may be outlying; robust=True sets outlying samples apart.")
    robust = replace(with_small_cluster, about=about | {"parameters": {"robust": True}})
    assert robust.caveats[0].endswith(" of fewer than 3 samples and may be outlying.")
    sentence = run(n_clusters=24).caveats[0]
    assert sentence.startswith(
        "Samples C1.1, C1.2, C1.3, C1.4, C1.5 and 19 more are in clusters of"
    )
    assert run(n_clusters=1).caveats == []


def test_the_heat_map_for_treeview_has_the_descriptions(folder):
    lines = (folder / "heatmap.cdt").read_text(encoding="utf-8").splitlines()
    rows = {cells[1]: cells[2] for cells in (line.split("\t") for line in lines[3:])}
    assert len(rows) == 20
    for name, text in rows.items():
        j = int(name[1:])
        assert text == f"p{j}, GENE{j // 2}, title, {j}"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"column": "gene"}, "There is no description column 'gene' of the features; there are: s"),
        ({"url": "javascript:{gene}"}, "gene_url must be a web address .* refused because it does"),
        ({"sets": SETS}, "no gene in common: the sets have genes such as 'GENE0', the data 'p0'"),
        ({"sets": SETS, "column": "symbol", "min_size": 20}, "No set of gene_sets has 20 to 500"),
        (
            {
                "sets": GeneSets(
                    genes={"a": ("GENE1", "GENE2"), "b": ("GENE3",)},
                    descriptions={"a": "GENE4", "b": "GENE5"},
                    lines={"a": 1, "b": 2},
                    source="x.gmt",
                ),
                "column": "symbol",
                "min_size": 1,
            },
            "x.gmt has genes in its second column, such as 'GENE4' in line 1, where a .gmt file",
        ),
    ],
)
def test_unusable_settings_are_refused_before_the_fit(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        make_plan(
            table(),
            method="hmv",
            parameters={"n_features_to_select": 20},
            genes=GeneSettings(**settings),
        )


def test_genes_that_differ_in_case_are_mentioned():
    sets = GeneSets(genes={"a": ("GENE1", "gene2", "Gene3")}, descriptions={"a": ""}, source="x")
    found = run(GeneSettings(column="symbol", sets=sets, min_size=1))
    assert found.genes["sets"]["notes"][-1] == (
        "2 further genes would be if upper and lower case were ignored, such as 'Gene3' in the "
        "sets and 'GENE3' in the data; they do not count."
    )


def test_a_table_of_gene_sets_of_another_length_is_refused(folder):
    edit(folder / "gene_sets.csv", drop)
    check_refused(folder, r"gene_sets.csv has \d+ rows where \d+ were expected")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"url": "javascript:alert({gene})"}, "result.json has a template of an address, but it d"),
        ({"column": "other"}, "result.json lacks the annotation"),
        ({"sets": {}}, "gene_sets.csv is damaged, or does not fit"),
    ],
)
def test_changed_settings_of_genes_are_refused(folder, change, sentence):
    path = folder / "result.json"
    about = json.loads(path.read_bytes())
    about["genes"] |= change
    path.write_text(json.dumps(about) + "\n", encoding="utf-8")
    check_refused(folder, sentence)


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = table()
    frame = pd.DataFrame(data.X.T, index=data.feature_names, columns=data.sample_names)
    frame.insert(0, "title", [f"title {j}" for j in range(P)])
    frame.insert(0, "symbol", SYMBOLS)
    frame.to_csv("t.tsv", sep="\t", index_label="probe")
    lines = ["\t".join([n, SETS.descriptions[n], *SETS[n]]) for n in SETS]
    (tmp_path / "sets.gmt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


COMMAND = ["cluster", "t.tsv", "--method", "hmv", "-q", "20", "-k", "3", "--out", "out"]


def test_the_command_line_reports_gene_sets(main, written):
    genes = ["--gene-column", "symbol", "--gene-sets", "sets.gmt", "--min-set-size", "2"]
    link = ["--gene-url", "https://example.org/?q={gene}"]
    code, printed, errors = main(*COMMAND, *genes, *link)
    printed = clean_text(printed + errors)
    assert code == 0, printed
    assert "Read sets.gmt: 2 gene sets with 15 genes." in printed
    assert re.search(
        r"Gene sets over-represented among the markers .* cluster \d, up: first", printed
    )
    loaded = load_result(written / "out")
    assert loaded.genes["url"] == "https://example.org/?q={gene}"
    assert loaded.gene_sets["gene_set"].iloc[0] == "first"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--gene-sets", "none.gmt"], "There is no file none.gmt."),
        (["--gene-sets", "sets.gmt"], "--gene-sets and the data have no gene in common: the sets"),
        (["--gene-sets", "sets.gmt"], "or give the genes of the features by --gene-column."),
        (["--gene-sets", "t.tsv"], "--gene-sets and the data have no gene in common"),
        (["--min-set-size", "3"], "--min-set-size has no effect without --gene-sets."),
        (["--gene-column", "nothing"], "there are: symbol, title."),
        (["--gene-url", "example.org/{gene}"], "--gene-url must be a web address (http or https)"),
        (
            ["--gene-sets", "sets.gmt", "--gene-column", "symbol"],
            "No set of --gene-sets has 10 to 500 genes",
        ),
        (
            ["--gene-sets", "sets.gmt", "--gene-column", "symbol", "--min-set-size", "0"],
            "--min-set-size must be a whole number at least 1, got 0.",
        ),
    ],
)
def test_the_command_line_refuses_unusable_options_before_the_fit(main, written, options, sentence):
    if sentence.startswith("No set"):
        (written / "sets.gmt").write_text("late\t\tGENE20\tGENE21\n", encoding="utf-8")
    code, _, printed = main(*COMMAND, *options)
    assert code == 2
    assert sentence in clean_text(printed)
    assert not (written / "out").exists()
