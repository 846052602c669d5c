"""Studies of prediction: matched clusters, and rows of a small study."""

import numpy as np
import pandas as pd

from mrshc.study import render_study, run_study
from mrshc.study.kinds.prediction import match_clusters

STUDY = """
title = "x"
kind = "prediction"
replicates = 2
seed = 1
n_folds = 3

[[design]]
name = "clear"
make = "make_simulation_1"
mu = 3.0
sizes = [12, 12, 12]

[[set]]
name = "two"

[[method]]
name = "filter"
estimator = "HighVarianceHC"
n_features_to_select = 40
n_clusters = "number of classes"
linkage = "ward"
"""


def test_clusters_are_matched_one_to_one():
    labels, others = np.array([0, 0, 1, 1, 1, 2]), np.array([1, 1, 0, 0, 1, 1])
    np.testing.assert_array_equal(match_clusters(labels, others), [1, 0, -1])


def test_a_study_has_a_row_for_each_data_set_and_method(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 30))
    X[12:, :10] += 5
    np.savez(tmp_path / "two.npz", X=X, y=np.repeat([0, 1], 12))
    (tmp_path / "x.toml").write_text(STUDY)
    path = run_study("x", folder=tmp_path, out=tmp_path / "out", data=tmp_path)
    table = pd.read_csv(path)
    assert list(table["data"]) == ["clear", "clear", "two"]
    assert list(table["n_clusters"]) == [3, 3, 2]
    assert (table.filter(regex="share_|ari_") == 1).all(axis=None)
    shown = render_study("x", folder=tmp_path, out=tmp_path / "out")
    assert "| two | filter | 2 | 1.000 | 1.000 | 1.000 | 1.000 |" in shown
