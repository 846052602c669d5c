"""Sizes of the fits whose growth is measured, and a model of their costs.

The model is a sum of terms in n, p, q and R with coefficients that are not negative. They are
fitted to the measurements by least squares of the relative errors.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

# Size of a fit, in which one quantity at a time is varied over the values below.
BASE_SIZE = {"n": 100, "p": 2000}
PAPER = {"n_features_to_select": 50, "max_rank": 5, "n_clusters": 3}
_WIDTHS = [500, 2000, 5000, 20_000, 50_000]


class Growth(NamedTuple):
    """A quantity that is varied, in fits of an estimator on one core."""

    label: str
    quantity: str
    sizes: list[int]
    # The slope is fitted to larger sizes, where constant costs no longer matter.
    fitted: tuple[int, int]
    estimator: str = "MrSHC"
    # Largest n * p for which the median of three draws is measured, to limit the time of a run.
    three_draws: int = 2_000_000

    def fit_at(self, size):
        """Return the shape of the data and the parameters of the estimator for one value."""
        shape, given = dict(BASE_SIZE), dict(PAPER) if self.estimator == "MrSHC" else {}
        (shape if self.quantity in shape else given)[self.quantity] = size
        return shape, given


# By the names in results.json.
GROWTH = {
    "n": Growth("samples n", "n", [50, 200, 500, 1000, 2000, 4000], (500, 4000)),
    "p": Growth("features p", "p", [*_WIDTHS, 200_000], (20_000, 200_000)),
    "q": Growth(
        "selected q",
        "n_features_to_select",
        [10, 50, 100, 200, 400, 800],
        (50, 800),
    ),
    "max_rank": Growth("largest rank R", "max_rank", [1, 2, 3, 5, 10], (2, 10)),
    "recommended n": Growth(
        "samples n, recommended",
        "n",
        [50, 100, 200, 500, 1000],
        (200, 1000),
        "AssociationHC",
        three_draws=400_000,
    ),
    "recommended p": Growth(
        "features p, recommended",
        "p",
        _WIDTHS,
        (2000, 50_000),
        "AssociationHC",
        three_draws=400_000,
    ),
}


class Term(NamedTuple):
    """A term of a cost model: a unit times powers of n, p, q and R."""

    name: str
    powers: dict[str, int]
    unit: float = 1.0

    def value(self, size):
        """Return the term for n, p, q and R."""
        return self.unit * np.prod([float(size[key]) ** k for key, k in self.powers.items()])


class Terms(NamedTuple):
    """Terms of the costs of an estimator."""

    estimator: str
    seconds: list[Term]
    # In bytes, in addition to X.
    memory: list[Term]


_MEMORY_TERMS = [
    Term("MB", {}, unit=2**20),
    Term("n² numbers", {"n": 2}, unit=8),
    Term("copies of X", {"n": 1, "p": 1}, unit=8),
]
TERMS = {
    # The starting vectors need n² p operations; each rank, components, a tree and gap tests.
    "q and K known": Terms(
        "MrSHC",
        [
            Term("", {}),
            Term("R", {"R": 1}),
            Term("n² p", {"n": 2, "p": 1}),
            Term("R n p", {"R": 1, "n": 1, "p": 1}),
            Term("R n² q", {"R": 1, "n": 2, "q": 1}),
            Term("R n²", {"R": 1, "n": 2}),
        ],
        _MEMORY_TERMS,
    ),
    # The number of features is chosen and the ranks are fixed, so neither is varied.
    "recommended": Terms(
        "AssociationHC",
        [
            Term("", {}),
            Term("n² p", {"n": 2, "p": 1}),
            Term("n p", {"n": 1, "p": 1}),
            Term("n²", {"n": 2}),
        ],
        _MEMORY_TERMS,
    ),
}
# A term that contributes less than this to every measurement is left out: it is not determined.
_MIN_SHARE = 0.01


class CostModel(NamedTuple):
    """Fitted coefficients by the names of the terms, and median relative errors."""

    terms: Terms
    seconds: dict[str, float]
    memory: dict[str, float]
    seconds_error: float
    memory_error: float

    def predict_seconds(self, size):
        """Return the predicted seconds of a fit with the given n, p, q and R."""
        return sum(
            self.seconds[term.name] * term.value(size)
            for term in self.terms.seconds
            if term.name in self.seconds
        )


def size_of(name, size):
    """Return n, p, q and R of a point of a curve; q and R are 0 where they are not given."""
    shape, given = GROWTH[name].fit_at(size)
    return shape | {"q": given.get("n_features_to_select", 0), "R": given.get("max_rank", 0)}


def fit_model(terms, curves):
    """Return the cost model of a procedure, fitted to its curves; None if there are none."""
    points = [
        (size_of(name, row["size"]), row)
        for name, curve in curves.items()
        if GROWTH[name].estimator == terms.estimator
        for row in curve
    ]
    if not points:
        return None
    sizes = [size for size, _ in points]
    seconds = np.array([row["seconds"] for _, row in points])
    x_bytes = np.array([8.0 * size["n"] * size["p"] for size in sizes])
    memory = x_bytes * np.array([row["multiple_of_x"] - 1 for _, row in points])
    by_seconds, seconds_error = _fit_terms(terms.seconds, sizes, seconds)
    by_memory, memory_error = _fit_terms(terms.memory, sizes, memory)
    return CostModel(terms, by_seconds, by_memory, seconds_error, memory_error)


def _fit_terms(terms, sizes, measured):
    """Return the coefficients by the names of the terms, and the median relative error."""
    relative = np.array([[term.value(size) for term in terms] for size in sizes])
    relative /= measured[:, None]
    # Columns of equal norm, since the solver stops at an absolute tolerance.
    scale = np.linalg.norm(relative, axis=0)
    coefficients = nnls(relative / scale, np.ones(len(sizes)))[0] / scale
    coefficients[(relative * coefficients).max(axis=0) < _MIN_SHARE] = 0.0
    error = float(np.median(np.abs(relative @ coefficients - 1)))
    names = [term.name for term in terms]
    return {n: float(c) for n, c in zip(names, coefficients, strict=True) if c > 0}, error


def growth_exponent(rows, low, high):
    """Return the slope of log seconds on log size, for sizes from `low` to `high`."""
    chosen = [(r["size"], r["seconds"]) for r in rows if low <= r["size"] <= high]
    size, seconds = np.log(np.array(chosen)).T
    return float(np.polyfit(size, seconds, 1)[0])
