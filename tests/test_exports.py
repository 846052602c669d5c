import csv
import io
import re

import gp.data
import numpy as np
import pytest
from Bio import Cluster, Phylo
from scipy.cluster.hierarchy import leaves_list, linkage

from mrshc import MrSHC
from mrshc.datasets import make_simulation_1
from mrshc.exports import gct, newick, rnk, treeview

TOKEN = re.compile(r"'(?:[^']|'')*'|[(),;]|:[^,();]+|[^(),:;']+")


def read_newick(text):
    """Read Newick with a stack: the sets of names below each node, and the depth of each leaf."""
    stack, clades, depths = [[]], [], {}
    for token in TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            inside = stack.pop()
            leaves = [leaf for child in inside for leaf in child]
            clades.append(frozenset(leaves))
            stack[-1].append(leaves)
        elif token.startswith(":"):
            for leaf in stack[-1][-1]:
                depths[leaf] = depths.get(leaf, 0.0) + float(token[1:])
        elif token not in ",;":
            name = token[1:-1].replace("''", "'") if token.startswith("'") else token
            stack[-1].append([name])
    assert len(stack) == len(stack[0]) == 1
    return clades, depths


def clades_of(Z, names):
    below = [frozenset([name]) for name in names]
    for left, right in Z[:, :2].astype(int):
        below.append(below[left] | below[right])
    return below[len(names) :]


@pytest.mark.parametrize("method", ["complete", "average", "centroid"])
def test_the_tree_is_the_same_and_all_leaves_have_the_same_depth(method):
    Z = linkage(np.random.default_rng(0).normal(size=(40, 3)), method)
    names = [f"s{i}" for i in range(40)]
    clades, depths = read_newick(newick(Z, names))
    assert set(clades) == set(clades_of(Z, names))
    np.testing.assert_allclose([depths[name] for name in names], Z[-1, 2], rtol=1e-9)


def test_names_with_special_characters_are_preserved():
    names = ["plain", "it's", "a b", "(x,y):1;", "under_score", "tab\there", "größe", "1e-5", ""]
    Z = linkage(np.arange(len(names), dtype=float)[:, None] ** 2, "single")
    _, depths = read_newick(newick(Z, names))
    assert set(depths) == {name.replace("\t", " ") for name in names}


def read_labels(text):
    """Return the label of each inner node by the names below it, which need no quotes here."""
    labels, stack = {}, [[]]
    for token in re.findall(r"\(|\)[^(),:;]*|:[^(),;]+|[^(),:;]+", text):
        if token == "(":
            stack.append([])
        elif token.startswith(")"):
            inside = stack.pop()
            labels[frozenset(inside)] = token[1:]
            stack[-1] += inside
        elif not token.startswith(":"):
            stack[-1].append(token)
    return labels


def tree_with_support(n=30):
    rng = np.random.default_rng(1)
    Z = linkage(rng.normal(size=(n, 3)), "average")
    support = rng.random(n - 1).round(4)
    support[3] = support[-1] = np.nan
    support[5], support[6] = 0.0, 1.0
    return Z, [f"s{i}" for i in range(n)], support


def test_supports_are_the_labels_of_inner_nodes():
    Z, names, support = tree_with_support()
    text = newick(Z, names, support=support)
    labels = read_labels(text)
    for clade, value in zip(clades_of(Z, names), support, strict=True):
        assert labels[clade] == ("" if np.isnan(value) else f"{value:g}")
    without = re.sub(r"\)[0-9.]+", ")", text)
    assert without == newick(Z, names)


def test_biopython_reads_supports_as_confidence():
    Z, names, support = tree_with_support()
    tree = Phylo.read(io.StringIO(newick(Z, names, support=support)), "newick")
    read = {
        frozenset(leaf.name for leaf in clade.get_terminals()): clade.confidence
        for clade in tree.get_nonterminals()
    }
    expected = {
        clade: None if np.isnan(value) else value
        for clade, value in zip(clades_of(Z, names), support, strict=True)
    }
    assert read == expected
    assert all(clade.name is None for clade in tree.get_nonterminals())


