"""Simulated statistics are kept in a file, and are used only for the same test."""

import json
import math

import numpy as np
import pytest

from mrshc import SHC, HighVarianceHC, branch_significance
from mrshc.estimators.simulation_journal import SimulationJournal
from mrshc.utils.step_journal import DamagedJournalError, JournalMismatchError

X = np.random.default_rng(0).normal(size=(12, 8))
MODEL = HighVarianceHC(5, n_clusters=2).fit(X)
ROOT = 22
STATISTICS = {
    (ROOT, "refit", 0): 1.5,
    (ROOT, "refit", 1): math.nan,
    (ROOT, "tree", 0): -0.1 / 3,
    (ROOT - 1, "refit", 0): math.inf,
}


def journal(path, *, model=MODEL, data=X, seed=3):
    return SimulationJournal(path, model=model, X=data, seed=seed)


@pytest.fixture
def path(tmp_path):
    """Return the path of a file with some statistics."""
    file = tmp_path / "simulations"
    journal(file).update(STATISTICS)
    return file


def assert_equal(statistics, expected):
    assert statistics.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_equal(statistics[key], value)


def test_statistics_are_the_same_in_the_next_run(path):
    assert_equal(journal(path), STATISTICS)
    assert len(journal(path)) == 4


def test_an_incomplete_last_line_is_ignored(path):
    content = path.read_bytes()
    *_, last = STATISTICS
    rest = {key: value for key, value in STATISTICS.items() if key != last}
    end = content[:-1].rindex(b"\n") + 1
    for cut in range(end, len(content)):
        path.write_bytes(content[:cut])
        resumed = journal(path)
        assert_equal(resumed, rest)
        resumed[last] = STATISTICS[last]
        assert path.read_bytes() == content


def test_statistics_of_other_tests_are_refused_and_kept(path):
    content = path.read_bytes()
    message = "holds simulations for other data, another model, another seed or another version"
    others = [
        {"seed": 4},
        {"data": X + 1.0},
        {"data": X.astype(np.float32)},
        {"model": HighVarianceHC(6, n_clusters=2).fit(X)},
        {"model": HighVarianceHC(5, n_clusters=3).fit(X)},
        {"model": SHC(5, n_clusters=2).fit(X)},
        # The same parameters, but another tree.
        {"model": HighVarianceHC(5, n_clusters=2).fit(X[::-1])},
    ]
    for other in others:
        with pytest.raises(JournalMismatchError, match=message):
            journal(path, **other)
    assert path.read_bytes() == content


def test_another_version_is_refused(path, monkeypatch):
    monkeypatch.setattr("mrshc.estimators.simulation_journal.__version__", "0")
    with pytest.raises(
        JournalMismatchError, match=r"another version of mrshc\. Remove it to begin"
    ):
        journal(path)


@pytest.mark.parametrize(
    "entry",
    [
        [ROOT, "refit", 2],
        [ROOT, "refit", 2, 1.0, 1.0],
        [ROOT + 1, "refit", 2, 1.0],
        [11, "refit", 2, 1.0],
        [True, "refit", 2, 1.0],
        [ROOT, 5, 2, 1.0],
        [ROOT, "refit", -1, 1.0],
        [ROOT, "refit", 2.0, 1.0],
        [ROOT, "refit", 2, "1.0"],
        [ROOT, "refit", 2, True],
        [ROOT, "refit", 2, math.nan],
        {"node": ROOT},
        5,
    ],
)
def test_invalid_lines_are_refused(path, entry):
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    with pytest.raises(DamagedJournalError, match="is damaged: line 6 holds no finished step"):
        journal(path)


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(DamagedJournalError, match="is damaged, or no file of finished steps"):
        journal(file)
    assert file.read_text() == "a,b\n1,2\n"


def test_statistics_cannot_be_deleted(path):
    with pytest.raises(TypeError, match="cannot be deleted"):
        del journal(path)[ROOT, "refit", 0]


class Simulator:
    """Generates the numbers of simulations as their statistics, and records what is called."""

    def __init__(self):
        self.wanted, self.is_closed = [], False

    def __call__(self, numbers):
        self.wanted.append(numbers)
        try:
            yield from map(float, numbers)
        finally:
            self.is_closed = True


def test_only_missing_statistics_are_simulated(path):
    simulate = Simulator()
    statistics = journal(path).complete(range(4), simulate, node=ROOT, procedure="refit")
    np.testing.assert_equal(list(statistics), [1.5, math.nan, 2.0, 3.0])
    assert simulate.wanted == [[2, 3]]
    again = Simulator()
    statistics = journal(path).complete(range(1, 4), again, node=ROOT, procedure="refit")
    np.testing.assert_equal(list(statistics), [math.nan, 2.0, 3.0])
    assert again.wanted == []


def test_procedures_and_nodes_are_kept_apart(path):
    simulate = Simulator()
    for node, procedure in ((ROOT, "tree"), (ROOT - 1, "refit"), (ROOT - 2, "refit")):
        list(journal(path).complete([0, 1], simulate, node=node, procedure=procedure))
    assert simulate.wanted == [[1], [1], [0, 1]]


def test_finished_simulations_are_kept_after_an_interruption(tmp_path):
    simulate = Simulator()
    statistics = journal(tmp_path / "new").complete(range(9), simulate, node=ROOT, procedure="p")
    for _ in range(3):
        next(statistics)
    statistics.close()
    assert simulate.is_closed
    assert_equal(journal(tmp_path / "new"), {(ROOT, "p", k): float(k) for k in range(3)})


def test_a_continued_test_is_that_of_an_undisturbed_one(tmp_path):
    # Three clusters, so that nodes below the root are tested, too, with two procedures.
    rng = np.random.default_rng(1)
    data = rng.normal(size=(45, 20))
    data[15:, :10] += 5.0
    data[30:, 10:] += 5.0
    model = HighVarianceHC(15, n_clusters=3).fit(data)
    settings = {"n_simulations": 10, "random_state": 2}
    undisturbed = branch_significance(model, data, **settings)
    assert undisturbed.node.size > 1
    path = tmp_path / "simulations"
    first = branch_significance(model, data, checkpoint=path, **settings)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    assert len(lines) == 1 + undisturbed.n_simulations.sum()
    assert len({json.loads(line)[1] for line in lines[1:]}) > 1
    for n_lines in (1, 4, len(lines) // 2, len(lines)):
        path.write_bytes(b"".join(lines[:n_lines]))
        again = branch_significance(model, data, checkpoint=path, **settings)
        for name in ("node", "statistic", "p_value", "n_simulations", "labels"):
            for other in (first, again):
                np.testing.assert_array_equal(getattr(other, name), getattr(undisturbed, name))
        assert path.read_bytes() == content


def test_a_checkpoint_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match=r"random_state must be a whole number .* got None"):
        branch_significance(MODEL, X, checkpoint=tmp_path / "simulations")
    assert not (tmp_path / "simulations").exists()
