"""A search that was interrupted goes on from its file, and ends with the same result."""

import json
import os

import numpy as np
import pytest

from mrshc import MrSHC
from mrshc.core.data.array_matrix import ArrayMatrix
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
    rule = "mrshc.core.selection.silhouette_rule.SilhouetteRule"
    monkeypatch.setattr(f"{rule}.task", lambda *_: pytest.fail("done before"))
    assert_same(fit(X, path), first)


@pytest.mark.parametrize(
    "other",
    [{"random_state": 5}, {"linkage": "ward"}, {"center": False}, {"n_features_to_select": 10}],
)
def test_steps_of_another_search_are_refused_and_kept(X, tmp_path, other):
    path = tmp_path / "steps"
    fit(X, path)
    content = path.read_bytes()
    with pytest.raises(UserError, match="holds the steps of a search with other data, other"):
        fit(X, path, **other)
    with pytest.raises(UserError, match="Remove it to begin anew"):
        fit(X + 1.0, path)
    assert path.read_bytes() == content


def test_the_seed_must_be_known(X, tmp_path):
    with pytest.raises(ValueError, match=r"random_state must be a whole number .* got None"):
        fit(X, tmp_path / "steps", random_state=None)
    assert not (tmp_path / "steps").exists()


def fingerprint(X):
    return ArrayMatrix(X).fingerprint()


def test_the_fingerprint_knows_values_and_not_their_layout(X):
    assert fingerprint(X) == fingerprint(np.asfortranarray(X)) == fingerprint(X.copy())
    changed = X.copy()
    changed[-1, -1] += 1e-9
    others = {fingerprint(changed), fingerprint(X.T), fingerprint(X.astype(np.float32))}
    assert fingerprint(X) not in others
    assert len(others) == 3


@pytest.fixture(name="steps", scope="module")
def finished_steps(tmp_path_factory):
    """Return the lines of a finished search by silhouette, and of one by evidence."""
    folder = tmp_path_factory.mktemp("steps")
    X = make_simulation_1(3).X[:, 20:40]
    lines = {}
    for selection in ("silhouette", "evidence"):
        path = folder / selection
        model = small(path, selection).fit(X)
        lines[selection] = path.read_bytes().splitlines(keepends=True)
        assert_same(small(path, selection).fit(X), model)
    return X, lines


def small(path, selection="silhouette"):
    return MrSHC(5, rank=1, n_references=5, random_state=4, checkpoint=path, selection=selection)


DAMAGED = "steps is damaged: line 2 holds no finished step. Remove it to begin anew"


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"5", b"null", b'"ab"', b"[]", b"{}", b'["a"]', b"[1, {}]", b'["a", {}]'),
        *(
            b'["features 5 1", []]',
            b'["features 5 1", {}]',
            b"\xff\xfe",
            b"\0" * 20,
            b"[" * 100_000,
        ),
        *(b'["features 5 1", 1' + b"0" * 5000 + b"]", b'["features 5 1", {"indices"'),
    ],
)
def test_a_damaged_line_is_refused_and_nothing_is_lost(steps, tmp_path, line):
    X, lines = steps
    header, *rest = lines["silhouette"]
    content = b"".join([header, line, b"\n", *rest])
    path = tmp_path / "steps"
    path.write_bytes(content)
    with pytest.raises(UserError, match=DAMAGED):
        small(path).fit(X)
    assert path.read_bytes() == content


def step(lines, kind):
    return next(json.loads(line) for line in lines[1:] if kind in line.decode())


FEATURES = [
    *[
        ("indices", value)
        for value in ([], None, [0.5], ["a"], [-1], [20], [3, 2], [2, 2], [[1]], 3)
    ],
    *[("l1_bound", value) for value in (float("nan"), float("inf"), None, "1", 0.5, 1e308, True)],
    *[("rank", value) for value in (0, 2, 1.0, None, True)],
    *[("reached", value) for value in (0, None, "True")],
]


