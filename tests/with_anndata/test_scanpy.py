"""Results of mrshc in real AnnData objects, and their plots by scanpy."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

ad = pytest.importorskip("anndata", reason="anndata is not installed")
sc = pytest.importorskip("scanpy", reason="scanpy is not installed")

from scipy import sparse  # noqa: E402

import mrshc  # noqa: E402
from mrshc.datasets import make_simulation_1  # noqa: E402
from mrshc.preprocessing import RawScaleWarning  # noqa: E402

DATA = make_simulation_1(1, mu=2.0)
GENES = [f"gene{j}" for j in range(500)]
SAMPLES = [f"sample{i}" for i in range(60)]


@pytest.fixture(autouse=True)
def no_windows():
    mpl.use("Agg")
    yield
    mpl.pyplot.close("all")


@pytest.fixture
def adata():
    obs = pd.DataFrame({"true": DATA.labels.astype(str)}, index=SAMPLES)
    return ad.AnnData(DATA.X.copy(), obs=obs, var=pd.DataFrame(index=GENES))


@pytest.fixture(scope="module")
def cells():
    """600 cells of 8 donors and 3 types, with 20 genes for each of two types."""
    rng = np.random.default_rng(0)
    kind, donor = np.repeat(["T", "B", "NK"], 200), np.tile([f"d{i}" for i in range(8)], 75)
    counts = rng.poisson(1.0, size=(600, 300))
    counts[kind == "T", :20] += 2
    counts[kind == "B", 20:40] += 2
    obs = pd.DataFrame(
        {"kind": pd.Categorical(kind), "donor": pd.Categorical(donor)},
        index=[f"cell{i}" for i in range(600)],
    )
    obs["group"] = (obs["donor"].astype(str) + "_" + obs["kind"].astype(str)).astype("category")
    var = pd.DataFrame(index=[f"gene{j}" for j in range(300)])
    made = ad.AnnData(sparse.csr_matrix(np.log1p(counts)), obs=obs, var=var)
    made.layers["counts"] = sparse.csr_matrix(counts.astype(np.float64))
    return made


def test_results_are_those_of_the_estimator(adata):
    model = mrshc.tl.cluster(adata)
    expected = mrshc.AssociationHC().fit(DATA.X)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert adata.obs["mrshc"].cat.categories.tolist() == ["1", "2", "3"]
    np.testing.assert_array_equal(adata.obs["mrshc"].astype(int) - 1, expected.labels_)
    assert adata.obs["mrshc"].tolist() == (model.predict(adata) + 1).astype(str).tolist()
    np.testing.assert_array_equal(adata.var["mrshc_selected"], expected.get_support())
    np.testing.assert_array_equal(adata.var["mrshc_qvalue"], expected.feature_qvalues_)
    np.testing.assert_array_equal(adata.varm["mrshc_loadings"], expected.components_.T)
    about = adata.uns["mrshc"]
    np.testing.assert_array_equal(about["linkage"], expected.linkage_matrix_)
    assert about["samples"].tolist() == SAMPLES
    assert about["search"]["chosen"].sum() == 1
    assert about["supported"] is True
    given = {name: v for name, v in expected.get_params().items() if v is not None}
    assert about["params"] == given


def test_a_fit_keeps_the_names_of_an_anndata_object(adata):
    model = mrshc.HighVarianceHC(20).fit(adata)
    assert model.feature_names_in_.tolist() == GENES
    assert model.sample_names_in_.tolist() == SAMPLES
    assert set(model.get_feature_names_out()) <= set(GENES)
    assert model.transform(adata).shape == (60, 20)
    assert set(model.markers(adata, k=3)["feature"]) <= set(GENES)
    # Features in another order are matched by name.
    np.testing.assert_array_equal(model.transform(adata[:, GENES[::-1]]), model.transform(adata))
    as_sparse = ad.AnnData(sparse.csc_matrix(DATA.X), obs=adata.obs, var=adata.var)
    model = mrshc.HighVarianceHC(20).fit(as_sparse)
    assert model.feature_names_in_.tolist() == GENES
    reversed_genes = as_sparse[:, GENES[::-1]]
    np.testing.assert_array_equal(model.transform(reversed_genes), model.transform(as_sparse))
    adata.var_names = ["twice", "twice", *GENES[2:]]
    with pytest.raises(ValueError, match="'twice' names 2 columns"):
        model.fit(adata)


def test_scanpy_draws_the_tree_of_the_clusters(adata, tmp_path):
    mrshc.tl.cluster(adata)
    genes = adata.var_names[adata.var["mrshc_selected"]][:5].tolist()
    sc.pl.dendrogram(adata, "mrshc", show=False)
    before = adata.uns["dendrogram_mrshc"]["linkage"].copy()
    shown = sc.pl.heatmap(adata, genes, groupby="mrshc", dendrogram=True, show=False)
    assert "groupby_ax" in shown
    sc.pl.matrixplot(adata, genes, groupby="mrshc", dendrogram=True, show=False)
    sc.pl.dotplot(adata, genes, groupby="mrshc", dendrogram=True, show=False)
    sc.pl.correlation_matrix(adata, "mrshc", show=False)
    # scanpy would replace a tree that it does not understand.
    np.testing.assert_array_equal(adata.uns["dendrogram_mrshc"]["linkage"], before)
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = sc.read_h5ad(tmp_path / "a.h5ad")
    assert again.uns["mrshc"]["params"]["linkage"] == "ward"
    assert again.obs["mrshc"].tolist() == adata.obs["mrshc"].tolist()
    sc.pl.dotplot(again, genes, groupby="mrshc", dendrogram=True, show=False)


def test_values_may_be_in_a_layer_sparse_or_in_a_file(adata, tmp_path):
    expected = mrshc.tl.cluster(adata).labels_
    adata.layers["other"] = adata.X.copy()
    adata.X = np.random.default_rng(0).normal(size=adata.shape)
    in_layer = mrshc.tl.cluster(adata, layer="other", key_added="layer")
    np.testing.assert_array_equal(in_layer.labels_, expected)
    assert in_layer.feature_names_in_.tolist() == GENES
    adata.X = sparse.csr_matrix(DATA.X)
    np.testing.assert_array_equal(mrshc.tl.cluster(adata).labels_, expected)
    for name, values in {"dense": DATA.X, "sparse": sparse.csr_matrix(DATA.X)}.items():
        path = tmp_path / f"{name}.h5ad"
        ad.AnnData(values, obs=adata.obs[[]], var=adata.var[[]]).write_h5ad(path)
        backed = ad.read_h5ad(path, backed="r+")
        np.testing.assert_array_equal(mrshc.tl.cluster(backed).labels_, expected)
        assert backed.isbacked
        assert backed.obs["mrshc"].notna().all()
        backed.file.close()


def test_groups_of_cells_are_clustered_by_their_means(cells):
    model = mrshc.tl.cluster(cells, groupby=["donor", "kind"])
    means = pd.DataFrame(cells.X.toarray()).groupby(cells.obs["group"].to_numpy()).mean()
    expected = mrshc.AssociationHC().fit(means.to_numpy())
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert model.sample_names_in_.tolist() == means.index.tolist()
    # Each cell has the cluster of its group, and the groups of one kind form a cluster.
    assert pd.crosstab(cells.obs["mrshc"], cells.obs["kind"]).gt(0).sum().tolist() == [1, 1, 1]
    for groupby in (["donor", "kind"], "group"):
        mrshc.tl.cluster(cells, groupby=groupby)
        name = groupby if isinstance(groupby, str) else "_".join(groupby)
        before = cells.uns[f"dendrogram_{name}"]["linkage"].copy()
        genes = cells.var_names[:3].tolist()
        sc.pl.matrixplot(cells, genes, groupby=groupby, dendrogram=True, show=False)
        np.testing.assert_array_equal(cells.uns[f"dendrogram_{name}"]["linkage"], before)
        assert before.shape == (23, 4)


def test_sums_and_cells_without_a_group(cells):
    some = cells.copy()
    some.obs["group"] = some.obs["group"].where(some.obs["donor"] != "d0")
    with pytest.warns(RawScaleWarning, match="look like counts.*scanpy.pp.log1p"):
        model = mrshc.tl.cluster(
            some, layer="counts", groupby="group", aggregate="sum", n_clusters=3
        )
    assert len(model.labels_) == 21
    assert some.obs["mrshc"].isna().tolist() == (some.obs["donor"] == "d0").tolist()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"layer": "none"}, "layer must be None or one of the layers"),
        ({"groupby": "none"}, "there is no column 'none'"),
        ({"groupby": "true", "aggregate": "max"}, "aggregate must be one of mean, sum"),
        ({"groupby": "half"}, "at least 3 groups of cells, got 2"),
        ({"key_added": ""}, "key_added must be a text"),
        ({"n_clusters": 100}, "n_clusters must be"),
        ({"linkage": "wardd"}, "linkage must be one of"),
    ],
)
def test_a_mistake_leaves_the_object_as_it_was(adata, given, sentence):
    adata.obs["half"] = np.repeat(["a", "b"], 30)
    before = adata.copy()
    with pytest.raises(ValueError, match=sentence):
        mrshc.tl.cluster(adata, **given)
    assert adata.obs.equals(before.obs)
    assert adata.var.equals(before.var)
    assert not adata.uns
    assert not adata.varm


def test_tables_are_refused():
    with pytest.raises(
        TypeError, match=r"must be an AnnData .* got DataFrame.*mrshc\.AssociationHC"
    ):
        mrshc.tl.cluster(pd.DataFrame(DATA.X))
    with pytest.raises(TypeError, match="no_such"):
        mrshc.tl.cluster(ad.AnnData(DATA.X), no_such=1)


def test_plots_take_the_object(adata, cells, tmp_path):
    mrshc.tl.cluster(adata)
    adata.write_h5ad(tmp_path / "a.h5ad")
    stored = ad.read_h5ad(tmp_path / "a.h5ad")
    shuffled = stored[np.random.default_rng(0).permutation(60)]
    # The tree keeps the order of the fit, and annotations and values are matched by name.
    axes = [mrshc.pl.dendrogram(made, annotations="true") for made in (adata, stored, shuffled)]
    axes.append(mrshc.pl.dendrogram(adata, annotations=shuffled.obs["true"]))
    colours = [[tick.get_color() for tick in ax.get_xticklabels()] for ax in axes]
    assert colours == colours[:1] * 4
    labels = {ax.get_legend().get_texts()[-1].get_text() for ax in axes}
    assert len(labels) == 1
    pictures = [mrshc.pl.heatmap(made, annotations=["true"]) for made in (adata, shuffled)]
    drawn = [
        next(
            image.get_array()
            for ax in figure.axes
            for image in ax.get_images()[:1]
            if image.get_array().size > 1000
        )
        for figure in pictures
    ]
    np.testing.assert_array_equal(*drawn)
    assert mrshc.pl.loadings(adata)._repr_png_()
    made = cells.copy()
    mrshc.tl.cluster(made, groupby=["donor", "kind"])
    assert mrshc.pl.heatmap(made, annotations=["kind", "donor"]).axes
    with pytest.raises(ValueError, match="has 60 samples or groups, but adata has 30"):
        mrshc.pl.dendrogram(adata[:30])
    with pytest.raises(ValueError, match=r"called 'other'.*mrshc.tl.cluster\(adata"):
        mrshc.pl.heatmap(adata, "other")
    with pytest.raises(ValueError, match="there is no column 'age'"):
        mrshc.pl.dendrogram(adata, annotations="age")
