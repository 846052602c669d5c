"""A saved result assigns new samples as the estimator does, with the preprocessing of its data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import VarianceThreshold
from sklearn.preprocessing import MinMaxScaler

from mrshc.app import fit, make_plan
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError
from mrshc.io import Table, load_result, predict_clusters
from mrshc.io.result import write_result
from mrshc.preprocessing import NeighborImputer, Standardize, chain, prepare

DATA = make_simulation_1(1, mu=2.0)
IS_NEW = np.arange(60) % 4 == 0
VALUES = 2.0 ** (DATA.X[:, :80] + 8)  # like intensities
OLD, NEW = VALUES[~IS_NEW], VALUES[IS_NEW]
METHODS = {
    "association": ("association", {}),
    "robust": ("association", {"robust": True}),
    "correlation": ("association", {"linkage": "average", "metric": "correlation"}),
    "shc": ("shc", {"n_features_to_select": 30, "n_clusters": 3}),
    "cityblock": ("shc", {"n_features_to_select": 30, "n_clusters": 3, "metric": "cityblock"}),
    "cosa": ("cosa", {"n_clusters": 3}),
    "hc": ("hc", {"n_clusters": 3}),
}


def as_table(values, prefix="old", features=None):
    names = np.array([f"{prefix}{i}" for i in range(len(values))], dtype=object)
    features = [f"g{j}" for j in range(values.shape[1])] if features is None else features
    return Table(
        X=values,
        sample_names=names,
        feature_names=np.array(features, dtype=object),
        sample_annotations=pd.DataFrame(index=names),
        feature_annotations=pd.DataFrame(index=features),
        source="a test",
        notes=("Made up.",),
    )


def saved(folder, values=OLD, *, method="association", steps=()):
    key, parameters = METHODS[method]
    plan = make_plan(as_table(values), method=key, parameters=parameters, steps=steps)
    write_result(fit(plan), folder)
    return load_result(folder), plan


def frame(values, prefix="new"):
    return as_table(values, prefix).to_frame()


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_result_predicts_as_the_estimator(tmp_path, method):
    result, plan = saved(tmp_path, method=method, steps=chain(log2=True))
    holes = NEW.copy()
    holes[::2, ::7] = np.nan
    for new in (NEW, holes):
        found = predict_clusters(result, frame(new))
        model = plan.estimator
        distances = np.sort(model.cluster_distances(frame(np.log2(new))), axis=1)
        np.testing.assert_array_equal(result.predict(frame(new)), found["cluster"] - 1)
        np.testing.assert_array_equal(
            result.predict(frame(new)), model.predict(frame(np.log2(new)))
        )
        np.testing.assert_allclose(found["distance"], distances[:, 0])
        np.testing.assert_allclose(found["second_distance"], distances[:, 1])
    assert list(found.index[:2]) == ["new0", "new1"]


STEPS = {
    "samples": chain(log2=True, standardize="samples", top_variance=60),
    "features": chain(log2=True, standardize="features"),
    "both": chain(floor=60, ceiling=4000, log2=True, standardize="both", top_variance=60),
    "at once": [*chain(log2=True), Standardize("both")],
    "filters": chain(floor=60, min_difference=100, min_ratio=1.5, log2=True, pseudocount=1.0),
    "counts per million": chain(normalize="cpm", min_count=1, min_samples=3, log2=True),
    "size factors": chain(normalize="size-factors", log2=True, pseudocount=1.0),
    "a selector of scikit-learn": [VarianceThreshold(0.1), *chain(log2=True)],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_steps_are_applied_with_the_values_that_they_learnt(tmp_path, steps):
    result, plan = saved(tmp_path, steps=steps)
    # The steps that were fitted to the data of the result are the reference.
    values = NEW
    for step in prepare(OLD, steps).steps:
        values = step.transform(values)
    kept = [f"g{j}" for j in plan.kept_features]
    expected = plan.estimator.cluster_distances(pd.DataFrame(values, columns=kept))
    found = predict_clusters(result, frame(NEW).sample(frac=1, axis=1, random_state=0))
    np.testing.assert_allclose(found["distance"], expected.min(axis=1))
    np.testing.assert_array_equal(found["cluster"] - 1, expected.argmin(axis=1))
    # One sample alone is preprocessed in the same way.
    alone = predict_clusters(result, frame(NEW).iloc[[4]])
    np.testing.assert_allclose(alone["distance"], expected[4].min())


def test_only_selected_features_are_needed(tmp_path):
    result, _ = saved(tmp_path, steps=chain(log2=True, top_variance=60))
    selected = list(result.selected.columns)
    assert len(selected) < 60
    new = frame(NEW)
    expected = result.predict(new)
    np.testing.assert_array_equal(result.predict(new[selected[::-1]]), expected)
    numbers = new.assign(age=-3.0, remark="text")
    np.testing.assert_array_equal(result.predict(numbers), expected)
    with pytest.raises(UserError, match=f"1 of them is missing: '{selected[2]}'"):
        result.predict(new.drop(columns=selected[2]))
    with pytest.raises(UserError, match=f"'{selected[2]}' names more than one column"):
        result.predict(pd.concat([new, new[[selected[2]]]], axis=1))
    np.testing.assert_array_equal(result.predict(new.assign(**{selected[2]: np.nan})), expected)


def test_standardised_samples_need_all_features(tmp_path):
    result, _ = saved(tmp_path, steps=chain(log2=True, standardize="samples", top_variance=50))
    assert len(result.centers) == 80
    removed = result.centers.index[result.centers["n_steps"] < 3][0]
    with pytest.raises(UserError, match=f"must have all 80 features .* missing: '{removed}'"):
        result.predict(frame(NEW).drop(columns=removed))


def test_imputation_is_refused_only_if_it_is_needed(tmp_path):
    holes = OLD.copy()
    holes[::5, ::9] = np.nan
    result, _ = saved(tmp_path, holes, steps=[NeighborImputer(3), *chain(log2=True)])
    expected = result.predict(frame(NEW))
    used = result.centers.index[result.centers["used"]]
    unused = next(name for name in frame(NEW) if name not in used)
    np.testing.assert_array_equal(result.predict(frame(NEW).assign(**{unused: np.nan})), expected)
    with pytest.raises(UserError, match="cannot be repeated from a saved result"):
        result.predict(frame(NEW).assign(**{used[0]: np.nan}))


def test_other_steps_are_refused(tmp_path):
    result, _ = saved(tmp_path, steps=[*chain(log2=True), MinMaxScaler()])
    with pytest.raises(UserError, match=r"'MinMaxScaler\(\)' cannot be repeated from a saved"):
        result.predict(frame(NEW))


def test_features_without_any_value_are_left_out(tmp_path):
    empty = OLD.copy()
    empty[:, 60] = np.nan
    result, _ = saved(tmp_path, empty)
    assert result.about["preprocessing"][0]["name"] == "ObservedFilter"
    assert result.predict(frame(NEW).drop(columns="g60")).shape == (15,)


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (NEW, "must be a DataFrame or a Table, since their features are matched by name, got nda"),
        (frame(NEW).T, "but the names of the samples are. Give features, or transpose the table"),
        (frame(NEW).replace(NEW[2, 0], np.inf), "sample 2 holds inf"),
        (frame(np.where(NEW[3, 0] == NEW, 0, NEW)), "A logarithm needs positive values, but 1 val"),
        (frame(NEW).assign(g0="high"), "sample 0, feature 'g0' holds the text 'high'"),
    ],
    ids=["array", "transposed", "inf", "zero", "text"],
)
def test_hostile_new_samples_are_refused(tmp_path, new, sentence):
    result, _ = saved(tmp_path, method="hc", steps=chain(log2=True))
    with pytest.raises(ValueError, match=sentence):
        result.predict(new)


def test_a_sample_without_values_is_named(tmp_path):
    result, _ = saved(tmp_path)
    new = frame(NEW)
    new.iloc[3] = np.nan
    with pytest.raises(UserError, match="but sample 'new3' does not have this"):
        result.predict(new)


def test_a_single_cluster_has_no_second_one(tmp_path):
    noise = np.random.default_rng(0).normal(size=(30, 60))
    result, _ = saved(tmp_path, noise)
    assert result.n_clusters_ == 1
    found = predict_clusters(result, frame(noise[:4]))
    assert (found["cluster"] == 1).all()
    assert found[["second_cluster", "second_distance"]].isna().all(axis=None)


def test_repeated_names_must_be_repeated_equally_often(tmp_path):
    counts = np.ones(80, np.intp)
    counts[:2] = 2  # g0 and g1 stand for two features of the same name in the file
    key, parameters = METHODS["hc"]
    table = replace(as_table(OLD), name_counts=counts)
    write_result(fit(make_plan(table, method=key, parameters=parameters)), tmp_path)
    result = load_result(tmp_path)
    same = replace(as_table(NEW, "new"), name_counts=counts)
    assert len(predict_clusters(result, same)) == 15
    with pytest.raises(UserError, match=r"'g0' must occur .* result \(2\), but it occurs 1 times"):
        predict_clusters(result, as_table(NEW, "new"))


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, {"name": "Unknown"}),
        (0, {"parameters": {"other": 1}}),
        (0, {"parameters": {"floor": "high"}}),
        (0, {"name": "VarianceFilter", "parameters": {"n_features": 3}}),
        (1, {"parameters": {"pseudocount": [1]}}),
        (2, {"parameters": {"over": "both"}}),
        (2, {"parameters": {"over": 5}, "new_samples": "samples"}),
        (2, {"new_samples": "values"}),
        (2, {"new_samples": "impossible"}),
    ],
)
def test_changed_descriptions_of_steps_are_refused(tmp_path, number, change):
    result, _ = saved(tmp_path, steps=chain(floor=60, log2=True, standardize="samples"))
    steps = [dict(step) for step in result.about["preprocessing"]]
    steps[number] |= change
    changed = replace(result, about=result.about | {"preprocessing": steps})
    with pytest.raises(UserError):
        changed.predict(frame(NEW))
