"""What is to be done with a table, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.app.execution_backends import HERE, Place
from mrshc.core.arrays import Index
from mrshc.core.data.interface import ArraySource, Source
from mrshc.core.data.out_of_core import FarData, summary
from mrshc.core.parallel import n_threads
from mrshc.errors import UserError
from mrshc.estimators.base import feature_targets
from mrshc.estimators.checkpoint import fingerprint
from mrshc.io.table import Table
from mrshc.methods import METHODS, Method
from mrshc.preprocessing import ObservedFilter, Prepared, StepReport, prepare
from mrshc.validation import check_jobs

# How refusals call parameters, and how the command line does; longer ones first.
_OPTIONS = {
    "n_features_to_select": "--n-features",
    "feature_tolerance": "--feature-tolerance",
    "n_permutations": "--n-permutations",
    "n_references": "--n-references",
    "min_difference": "--min-difference",
    "n_neighbors": "--neighbors",
    "n_features": "--top-variance",
    "n_clusters": "--n-clusters",
    "pseudocount": "--pseudocount",
    "min_ratio": "--min-ratio",
    "max_rank": "--max-rank",
    "l1_bound": "--l1-bound",
    "n_jobs": "--jobs",
    "Thresholds(floor=100)": "--floor 100",
    "Thresholds(floor=...)": "--floor",
    "floor must not lie above ceiling": "--floor must not lie above --ceiling",
    "linkage=": "--linkage ",
    "metric=": "--metric ",
    "or None, got": "got",
}
# What a fit does not depend on.
_WITHOUT_EFFECT = ("n_jobs", "verbose", "checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A table made ready, and the estimator to be fitted to it."""

    table: Table
    X: NDArray[Any] | FarData  # (n, features left), what is fitted
    kept: Index  # (features left,), which of the table's they are
    log: tuple[StepReport, ...]  # of what was done to the table
    place: Place  # where it is fitted
    method: str
    estimator: Any
    n_clusters: int | None  # None: to be found
    truth: str | None
    command: str  # that repeats the run

    @property
    def feature_names(self) -> NDArray[Any]:
        """Names of the features that are left."""
        return self.table.feature_names[self.kept]

    @property
    def data(self) -> pd.DataFrame | FarData:
        """What is fitted: an array with names, so that refusals can name a feature."""
        if isinstance(self.X, FarData):
            return self.X
        return pd.DataFrame(self.X, columns=self.feature_names)

    @property
    def n_missing(self) -> int:
        """Cells of the table that are missing."""
        if isinstance(self.table.X, np.ndarray):
            return int(np.isnan(self.table.X).sum())
        assert isinstance(self.X, FarData)  # nothing else comes of a table that is elsewhere
        return int(self.X.shape[0] * self.X.shape[1] - self.X.found.counts.sum())

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator on which the result depends."""
        given = self.estimator.get_params()
        return {name: v for name, v in given.items() if name not in _WITHOUT_EFFECT}

    @property
    def work(self) -> str:
        """A hash of all that the result depends on."""
        about = [fingerprint(self.X), self.method, str(self.n_clusters), str(self.truth)]
        about += [str(sorted(self.parameters.items())), version("mrshc")]
        about += [*map(str, self.table.sample_names), *map(str, self.feature_names)]
        about += [self.table.sample_annotations.to_csv(), self.table.feature_annotations.to_csv()]
        return sha256("\0".join(about).encode(errors="surrogatepass")).hexdigest()


def plan_of(
    table: Table,
    *,
    method: str = "mrshc",
    parameters: Mapping[str, Any] | None = None,
    steps: Sequence[Any] = (),
    truth: str | None = None,
    command: str = "",
    place: Place = HERE,
) -> Plan:
    """Make a table ready for a method, and refuse what could not work before anything is written.

    Parameters
    ----------
    table : Table
        What to cluster.
    method : str
        Key of a registered method, such as "mrshc"; see :mod:`mrshc.methods`.
    parameters : mapping or None
        Of the estimator, by name, and `n_clusters`; None stands for a parameter's default.
    steps : sequence of transformers
        Preprocessing, in this order.
    truth : str or None
        Annotation of the samples that holds their classes; for scores only.
    command : str
        How the run can be repeated.
    place : Place
        Where X is put and fitted. What lives elsewhere is swept once here.
    """
    if truth is not None and truth not in table.sample_annotations:
        there = ", ".join(map(str, table.sample_annotations.columns)) or "none"
        raise UserError(f"There is no annotation {truth!r} of the samples; there are: {there}.")
    given = {name: v for name, v in (parameters or {}).items() if v is not None}
    kind = _known_method(method)
    X: NDArray[Any] | Source
    if isinstance(table.X, np.ndarray):
        prepared = _prepared(table.X, table, steps, shared=kind.needs_shared_features)
        X = ArraySource(prepared.X) if place.takes_arrays else prepared.X
        kept, log = prepared.kept, prepared.log
    else:
        _refuse_steps(steps)
        X, kept, log = table.X, np.arange(table.X.shape[1]), ()
    if not isinstance(X, np.ndarray):
        _refuse_without_memory(kind, given)
    estimator = _estimator(kind, given, n_features=kept.size)
    if "n_features_to_select" in given:  # as the fit would, but before anything is written
        with options_in_words():
            feature_targets(given["n_features_to_select"], n_features=kept.size, n_constant=0)
    n_clusters = given.get("n_clusters")
    return Plan(
        table=table,
        X=X if isinstance(X, np.ndarray) else _swept(X, table, kept, place, given.get("n_jobs")),
        kept=kept,
        log=log,
        place=place,
        method=method,
        estimator=estimator,
        n_clusters=None if n_clusters == "auto" else n_clusters,
        truth=truth,
        command=command,
    )


def _prepared(X: NDArray[Any], table: Table, steps: Sequence[Any], *, shared: bool) -> Prepared:
    """Return the values of a table after some steps, fit for use."""
    _refuse_bad_values(X, table)
    if np.isnan(X).all(axis=0).any():
        steps = [ObservedFilter(), *steps]
    with options_in_words():
        prepared = prepare(X, steps, feature_names=list(table.feature_names))
    refuse_unknown_samples(prepared.X, table, shared=shared)
    return prepared


def _refuse_steps(steps: Sequence[Any]) -> None:
    if steps:
        raise UserError(
            "Filters, logarithms and the like need X in memory, but it stays in its file. Apply "
            "them when the file is written, or add --in-memory."
        )


def _refuse_without_memory(method: Method, given: Mapping[str, Any]) -> None:
    """Refuse what can be done to arrays in memory only."""
    instead = "is elsewhere. Use --in-memory, without --device"
    if given.get("robust"):
        raise UserError(f"--robust needs X in memory, but it {instead}, or leave --robust out.")
    if method.features == "all":
        raise UserError(
            f"Method {method.key} takes all features and needs X in memory, but it {instead}, or "
            "choose a number of features with --method hmv."
        )


def refuse_elsewhere(table: Table) -> None:
    """Refuse to compare methods where X is not in memory: not all of them can do without."""
    if not isinstance(table.X, np.ndarray):
        raise UserError(
            "A comparison needs X in memory, but it stays in its file. Add --in-memory, or use "
            "mrshc cluster for one method after the other."
        )


def _swept(X: Source, table: Table, kept: Index, place: Place, n_jobs: int | None) -> FarData:
    """Return data where they are put, fit for use by the names that the table has."""
    with place.working():
        source = place.put(X)
        found = summary(source, n_threads=n_threads(check_jobs(n_jobs)))
    names = {"sample": table.sample_names, "feature": table.feature_names[kept]}
    for kind, counts in (("sample", found.row_counts), ("feature", found.counts)):
        if not counts.all():
            raise UserError(
                f"Every {kind} needs a value, but {kind} {names[kind][counts.argmin()]!r} has "
                f"none. Leave it out when {table.source} is written."
            )
    if np.isinf(found.lowest) or np.isinf(found.highest):
        raise UserError(
            f"Values must be finite, but {table.source} holds inf. Mend the transformation that "
            "made it, such as a logarithm of zero."
        )
    return FarData(source=source, found=found)


def _refuse_bad_values(X: NDArray[Any], table: Table) -> None:
    """Refuse what no method can use, by the names that the table has."""
    infinite = np.isinf(X)
    if infinite.any():
        i, j = np.unravel_index(int(infinite.argmax()), infinite.shape)
        raise UserError(
            f"Values must be finite, but {table.source} holds inf (first in sample "
            f"{table.sample_names[i]!r}, feature {table.feature_names[j]!r}). Mend the "
            "transformation that made it, such as a logarithm of zero."
        )
    empty = np.flatnonzero(np.isnan(X).all(axis=1))
    if empty.size:
        raise UserError(
            f"Every sample needs a value, but sample {table.sample_names[empty[0]]!r} has none. "
            f"Remove it from {table.source}."
        )


def refuse_unknown_samples(X: NDArray[Any], table: Table, *, shared: bool) -> None:
    """Refuse samples without values in the features left and, if `shared`, pairs without any."""
    observed = ~np.isnan(X)
    if observed.all():
        return
    names = table.sample_names
    empty = np.flatnonzero(~observed.any(axis=1))
    if empty.size:
        raise UserError(
            f"Every sample needs a value, but sample {names[empty[0]]!r} has none in the "
            f"{X.shape[1]:,} features that are left. Remove it from {table.source}, or relax the "
            "filters."
        )
    counts = observed.astype(np.float32)
    if shared and (strangers := np.argwhere(counts @ counts.T == 0)).size:
        one, other = (names[i] for i in strangers[0])
        raise UserError(
            f"Every two samples must share an observed feature, but {one!r} and {other!r} have "
            "none in common. Remove one of them, or add --impute features."
        )


@contextmanager
def options_in_words() -> Iterator[None]:
    """Turn a refusal of a parameter into one of the option that sets it."""
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        sentence = str(error)
        for word, option in _OPTIONS.items():
            sentence = sentence.replace(word, option)
        raise UserError(sentence) from None


def _known_method(key: str) -> Method:
    if key not in METHODS:
        raise UserError(f"method must be one of {', '.join(METHODS)}, got {key!r}.")
    return METHODS[key]


def _estimator(method: Method, given: dict[str, Any], *, n_features: int) -> Any:
    if method.features == "all":
        if "n_features_to_select" in given:
            raise UserError(
                f"Method {method.key} takes all features. Use --method hmv to choose a number."
            )
        given = {**given, "n_features_to_select": n_features}
    if method.features == "given" and not isinstance(given.get("n_features_to_select"), int):
        raise UserError(
            f"Method {method.key} needs a number of features. Give one with --n-features."
        )
    if not method.finds_number_of_clusters and given.get("n_clusters") == "auto":
        given = {**given, "n_clusters": None}
    # Everyone has a seed and a number of workers; where nothing is drawn or spread they are idle.
    idle = {"random_state", "n_jobs"}
    if strange := sorted(set(given) - method.parameters - idle):
        option = "--" + strange[0].replace("_", "-")
        raise UserError(f"{option} has no meaning for method {method.key}. Leave it out.")
    return method.make(given)