def test_ete_reads_supports():
    ete = pytest.importorskip("ete3")
    Z, names, support = tree_with_support()
    tree = ete.Tree(newick(Z, names, support=support), format=0)
    read = {frozenset(node.get_leaf_names()): node.support for node in tree.traverse()}
    for clade, value in zip(clades_of(Z, names), support, strict=True):
        if not np.isnan(value):
            assert read[clade] == pytest.approx(value)


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ([0.5], r"support must have the shape \(2,\), .* got \(1,\)"),
        ([0.5, -0.5], "support must be at least 0 .* but holds -0.5"),
        ([np.inf, 0.5], "support must be at least 0 .* but holds inf"),
    ],
)
def test_invalid_supports_are_refused(support, message):
    with pytest.raises(ValueError, match=message):
        newick([[0, 1, 1.0, 2], [2, 3, 4.0, 3]], ["a", "b", "c"], support=support)


def chain(n):
    """Return the deepest tree of n leaves."""
    return np.column_stack(
        [
            np.r_[0, n + np.arange(n - 2)],
            np.arange(1, n),
            np.arange(1.0, n),
            np.arange(2, n + 1),
        ]
    )


def test_deep_trees_do_not_exhaust_the_call_stack():
    text = newick(chain(20_000), range(20_000))
    assert text.count("(") == 19_999


def read_with_biopython(text):
    """Return the leaves below each inner node, and the depth of each node, without recursion."""
    root = Phylo.read(io.StringIO(text), "newick").root
    order, depths = [], {root: 0.0}
    waiting = [root]
    while waiting:
        clade = waiting.pop()
        order.append(clade)
        for child in clade.clades:
            depths[child] = depths[clade] + child.branch_length
            waiting.append(child)
    below = {}
    for clade in reversed(order):
        leaves = [leaf for child in clade.clades for leaf in below[child]]
        below[clade] = leaves if clade.clades else [clade.name]
    return {frozenset(below[c]): depths[c] for c in order}


@pytest.mark.parametrize("method", ["single", "ward", "centroid"])
def test_biopython_reads_the_same_tree_with_the_same_heights(method):
    Z = linkage(np.random.default_rng(0).normal(size=(60, 3)), method)
    names = [f"sample_{i}" for i in range(60)]
    depths = read_with_biopython(newick(Z, names))
    assert len(depths) == 119
    for clade, height in zip(clades_of(Z, names), Z[:, 2], strict=True):
        assert depths[clade] == pytest.approx(Z[-1, 2] - height, abs=1e-10)


def test_biopython_reads_the_same_names():
    # It does not read a quotation mark at the start of a name or after a backslash.
    names = [
        "plain",
        "it's",
        "a, b",
        "(x,y):1;",
        "under_score",
        "größe 日本",
        "[c]",
        'say "x"',
        "b'",
    ]
    Z = linkage(np.arange(len(names), dtype=float)[:, None] ** 2, "single")
    depths = read_with_biopython(newick(Z, names))
    assert set(clades_of(Z, names)) < set(depths)
    assert {name for clade in depths if len(clade) == 1 for name in clade} == set(names)


def test_biopython_reads_deep_trees():
    n = 2_000
    depths = read_with_biopython(newick(chain(n), range(n)))
    sizes = sorted(len(clade) for clade in depths)
    assert sizes == [1] * n + list(range(2, n + 1))
    assert {len(clade): n - 1 - depth for clade, depth in depths.items() if len(clade) > 1} == {
        size: size - 1 for size in range(2, n + 1)
    }


