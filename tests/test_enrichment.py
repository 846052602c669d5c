"""Gene sets among the markers of clusters: a hand-made example, scipy, and refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, hypergeom

from mrshc import HighVarianceHC, gene_set_enrichment
from mrshc.datasets import make_simulation_1
from mrshc.io import GeneSets
from mrshc.shell.wording import ParameterError

TESTED = [f"G{i}" for i in range(20)]


def markers_of(rows):
    """Return a table of markers, given the cluster, the feature and the difference of each row."""
    inside, names, difference = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "contrast": "cluster",
            "inside": [str(k) for k in inside],
            "feature": names,
            "mean_inside": difference,
            "mean_outside": 0.0,
        }
    )


HAND_MADE = markers_of(
    [
        *[(0, f"G{i}", 1.0) for i in range(5)],
        *[(0, f"G{i}", -1.0) for i in (10, 11)],
        *[(1, f"G{i}", 2.0) for i in (3, 12)],
    ]
)
SETS = {
    "A": ["G0", "G1", "G2", "G3", "absent"],
    "B": ["G10", "G11", "G12"],
    "C": ["G4", "G19"],
    "D": ["G18", "G19"],
}


def test_a_hand_made_example():
    table = gene_set_enrichment(HAND_MADE, SETS, universe=TESTED, min_size=2)
    rows = table[["cluster", "direction", "gene_set", "n_common", "n_set", "n_markers", "genes"]]
    assert rows.to_numpy().tolist() == [
        [0, "up", "A", 4, 4, 5, "G0; G1; G2; G3"],
        [0, "up", "C", 1, 2, 5, "G4"],
        [0, "down", "B", 2, 3, 2, "G10; G11"],
        [1, "up", "B", 1, 3, 2, "G12"],
        [1, "up", "A", 1, 4, 2, "G3"],
    ]
    # 16 of the C(20, 5) = 15504 lists contain A: those with one of the 16 other genes.
    assert table.p_value[0] == pytest.approx(16 / 15_504)
    # Of the 190 pairs, 3 lie in B.
    assert table.p_value[2] == pytest.approx(3 / 190)
    # Four sets were tested for each list, also those without a gene in common.
    assert table.q_value[0] == pytest.approx(4 * 16 / 15_504)
    assert table.q_value[2] == pytest.approx(4 * 3 / 190)
    assert table.expected.tolist() == pytest.approx([1.0, 0.5, 0.3, 0.3, 0.4])
    assert set(table.n_tested) == {20}


def test_values_are_those_of_scipy_for_markers_of_an_estimator():
    data = make_simulation_1(2, mu=1.5)
    model = HighVarianceHC(60, n_clusters=3, linkage="ward").fit(data.X)
    markers, rng = model.markers(data.X), np.random.default_rng(0)
    p = data.X.shape[1]
    sets = {f"set {i}": [str(j) for j in rng.choice(p, 30, replace=False)] for i in range(40)}
    sets["informative"] = [str(j) for j in range(30)]
    table = gene_set_enrichment(markers, sets, universe=[str(j) for j in range(p)])
    of_clusters = markers[markers.contrast == "cluster"]
    keys = table[["cluster", "direction"]].drop_duplicates().itertuples(index=False)
    for cluster, direction in keys:
        own = of_clusters[of_clusters.inside == str(cluster)]
        sign = 1 if direction == "up" else -1
        found = set(own[np.sign(own.effect_size) == sign].feature.astype(str))
        rows = table[(table.cluster == cluster) & (table.direction == direction)]
        counts = {name: len(found & set(genes)) for name, genes in sets.items()}
        expected = pd.Series(
            {n: hypergeom.sf(k - 1, p, len(sets[n]), len(found)) for n, k in counts.items()}
        )
        adjusted = pd.Series(false_discovery_control(expected), index=expected.index)
        assert set(rows.gene_set) == {name for name, k in counts.items() if k}
        np.testing.assert_allclose(rows.p_value, expected[rows.gene_set], rtol=1e-9)
        np.testing.assert_allclose(rows.q_value, adjusted[rows.gene_set], rtol=1e-9)
        assert (np.diff(rows.p_value) >= 0).all()
    assert table.set_index("gene_set").q_value["informative"].min() < 1e-6


def test_several_features_of_a_gene_count_once():
    markers = markers_of([(0, "p1", 1.0), (0, "p2", 1.0), (0, "p3", -1.0), (0, "p6", 1.0)])
    genes = ["MYC", "MYC", "MYC", None, float("nan"), "", "TP53", 7157.0]
    features = ["p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"]
    table = gene_set_enrichment(
        markers, {"S": ["MYC", "7157", "myc"]}, universe=features, genes=genes, min_size=1
    )
    # The universe is MYC, TP53 and 7157. A gene may be in the list of both directions.
    assert table[["direction", "n_common", "n_set", "n_markers", "n_tested"]].values.tolist() == [
        ["up", 1, 2, 1, 3],
        ["down", 1, 2, 1, 3],
    ]
    assert table.p_value.tolist() == pytest.approx([2 / 3, 2 / 3])


def test_descriptions_come_from_the_file():
    sets = GeneSets(genes={"A": ("G0", "G1")}, descriptions={"A": "made up"})
    table = gene_set_enrichment(HAND_MADE, sets, universe=TESTED, min_size=1)
    assert table.description.tolist() == ["made up"]


def test_sizes_are_counted_in_the_universe():
    for limits, tested in [
        ({"min_size": 3}, {"A", "B"}),
        ({"min_size": 2, "max_size": 2}, {"C"}),
        ({"min_size": 4, "max_size": 4}, {"A"}),
    ]:
        table = gene_set_enrichment(HAND_MADE, SETS, universe=TESTED, **limits)
        assert set(table.gene_set) == tested


def test_no_markers_give_an_empty_table_with_the_same_columns():
    full = gene_set_enrichment(HAND_MADE, SETS, universe=TESTED, min_size=1)
    for markers in (HAND_MADE.iloc[:0], HAND_MADE.assign(contrast="split")):
        table = gene_set_enrichment(markers, SETS, universe=TESTED, min_size=1)
        assert table.empty
        assert list(table) == list(full)
    equal_means = HAND_MADE.assign(mean_inside=0.0)
    assert gene_set_enrichment(equal_means, SETS, universe=TESTED, min_size=1).empty


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"universe": TESTED[1:]}, "universe must have all features .* the marker 'G0' is not in"),
        ({"universe": [*TESTED, "G3"]}, "universe must name every feature once, but 'G3' is rep"),
        ({"genes": ["a"]}, "genes must have one entry for each of the 20 features of universe"),
        ({"gene_sets": {"A": ["X1", "X2"]}}, "no gene in common: .* such as 'X1', the data 'G0'"),
        ({"gene_sets": {"A": ["g7"]}}, "'g7', the data 'G7'. They differ in upper and lower case"),
        ({"gene_sets": {}}, "have no gene in common"),
        ({"min_size": 5}, "No set of gene_sets has 5 to 500 genes .* smallest set has 2, the larg"),
        ({"markers": HAND_MADE.drop(columns="inside")}, "markers must have the column 'inside'"),
    ],
)
def test_unusable_arguments_are_refused(change, sentence):
    given = {"markers": HAND_MADE, "gene_sets": SETS, "universe": TESTED, "min_size": 2} | change
    with pytest.raises(ParameterError, match=sentence):
        gene_set_enrichment(given.pop("markers"), given.pop("gene_sets"), **given)


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="min_size must be a whole number at least 1, got 0"):
        gene_set_enrichment(HAND_MADE, SETS, universe=TESTED, min_size=0)
    with pytest.raises(ValueError, match="max_size must be a whole number at least 4, got 3"):
        gene_set_enrichment(HAND_MADE, SETS, universe=TESTED, min_size=4, max_size=3)


def test_correlated_genes_without_clusters_are_over_represented():
    """What the documentation says about the meaning of the p-values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    X[:, :30] += 2 * rng.normal(size=(60, 1))  # one continuous factor, no clusters
    model = HighVarianceHC(40, n_clusters=2, linkage="ward").fit(X)
    sets = {"factor": [str(j) for j in range(30)], "other": [str(j) for j in range(100, 130)]}
    names = [str(j) for j in range(300)]
    table = gene_set_enrichment(model.markers(X), sets, universe=names)
    assert table.set_index("gene_set").p_value["factor"].min() < 1e-10
