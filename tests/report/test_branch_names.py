"""Branches are named by their clusters, their classes and the markers that are higher in them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mrshc.app import GeneSettings, fit, make_plan
from mrshc.core.trees import Tree
from mrshc.report.branch_names import (
    branch_name,
    clusters_below,
    dominant_class,
    higher_features,
)
from mrshc.report.branch_table import branch_table
from mrshc.report.gene_sets_section import gene_sets_section, result_sentence
from tiny import tiny_table


@pytest.mark.parametrize(
    ("clusters", "name"),
    [
        ([2], "cluster 2"),
        ([1, 2], "clusters 1 and 2"),
        ([1, 2, 3], "clusters 1 to 3"),
        ([1, 3, 4], "clusters 1, 3 and 4"),
        ([1, 2, 3, 4, 5], "all clusters"),
    ],
)
def test_names_of_clusters(clusters, name):
    assert branch_name(clusters, n_clusters=5) == name


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        (["u", "u"], "all u (2)"),
        (["u", "u", "v", None, float("nan")], "mostly u (2 of 3)"),
        (["u", "v"], "mixed"),
        ([None], ""),
        ([], ""),
        ([1, 1, 2], "mostly 1 (2 of 3)"),
    ],
)
def test_the_class_of_most_samples(classes, text):
    assert dominant_class(classes) == text


@pytest.fixture(scope="module")
def result():
    table = tiny_table()
    X = np.vstack([table.X, table.X + 1e-3, table.X - 1e-3])
    samples = np.array([f"s{i}" for i in range(18)], dtype=object)
    classes = np.tile([*"uuuvv", None], 3).astype(object)
    return make_result(X, samples, classes)


def make_result(X, samples, classes, genes=None, n_clusters=2):
    table = replace(
        tiny_table(),
        X=X,
        sample_names=samples,
        sample_annotations=pd.DataFrame({"class": classes}, index=samples).astype(object),
    )
    parameters = {"n_features_to_select": 3, "n_clusters": n_clusters}
    plan = make_plan(table, method="hmv", parameters=parameters, truth="class", genes=genes)
    return fit(plan)


def test_higher_features_have_higher_means_than_in_the_sibling(result):
    tree = Tree(linkage_matrix=result.linkage_matrix_)
    left, right = tree.children(tree.root)
    found = higher_features(result)
    assert found
    for node, sibling in ((left, right), (right, left)):
        for name in found.get(node, []):
            x = result.selected[name].to_numpy()
            assert x[tree.members(node)].mean() > x[tree.members(sibling)].mean()


def test_the_table_lists_branches_from_the_root_downwards(result):
    table = branch_table(result)
    assert table.headings[:3] == ["branch", "samples", "class"]
    assert [row[:2] for row in table.rows] == [
        *(["all clusters", "18"], ["cluster 1", "9"], ["cluster 2", "9"]),
    ]
    assert table.rows[0][2] == "mostly u (9 of 15)"
    assert {row[2] for row in table.rows[1:]} == {"all u (9)", "all v (6)"}
    root = 2 * 18 - 2
    assert clusters_below(result, root) == [1, 2]


def test_a_single_cluster_has_no_table(result):
    X = np.column_stack([result.selected.to_numpy(), np.arange(36).reshape(18, 2)])
    single = make_result(X, result.samples.index.to_numpy(), ["u"] * 18, n_clusters=1)
    assert branch_table(single) is None


def test_markers_of_branches_are_labelled_by_their_genes(result):
    samples, classes = result.samples.index.to_numpy(), result.samples["class"].to_numpy()
    X = np.column_stack([result.selected.to_numpy(), np.arange(36).reshape(18, 2)])
    by_gene = make_result(X, samples, classes, GeneSettings(column="locus"))
    assert by_gene.feature_labels["g3"] == "q (g3)"
    shown = {text for names in higher_features(by_gene).values() for text in names}
    assert "q (g3)" in shown
    assert shown <= set(by_gene.feature_labels)


def test_results_without_gene_sets_have_no_section(result):
    assert gene_sets_section(result) is None
    assert result_sentence(result) == ""