def test_a_fitted_tree_can_be_exported():
    data = make_simulation_1(0, mu=2.0)
    model = MrSHC(20, rank=1, random_state=0).fit(data.X)
    clades, _ = read_newick(newick(model.linkage_matrix_, data.sample_names))
    for label in range(model.n_clusters_):
        members = {n for n, k in zip(data.sample_names, model.labels_, strict=True) if k == label}
        assert frozenset(members) in clades


def test_a_wrong_number_of_names_is_refused():
    with pytest.raises(ValueError, match=r"with 2 rows for 3 samples, got the shape \(1, 4\)"):
        newick([[0, 1, 1.0, 2]], ["a", "b", "c"])


CYCLE, OUTSIDE = [[0, 1, 1.0, 2], [4, 2, 2.0, 3]], [[0, 10**9, 1.0, 2], [2, 3, 2.0, 3]]


@pytest.mark.parametrize("matrix", [CYCLE, OUTSIDE])
def test_matrices_that_are_not_trees_are_refused(matrix):
    sentence = r"row \d joins node \S+, but must join two of the nodes 0 to \d"
    with pytest.raises(ValueError, match="linkage_matrix: " + sentence):
        newick(matrix, ["a", "b", "c"])
    names = {"sample_names": ["a", "b", "c"], "feature_names": ["d", "e", "f"]}
    X = np.eye(3)
    with pytest.raises(ValueError, match="sample_tree: " + sentence):
        treeview(X, sample_tree=matrix, feature_tree=None, **names)
    with pytest.raises(ValueError, match="feature_tree: " + sentence):
        treeview(X, sample_tree=None, feature_tree=matrix, **names)


# GCT ----------------------------------------------------------------------------------------


def table(n=7, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-200, 200, size=(n, p))
    X[0, 0] = np.nan
    return X


def read_gct(text):
    """Read GCT by its specification, and check counts and lengths of lines."""
    version, size, *lines = text.removesuffix("\n").split("\n")
    counts = [int(word) for word in size.split("\t")]
    p, n, n_about_features, n_about_samples = {"#1.2": [*counts, 1, 0], "#1.3": counts}[version]
    cells = [line.split("\t") for line in lines]
    assert len(cells) == 1 + n_about_samples + p
    assert {len(row) for row in cells} == {1 + n_about_features + n}
    assert cells[0][0] == ("Name" if version == "#1.2" else "id")
    start = 1 + n_about_features
    header, body = cells[0], cells[1 + n_about_samples :]
    return {
        "version": version,
        "samples": header[start:],
        "features": [row[0] for row in body],
        "about_features": {
            key: [row[1 + k] for row in body] for k, key in enumerate(header[1:start])
        },
        "about_samples": {row[0]: row[start:] for row in cells[1 : 1 + n_about_samples]},
        "X": np.array([[float(cell) for cell in row[start:]] for row in body]).T,
    }


NAMES = {
    "feature_names": ["g1", "it's", "a,b c", "größe", "g\t5"],
    "sample_names": [f"sample {i}" for i in range(7)],
}
READ_AS = ["g1", "it's", "a,b c", "größe", "g 5"]


