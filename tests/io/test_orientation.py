"""The sides of samples and features are detected, and the reason is noted."""

import numpy as np
import pandas as pd
import pytest

from mrshc.io import read_table
from small_table import FEATURES, SAMPLES, X, assert_read, features_in_rows


def test_more_rows_than_columns_means_features_in_rows_and_is_noted(write):
    tall, wide = features_in_rows(","), pd.DataFrame(X, SAMPLES, FEATURES).to_csv()
    assert "features in rows (more rows than columns" in read_table(write(tall)).notes[0]
    assert_read(read_table(write(wide)))
    assert "features in columns (not more rows" in read_table(write(wide)).notes[0]
    np.testing.assert_array_equal(read_table(write(tall), features="columns").X, X.T)


@pytest.mark.parametrize("position", [0, 1, 5])
def test_the_truth_is_never_a_feature_and_tells_where_samples_are(write, position):
    frame = pd.DataFrame(np.vstack([X, X + 1]), list("abcdef"), FEATURES)
    frame.insert(min(position, 4), "class", [0, 1, 0, 1, 0, 1])
    text = frame.to_csv(index=position > 0)
    table = read_table(write(text), truth="class")
    np.testing.assert_array_equal(table.X, np.vstack([X, X + 1]))
    assert table.sample_annotations["class"].tolist() == [0, 1, 0, 1, 0, 1]
    assert "'class' has a value for each row" in table.notes[0]


def test_names_tell_where_the_samples_are_even_if_there_are_more_of_them(write):
    frame = pd.DataFrame(np.arange(12.0).reshape(6, 2), list("uvwxyz"), ["g", "h"])
    meta = write("sample,class\n" + "".join(f"{name},1\n" for name in "zyxwvu"), "meta.csv")
    table = read_table(write(frame.to_csv()), samples=meta)
    assert list(table.sample_names) == list("uvwxyz")


def test_duplicate_names_are_made_unique_and_reported(write):
    table = read_table(write("gene,a,a,b\nx,1,2,3\nx,4,5,6\n,7,8,9\nx,1,1,2\n"))
    assert list(table.feature_names) == ["x", "x.2", "feature 3", "x.3"]
    assert list(table.sample_names) == ["a", "a.2", "b"]
    assert any("3 feature names were empty, not unique" in note for note in table.notes)
    assert any(note.startswith("1 sample name was empty, not unique") for note in table.notes)


def test_names_that_were_cleaned_are_reported_as_such(write):
    table = read_table(write("gene,a,b,c\nx\x1b[31m,1,2,3\ny,4,5,6\nz,1,0,2\nu,3,3,1\n"))
    assert table.feature_names[0] == "x [31m"
    (note,) = (note for note in table.notes if "feature name" in note)
    assert note == (
        "1 feature name was empty, not unique or held characters that cannot be shown; it is now "
        "'x [31m'."
    )
