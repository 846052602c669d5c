"""A search that was interrupted goes on from its file, and ends with the same result."""

import numpy as np
import pytest

from mrshc import MrSHC
from mrshc.checkpoint import fingerprint
from mrshc.datasets import make_simulation_1
from mrshc.errors import UserError


@pytest.fixture(name="X")
def table():
    return make_simulation_1(3).X[:, 20:80]


def fit(X, path=None, **parameters):
    model = MrSHC((5, 10, 20), random_state=4, n_references=10, checkpoint=path)
    return model.set_params(**parameters).fit(X)


def assert_same(a, b):
    for name in ("labels_", "linkage_matrix_", "components_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("search_results_", "split_tests_"):
        assert getattr(a, name).keys() == getattr(b, name).keys()
        for key, column in getattr(a, name).items():
            for left, right in zip(column, getattr(b, name)[key], strict=True):
                np.testing.assert_array_equal(left, right)


def test_a_search_cut_off_anywhere_ends_as_an_undisturbed_one(X, tmp_path):
    path = tmp_path / "steps"
    undisturbed = fit(X)
    assert_same(fit(X, path), undisturbed)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    header = content.index(b"\n") + 1
    for cut in [header, len(content) - 1, *rng.integers(header, len(content), size=8)]:
        path.write_bytes(content[:cut])
        assert_same(fit(X, path), undisturbed)
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())


def test_nothing_is_done_twice(X, tmp_path, monkeypatch):
    path = tmp_path / "steps"
    first = fit(X, path)
    monkeypatch.setattr("mrshc.core.search.evaluate", lambda **_: pytest.fail("done before"))
    assert_same(fit(X, path), first)


@pytest.mark.parametrize(
    "other",
    [{"random_state": 5}, {"linkage": "ward"}, {"center": False}, {"n_features_to_select": 10}],
)
def test_steps_of_another_search_are_refused_and_kept(X, tmp_path, other):
    path = tmp_path / "steps"
    fit(X, path)
    content = path.read_bytes()
    with pytest.raises(UserError, match="holds the steps of a search in other data, with other"):
        fit(X, path, **other)
    with pytest.raises(UserError, match="Remove it to begin anew"):
        fit(X + 1.0, path)
    assert path.read_bytes() == content


def test_the_seed_must_be_known(X, tmp_path):
    with pytest.raises(ValueError, match=r"random_state must be a whole number .* got None"):
        fit(X, tmp_path / "steps", random_state=None)
    assert not (tmp_path / "steps").exists()


def test_the_fingerprint_knows_values_and_not_their_layout(X):
    assert fingerprint(X) == fingerprint(np.asfortranarray(X)) == fingerprint(X.copy())
    changed = X.copy()
    changed[-1, -1] += 1e-9
    others = {fingerprint(changed), fingerprint(X.T), fingerprint(X.astype(np.float32))}
    assert fingerprint(X) not in others
    assert len(others) == 3