def test_genepattern_reads_the_same_table():
    X = table()
    described = ["one", "two\nlines", "3", "4", "five"]
    frame = gp.data.GCT(io.StringIO(gct(X, descriptions=described, **NAMES)))
    # Its reader does not round to the nearest number in the last digit.
    np.testing.assert_allclose(frame.to_numpy().T, X, rtol=1e-14)
    assert list(frame.columns) == NAMES["sample_names"]
    assert frame.index.names == ["Name", "Description"]
    assert list(frame.index) == list(
        zip(READ_AS, ["one", "two lines", "3", "4", "five"], strict=True)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_read_back_exactly(dtype):
    X = np.random.default_rng(0).normal(size=(7, 5)).astype(dtype)
    X[2, 3] = np.nan
    for more in ({}, {"sample_annotations": {"cluster": range(7)}}):
        np.testing.assert_array_equal(read_gct(gct(X, **NAMES, **more))["X"], X)


def test_without_annotations_it_is_version_1_2():
    content = read_gct(gct(table(), **NAMES))
    assert content["version"] == "#1.2"
    assert content["about_features"] == {"Description": ["na"] * 5}
    assert content["features"] == READ_AS


def test_annotations_make_it_version_1_3():
    text = gct(
        table(),
        descriptions=["d"] * 5,
        feature_annotations={
            "weight": [0.5, None, 0.0, float("nan"), -1],
            "tab\tkey": list("abcde"),
        },
        sample_annotations={"cluster": [0, 0, 1, 1, 2, 2, 2], "class": ["A\r\n", "", *"BCDEF"]},
        **NAMES,
    )
    content = read_gct(text)
    assert content["version"] == "#1.3"
    assert content["features"] == READ_AS
    assert content["samples"] == NAMES["sample_names"]
    assert content["about_features"] == {
        "Description": ["d"] * 5,
        "weight": ["0.5", "na", "0.0", "na", "-1"],
        "tab key": list("abcde"),
    }
    assert content["about_samples"] == {
        "cluster": list("0011222"),
        "class": ["A  ", "na", *"BCDEF"],
    }


def test_gct_refuses_inconsistent_arguments():
    X = np.ones((7, 5))
    with pytest.raises(ValueError, match=r"X must have the shape \(7, 5\) .* got \(5, 7\)"):
        gct(X.T, **NAMES)
    with pytest.raises(
        ValueError,
        match=r"sample_annotations\['c'\] must hold 7 entries, one for each sample, got 2",
    ):
        gct(X, sample_annotations={"c": [1, 2]}, **NAMES)
    with pytest.raises(
        ValueError, match="descriptions must hold 5 entries, one for each feature, got 0"
    ):
        gct(X, descriptions=[], **NAMES)
    with pytest.raises(ValueError, match="feature_annotations must not hold 'Description'"):
        gct(X, descriptions=["d"] * 5, feature_annotations={"Description": ["e"] * 5}, **NAMES)
    with pytest.raises(ValueError, match="finite or NaN, but holds inf"):
        gct(np.where(X > 0, np.inf, X), **NAMES)


# Cluster 3.0 and Java TreeView --------------------------------------------------------------


def correlation_tree(X, method="average"):
    return linkage(X.T, method, metric="correlation")


def biopython_tree(Z, n):
    def number(node):
        return int(node) if node < n else n - 1 - int(node)

    return Cluster.Tree([Cluster.Node(number(a), number(b), h) for a, b, h, _ in Z])


def positions(Z):
    out = np.empty(len(Z) + 1)
    out[leaves_list(Z)] = np.arange(len(Z) + 1)
    return out


@pytest.mark.parametrize("method", ["average", "complete", "single"])
@pytest.mark.parametrize("shape", [(30, 20), (2, 9), (9, 2)])
def test_files_are_those_that_biopython_writes(method, shape, tmp_path):
    X = np.random.default_rng(0).normal(size=shape)
    n, p = shape
    by_samples, by_features = linkage(X, method), correlation_tree(X, method)
    names = {
        "sample_names": [f"s {i}" for i in range(n)],
        "feature_names": [f"g'{j}" for j in range(p)],
    }
    record = Cluster.Record()
    record.data, record.uniqid = X.T, "UNIQID"
    record.geneid, record.expid = names["feature_names"], names["sample_names"]
    record.gorder, record.eorder = positions(by_features), positions(by_samples)
    scaled = biopython_tree(by_samples, n)
    scaled.scale()
    record.save(str(tmp_path / "theirs"), biopython_tree(by_features, p), scaled)

    ours = treeview(X, sample_tree=by_samples, feature_tree=by_features, **names)
    assert ours.cdt == (tmp_path / "theirs.cdt").read_text()
    for text, suffix in ((ours.gtr, "gtr"), (ours.atr, "atr")):
        mine, theirs = (
            list(csv.reader(io.StringIO(t), delimiter="\t"))
            for t in (text, (tmp_path / f"theirs.{suffix}").read_text())
        )
        assert [row[:3] for row in mine] == [row[:3] for row in theirs]
        np.testing.assert_allclose(
            [float(row[3]) for row in mine], [float(row[3]) for row in theirs], atol=1e-12
        )


def test_biopython_reads_the_data_in_the_order_of_the_trees():
    X = table()
    Z, F = linkage(np.arange(7.0)[:, None] ** 2), linkage(np.arange(5.0)[::-1, None] / 9)
    text = treeview(X, sample_tree=Z, feature_tree=F, **NAMES).cdt
    # It reads tables without trees: the column and the row that point to these are left out.
    lines = [line.split("\t") for line in text.splitlines()]
    assert (lines[0][0], lines[1][0], lines[2][0]) == ("GID", "AID", "EWEIGHT")
    plain = [lines[0][1:], ["EWEIGHT", *lines[2][2:]], *(line[1:] for line in lines[3:])]
    record = Cluster.read(io.StringIO("\n".join("\t".join(line) for line in plain)))
    rows, columns = leaves_list(F), leaves_list(Z)
    wanted = X.T[np.ix_(rows, columns)]
    np.testing.assert_array_equal(np.where(record.mask, record.data, np.nan), wanted)
    assert record.geneid == [READ_AS[j] for j in rows]
    assert record.expid == [NAMES["sample_names"][i] for i in columns]
    assert [line[0] for line in lines[3:]] == [f"GENE{j}X" for j in rows]
    assert lines[1][4:] == [f"ARRY{i}X" for i in columns]


def test_without_trees_the_order_is_that_of_the_data():
    X = np.random.default_rng(0).normal(size=(7, 5))
    files = treeview(X, sample_tree=None, feature_tree=None, **NAMES)
    assert files.gtr is files.atr is None
    record = Cluster.read(io.StringIO(files.cdt))
    np.testing.assert_array_equal(record.data, X.T)
    assert record.genename == READ_AS


def similarities(text):
    return np.array([float(line.split("\t")[3]) for line in text.splitlines()])


@pytest.mark.parametrize("method", ["centroid", "median"])
def test_similarities_never_rise_even_where_heights_fall(method):
    X = np.random.default_rng(1).normal(size=(40, 30))
    Z = linkage(X[:, :2], method)
    F = correlation_tree(X)
    F[5, 2], F[9, 2] = F[9, 2], F[5, 2]
    assert np.any(np.diff(Z[:, 2]) < 0)
    names = {"sample_names": range(40), "feature_names": range(30)}
    files = treeview(X, sample_tree=Z, feature_tree=F, **names)
    for text in (files.gtr, files.atr):
        values = similarities(text)
        assert np.all(np.diff(values) <= 0)
        assert np.all(np.abs(values) <= 1)
    assert similarities(files.atr)[-1] == 0


def test_similarities_of_features_are_correlations():
    X = np.random.default_rng(1).normal(size=(40, 3))
    X[:, 2] = -X[:, 1]
    R = np.corrcoef(X.T)
    F = correlation_tree(X, "complete")
    names = {"sample_names": range(40), "feature_names": range(3)}
    values = similarities(treeview(X, sample_tree=None, feature_tree=F, **names).gtr)
    np.testing.assert_allclose(values, [max(R[0, 1], R[0, 2]), -1])
    rounded = [[0, 1, -1e-16, 2], [2, 3, 2 + 1e-12, 3]]
    files = treeview(X, sample_tree=None, feature_tree=rounded, **names)
    assert similarities(files.gtr).tolist() == [1, -1]


def test_a_single_feature_and_two_samples_can_be_exported():
    names = {"sample_names": ["a", "b"], "feature_names": ["g"]}
    for none in (None, np.empty((0, 4))):
        files = treeview([[3], [1]], sample_tree=[[0, 1, 2.0, 2]], feature_tree=none, **names)
        assert files.gtr is None
        assert files.atr == "NODE1X\tARRY0X\tARRY1X\t0.0\n"
        assert files.cdt.splitlines()[-1] == "g\tg\t1.000000\t3.0\t1.0"


def test_identical_samples_have_similarity_one():
    files = treeview(
        np.ones((3, 2)),
        sample_tree=linkage(np.ones((3, 2))),
        feature_tree=None,
        sample_names="abc",
        feature_names="gh",
    )
    assert similarities(files.atr).tolist() == [1.0, 1.0]


def test_deep_trees_can_be_exported():
    n = 20_000
    names = {"sample_names": range(n), "feature_names": ["g"]}
    files = treeview(np.arange(n)[:, None], sample_tree=chain(n), feature_tree=None, **names)
    assert files.atr.splitlines()[-1].startswith(f"NODE{n - 1}X\tNODE{n - 2}X\tARRY{n - 1}X\t")
    shown = np.array(files.cdt.splitlines()[-1].split("\t")[3:], dtype=float)
    np.testing.assert_array_equal(shown, np.arange(n))


def test_treeview_refuses_inconsistent_arguments():
    X = np.random.default_rng(0).normal(size=(7, 5))
    Z, F = linkage(X), correlation_tree(X)
    with pytest.raises(ValueError, match=r"feature_tree must have .*, with 4 rows for 5 samples"):
        treeview(X, sample_tree=Z, feature_tree=Z, **NAMES)
    far = F * [1, 1, 100, 1]
    with pytest.raises(ValueError, match=r"heights of 1 - correlation, between 0 and 2, got \d+"):
        treeview(X, sample_tree=Z, feature_tree=far, **NAMES)
    F[0, 2] = np.nan
    with pytest.raises(ValueError, match="feature_tree must be finite"):
        treeview(X, sample_tree=Z, feature_tree=F, **NAMES)
    with pytest.raises(ValueError, match=r"X must have the shape \(7, 5\)"):
        treeview(X.T, sample_tree=Z, feature_tree=None, **NAMES)


def test_ranked_lists_are_sorted_and_leave_out_features_without_a_score():
    text = rnk(["a", "b", "c", "d", "e"], [0.5, np.nan, -2.0, 3.25, 0.5])
    assert text == "d\t3.25\na\t0.5\ne\t0.5\nc\t-2.0\n"
    assert rnk([], []) == ""


def test_infinite_scores_of_ranked_lists_become_the_largest_finite_one():
    assert rnk(["a", "b", "c"], [np.inf, -4.0, -np.inf]) == "a\t4.0\nb\t-4.0\nc\t-4.0\n"
    assert rnk(["a", "b"], [np.inf, 0.0]) == "a\t1.0\nb\t0.0\n"


def test_names_in_ranked_lists_are_not_changed_except_for_line_ends_and_tabs():
    # Enrichment programs compare names with genes: no apostrophe may be added.
    assert rnk(["=a", "b\tc\nd"], [2, 1]) == "=a\t2.0\nb c d\t1.0\n"


def test_ranked_lists_need_one_score_for_each_feature():
    with pytest.raises(ValueError, match=r"scores must have the shape \(2,\), one for each"):
        rnk(["a", "b"], [1.0])


def test_descriptions_are_shown_by_treeview():
    X = np.arange(6.0).reshape(2, 3)
    given = {"sample_tree": None, "feature_tree": None, "sample_names": ["s", "t"]}
    names = ["g", "h", "i"]
    files = treeview(X, **given, feature_names=names, descriptions=["=1", None, "a\tb"])
    rows = [line.split("\t")[:2] for line in files.cdt.splitlines()[2:]]
    assert rows == [["g", "'=1"], ["h", "h"], ["i", "a b"]]
    with pytest.raises(ValueError, match="descriptions must hold 3 entries, one for each feature"):
        treeview(X, **given, feature_names=names, descriptions=["x"])