@pytest.mark.parametrize(("key", "value"), FEATURES)
def test_features_that_cannot_be_are_refused(steps, tmp_path, key, value):
    X, lines = steps
    name, content = step(lines["silhouette"], "features")
    refuse(X, tmp_path, lines["silhouette"][0], [name, content | {key: value}])


def refuse(X, folder, header, entry, selection="silhouette"):
    path = folder / "steps"
    path.write_bytes(header + json.dumps(entry).encode() + b"\n")
    with pytest.raises(UserError, match=DAMAGED):
        small(path, selection).fit(X)


EVALUATIONS = [
    *[("linkage", value) for value in ([], None, "tree", [[0, 1, 1.0, 2]])],
    *[("splits", value) for value in (None, [0], [118, 118], [5000], [118.0], "a", [117, 118])],
    *[("tests", value) for value in (None, 5, [5], [[118, {}]], [[118, None]], {"118": 1})],
    *[("silhouettes", value) for value in ([], None, [float("nan")] * 3, [0.0] * 50, "a")],
    *[("evidence", value) for value in (None, [1.0], ["a"])],
]


@pytest.mark.parametrize(("key", "value"), EVALUATIONS)
def test_evaluations_that_cannot_be_are_refused(steps, tmp_path, key, value):
    X, lines = steps
    name, content = step(lines["silhouette"], "evaluation")
    refuse(X, tmp_path, lines["silhouette"][0], [name, content | {key: value}])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("reference", []),
        ("reference", [[1.0, 2.0]]),
        ("reference", [[1.0, 2.0], [1.0]]),
        ("gap", [1.0]),
        ("standard_error", [None, None]),
        ("log_dispersion", [1.0, float("inf")]),
        ("n_clusters", 3),
        ("n_clusters", True),
    ],
)
def test_gap_tests_that_cannot_be_are_refused(steps, tmp_path, key, value):
    X, lines = steps
    name, content = step(lines["silhouette"], "evaluation")
    content["tests"][0][1][key] = value
    refuse(X, tmp_path, lines["silhouette"][0], [name, content])


def test_a_tree_with_a_cycle_is_refused(steps, tmp_path):
    X, lines = steps
    name, content = step(lines["silhouette"], "evaluation")
    content["linkage"][0][0] = 118
    refuse(X, tmp_path, lines["silhouette"][0], [name, content])


def test_steps_of_another_kind_of_search_are_refused(steps, tmp_path):
    X, lines = steps
    of_silhouette, of_evidence = (step(lines[s], "evaluation") for s in lines)
    refuse(X, tmp_path, lines["silhouette"][0], of_evidence)
    refuse(X, tmp_path, lines["evidence"][0], of_silhouette, selection="evidence")


@pytest.mark.parametrize(
    "content", [b"[]\n", b"\n", b"thesis", b"\xff\n", b'{"work": 5}\n', b'{"wor']
)
def test_a_file_of_something_else_is_refused_and_kept(steps, tmp_path, content):
    path = tmp_path / "steps"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged, or no file of finished steps"):
        small(path).fit(steps[0])
    assert path.read_bytes() == content


def test_an_empty_file_is_a_new_one(steps, tmp_path):
    X, lines = steps
    path = tmp_path / "steps"
    path.touch()
    small(path).fit(X)
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(lines["silhouette"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes and devices")
def test_only_a_file_can_keep_steps(steps, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, "", "/dev/full", "/dev/zero"):
        with pytest.raises(
            UserError, match="must be a file for finished steps, but is a folder or a device"
        ):
            small(path).fit(steps[0])


@pytest.mark.parametrize("path", [5, b"steps", True])
def test_a_checkpoint_is_a_path(steps, path):
    with pytest.raises(ValueError, match="checkpoint must be the path of a file or None, got"):
        small(path).fit(steps[0])
