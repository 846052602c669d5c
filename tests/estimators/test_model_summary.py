"""Summaries of fitted estimators, as text and as HTML."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from mrshc import COSA, SHC, HighVarianceHC, MrSHC, SparseKMeans

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    RNG.normal(size=(21, 30)),
    index=[f"s{i}" for i in range(21)],
    columns=[f"g{j}" for j in range(30)],
)
X.iloc[:7, :10] += 6.0
X.iloc[14:, :10] -= 6.0
ESTIMATORS = {
    "MrSHC": MrSHC([5, 10], rank=1, n_references=5, random_state=0),
    "SHC": SHC(5, n_clusters=3),
    "HighVarianceHC": HighVarianceHC(10, n_clusters=3),
    "COSA": COSA(n_clusters=3),
    "SparseKMeans": SparseKMeans(3, n_features_to_select=5, n_init=2, random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_summary(name):
    model = ESTIMATORS[name].fit(X)
    rows = dict(model.summary().rows)
    assert rows["data"] == "21 samples, 30 features"
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    assert rows["clusters"] == f"3 (sizes {sizes})"
    assert rows["selected features"].startswith(f"{model.n_features_selected_} of 30 (")
    text = str(model.summary())
    assert text == repr(model.summary())
    assert text.startswith(name + "(")
    assert max(map(len, text.splitlines())) <= 80


def test_the_title_has_the_parameters_that_are_not_defaults():
    title = HighVarianceHC(10, linkage="ward").fit(X).summary().title
    assert title == "HighVarianceHC(linkage='ward', n_features_to_select=10)"
    # The values of a long list are left out.
    title = SHC(list(range(2, 30)), n_permutations=2, random_state=0).fit(X).summary().title
    assert "n_features_to_select=<list>" in title


def test_a_tree_that_is_not_cut_has_no_clusters():
    rows = dict(HighVarianceHC(10).fit(X).summary().rows)
    assert rows["clusters"].startswith("none: the tree was not cut")


def test_features_with_the_largest_weights_are_named():
    model = SHC(12, n_clusters=3).fit(X)
    order = np.argsort(-model.feature_weights_, kind="stable")
    first = ", ".join(X.columns[j] for j in order[:8])
    n_others = np.count_nonzero(model.feature_weights_) - 8
    assert dict(model.summary().rows)["largest weights"] == f"{first} and {n_others} more"
    numbered = dict(SHC(12).fit(X.to_numpy()).summary().rows)["largest weights"]
    assert numbered.split(", ")[0] == str(order[0])


def test_outlying_samples_and_missing_convergence_are_named():
    model = HighVarianceHC(10, n_clusters=3).fit(X)
    model.outlier_samples_, model.converged_ = np.array([3, 20]), False
    rows = dict(model.summary().rows)
    assert rows["outlying samples"] == "s3, s20"
    assert "not reached" in rows["convergence"]
    model.supported_, model.associated_features_ = True, np.arange(1500)
    assert "1,500 features are associated" in dict(model.summary().rows)["held-out features"]
    for supported, text in ((False, "do not support"), (None, "too few features or samples")):
        model.supported_ = supported
        assert text in dict(model.summary().rows)["held-out features"]


def test_html_is_valid_and_names_are_escaped():
    hostile = X.rename(columns={f"g{j}": f"<b>{j}</b>&" for j in range(30)})
    html = SHC(5, n_clusters=2).fit(hostile).summary()._repr_html_()
    table = ElementTree.fromstring(html)
    assert table.tag == "table"
    assert "<b>" not in html
    assert re.search("&lt;b&gt;\\d+&lt;/b&gt;&amp;", html)


def test_an_estimator_that_is_not_fitted_has_no_summary():
    for name, estimator in ESTIMATORS.items():
        with pytest.raises(NotFittedError, match=name):
            type(estimator)(3).summary() if name != "COSA" else COSA().summary()
