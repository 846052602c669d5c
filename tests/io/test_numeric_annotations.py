"""Columns such as age are not clustered without a word, and features are not mistaken for them."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc.io import TableError, read_table
from mrshc.io.numeric_annotations import find_numeric_annotations, is_annotation_title

DATA = Path(os.environ.get("MRSHC_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILES = sorted(DATA.rglob("*.npz")) if DATA.is_dir() else []


def table_with(write, **columns):
    """Write a table of 12 samples in rows, 20 features, and further columns."""
    values = np.random.default_rng(0).normal(8, 2, size=(12, 20)).round(2)
    frame = pd.DataFrame(values, columns=[f"gene{j}" for j in range(20)])
    frame = frame.assign(**columns)
    frame.index = pd.Index([f"p{i}" for i in range(12)], name="sample")
    return write(frame.to_csv(), "table.csv")


AGES = np.random.default_rng(1).integers(30, 80, size=12)


@pytest.mark.parametrize("title", ["age", "Age (years)", "patient_age", "Alter", "X17"])
def test_ages_are_refused_whatever_their_title(write, title):
    path = table_with(write, **{title: AGES})
    with pytest.raises(TableError) as refused:
        read_table(path, features="columns")
    assert f"looks like an annotation of the samples, not a feature: {title!r}." in str(
        refused.value
    )
    assert f"annotations={title!r}, or keep it among the values with keep_numeric=True" in str(
        refused.value
    )
    table = read_table(path, features="columns", annotations=[title])
    assert table.X.shape == (12, 20)
    assert table.sample_annotations[title].tolist() == AGES.tolist()
    assert read_table(path, features="columns", annotations=title).X.shape == (12, 20)
    kept = read_table(path, features="columns", keep_numeric=True)
    assert kept.X.shape == (12, 21)
    assert kept.reading["keep_numeric"] is True


def test_several_columns_are_listed(write):
    path = table_with(write, batch=AGES % 2, cluster_id=AGES % 3, survival_months=AGES / 7)
    with pytest.raises(TableError, match=r"3 columns.*'batch', 'cluster_id', 'survival_months'"):
        read_table(path, features="columns")


def test_the_orientation_does_not_matter(write):
    """With few features, the features would be assumed in rows, and age would be a sample."""
    values = np.random.default_rng(0).normal(size=(30, 4)).round(2)
    frame = pd.DataFrame(values, columns=list("abcd")).assign(age=np.arange(30) + 30)
    with pytest.raises(TableError, match="'age'"):
        read_table(write(frame.to_csv(index_label="sample")))


def genes_with(**rows):
    """Return six genes in rows and four samples in columns, with further rows in the middle."""
    values = np.random.default_rng(0).normal(size=(6, 4)).round(2)
    genes = pd.DataFrame(values, index=[f"g{i}" for i in range(6)], columns=list("abcd"))
    others = pd.DataFrame(rows, index=list("abcd"), dtype=object).T
    return pd.concat([genes[:2], others, genes[2:]]).rename_axis("gene")


def test_rows_of_annotations_are_refused(write):
    path = write(genes_with(batch=[1, 2, 1, 2]).to_csv())
    with pytest.raises(
        TableError,
        match=r"a row of numbers .*'batch'\. Set it aside with annotations='batch', or keep it "
        r"among the values with keep_numeric=True",
    ):
        read_table(path)
    assert "batch" in read_table(path, keep_numeric=True).feature_names


@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "parquet"])
def test_a_row_that_is_named_becomes_an_annotation_of_the_samples(tmp_path, suffix):
    path, frame = tmp_path / f"table.{suffix}", genes_with(age=[50, None, 71, 33])
    if suffix == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path)
    elif suffix == "parquet":
        pytest.importorskip("pyarrow")
        frame.astype(float).to_parquet(path)
    else:
        frame.to_csv(path, sep="," if suffix == "csv" else "\t")
    table = read_table(path, annotations="age")
    assert table.X.shape == (4, 6)
    assert list(table.feature_names) == [f"g{i}" for i in range(6)]
    ages = table.sample_annotations["age"]
    assert ages.isna().tolist() == [False, True, False, False]
    assert ages.dropna().tolist() == [50, 71, 33]
    assert "'age' has a value for each column" in table.notes[0]
    np.testing.assert_array_equal(table.X, frame.drop("age").to_numpy(dtype=float).T)


def test_rows_of_text_and_the_known_classes_are_set_aside(write):
    path = write(
        genes_with(sex=list("mfmf"), group=[2, 1, 1, 2], plate=["007", "8", "9", "9"]).to_csv()
    )
    with pytest.raises(TableError, match=r"'m' .* row 'sex'.* name the row or the column with ann"):
        read_table(path)
    table = read_table(path, annotations=["sex", "plate"], truth="group")
    assert table.sample_annotations.to_dict("list") == {
        "sex": ["m", "f", "m", "f"],
        "group": [2, 1, 1, 2],
        "plate": ["007", "8", "9", "9"],
    }
    with pytest.raises(TableError, match="no column or row 'site' that could be an annotation"):
        read_table(path, annotations=["sex", "site"], truth="group")


def test_rows_far_down_in_a_long_table_are_set_aside(write):
    """Rows beyond the first 200 are read in blocks by another parser."""
    rows = [f"g{i},{i}.5,{i}.2,0.25" for i in range(500)]
    rows[300:300], rows[450:450] = ['"sex",m,f,m'], ["age,50,NA,71"]
    table = read_table(write("gene,a,b,c\n" + "\n".join(rows)), annotations=["sex", "age"])
    assert table.X.shape == (3, 500)
    assert table.X[0].tolist() == [i + 0.5 for i in range(500)]
    assert table.sample_annotations["sex"].tolist() == ["m", "f", "m"]
    assert table.sample_annotations["age"].dropna().tolist() == [50, 71]


def test_the_command_line_names_its_options(write, tmp_path, main):
    path = table_with(write, age=AGES)
    code, _, message = main("cluster", path, "--out", tmp_path / "out")
    assert code == 2
    assert (
        "Set it aside with --annotation age, or keep it among the values with --keep-numeric"
        in (" ".join(message.split()))
    )


def test_a_known_class_need_not_be_listed(write):
    path = table_with(write, group=AGES % 2)
    assert read_table(path, truth="group").X.shape == (12, 20)


def test_tables_of_whole_numbers_are_not_refused(write):
    counts = np.random.default_rng(0).poisson(20, size=(12, 15))
    frame = pd.DataFrame(counts, columns=[f"gene{j}" for j in range(15)])
    assert read_table(write(frame.to_csv(index_label="sample"))).X.shape[0] in (12, 15)
    with pytest.raises(TableError, match="'age'"):  # by its title
        read_table(write(frame.assign(age=AGES).to_csv(index_label="sample")))


@pytest.mark.parametrize(
    "title",
    ["TP53", "AGER", "CAGE1", "OS9", "STAG2", "GRADE1B", "SEX1", "arm", "run", "REST", "IL6",
     "day 1", "time 3", "group A", "Clostridium cluster IV", "1007_s_at", "", "a", "sample 1",
     "patient 12", "IDH1", "NO", "RIN3", "TYPE3"],
)  # fmt: skip
def test_names_of_features_and_samples_are_no_annotations(title):
    assert not is_annotation_title(title)


@pytest.mark.parametrize(
    "title",
    ["age", "AGE", "Age at diagnosis", "age_years", "sex", "Batch", "batch_no", "Cluster ID",
     "class", "label", "time point", "survival time", "overall.survival", "vital_status",
     "er_status", "tumor_stage", "tumour grade", "patient_id", "sample no", "BMI", "year"],
)  # fmt: skip
def test_usual_titles_of_annotations(title):
    assert is_annotation_title(title)


def test_rounded_values_and_zeros_are_not_annotations():
    rng = np.random.default_rng(0)
    rounded = rng.normal(8, 2, size=(6, 3000)).round(1)  # by chance, some columns are whole
    assert (rounded == rounded.round()).all(axis=0).sum() >= 0
    names = [f"g{j}" for j in range(3000)]
    assert find_numeric_annotations(rounded, names) == []
    logs = np.log2(1 + rng.poisson(0.4, size=(40, 3000)))  # log2(1 + 1) is a whole number
    assert find_numeric_annotations(logs, names) == []
    flat = rng.normal(size=(40, 3000))
    flat[:, 5], flat[:, 7], flat[:, 9] = 0, 3, np.nan  # constant or missing
    assert find_numeric_annotations(flat, names) == []


@pytest.mark.skipif(not FILES, reason="needs the real data sets; set MRSHC_DATA to their folder")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_feature_of_real_data_is_an_annotation(path):
    with np.load(path, allow_pickle=False) as content:
        X = content["X"].astype(np.float64)
        names = (
            content["feature_names"] if "feature_names" in content.files else np.arange(X.shape[1])
        )
    titles = [str(name) for name in names]
    assert find_numeric_annotations(X, titles) == []
    assert find_numeric_annotations(X.round(1), titles) == []
    assert find_numeric_annotations(X.T, [f"s{i}" for i in range(len(X))]) == []
