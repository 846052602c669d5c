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
from mrshc.core.array_types import Index
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import n_threads
from mrshc.errors import (
    Parameter,
    ParameterError,
    Sentence,
    Setting,
    UserError,
    refused,
)
from mrshc.estimators.base import feature_targets
from mrshc.io.table import Table
from mrshc.methods import METHODS, Method
from mrshc.preprocessing import ObservedFilter, Prepared, StepReport, prepare
from mrshc.validation.parameters import check_jobs

_IN_MEMORY = Setting("in_memory", True)
# What a fit does not depend on.
_WITHOUT_EFFECT = ("n_jobs", "verbose", "checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A table made ready, and the estimator to be fitted to it."""

    table: Table
    matrix: DataMatrix  # (n, features left), what is fitted
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
    def data(self) -> pd.DataFrame | DataMatrix:
        """What is fitted: an array with names, so that refusals can name a feature."""
        if not self.matrix.in_memory:
            return self.matrix
        return pd.DataFrame(self.matrix.values, columns=self.feature_names)

    @property
    def n_missing(self) -> int:
        """Cells of the table that are missing."""
        # A table that stays in its file is not filtered: what is fitted has all its cells.
        data = self.table.data if self.table.data.in_memory else self.matrix
        return data.shape[0] * data.shape[1] - data.summary().n_observed

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator on which the result depends."""
        given = self.estimator.get_params()
        return {name: v for name, v in given.items() if name not in _WITHOUT_EFFECT}

    @property
    def work(self) -> str:
        """A hash of all that the result depends on."""
        about = [self.matrix.fingerprint(), self.method, str(self.n_clusters), str(self.truth)]
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
        Where X is put and fitted. Data that are not in memory are passed over once here.
    """
    if truth is not None and truth not in table.sample_annotations:
        there = ", ".join(map(str, table.sample_annotations.columns)) or "none"
        raise UserError(f"There is no annotation {truth!r} of the samples; there are: {there}.")
    given = {name: v for name, v in (parameters or {}).items() if v is not None}
    kind = _known_method(method)
    matrix, kept, log = table.data, np.arange(table.X.shape[1]), tuple[StepReport, ...]()
    if matrix.in_memory:
        prepared = _prepared(matrix.values, table, steps, shared=kind.needs_shared_features)
        matrix, kept, log = ArrayMatrix(prepared.X), prepared.kept, prepared.log
    else:
        _refuse_steps(steps)
    stays = matrix.in_memory and not place.takes_arrays
    if not stays:
        _refuse_without_memory(kind, given)
    estimator = _estimator(kind, given, n_features=kept.size)
    if "n_features_to_select" in given:  # as the fit would, but before anything is written
        feature_targets(given["n_features_to_select"], n_features=kept.size, n_constant=0)
    n_clusters = given.get("n_clusters")
    return Plan(
        table=table,
        matrix=matrix if stays else _placed(matrix, table, kept, place, given.get("n_jobs")),
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
    with refusals():
        prepared = prepare(X, steps, feature_names=list(table.feature_names))
    refuse_unknown_samples(prepared.X, table, shared=shared)
    return prepared


def _refuse_steps(steps: Sequence[Any]) -> None:
    if steps:
        raise ParameterError(
            "Filters, logarithms and the like need X in memory, but it stays in its file. Apply "
            "them when the file is written, or add {memory}.",
            memory=_IN_MEMORY,
        )


def _refuse_without_memory(method: Method, given: Mapping[str, Any]) -> None:
    """Refuse what can be done to arrays in memory only."""
    fields: dict[str, Any] = {
        "robust": Parameter("robust"),
        "hmv": Setting("method", "hmv"),
        "instead": Sentence(
            "is elsewhere. Use {memory}, without {device}",
            memory=_IN_MEMORY,
            device=Parameter("device"),
        ),
    }
    if given.get("robust"):
        raise ParameterError(
            "{robust} needs X in memory, but it {instead}, or leave {robust} out.", **fields
        )
    if method.features == "all":
        raise ParameterError(
            "Method {method} takes all features and needs X in memory, but it {instead}, or choose "
            "a number of features with {hmv}.",
            method=method.key,
            **fields,
        )


def refuse_elsewhere(table: Table) -> None:
    """Refuse to compare methods where X is not in memory: not all of them can do without."""
    if not table.data.in_memory:
        raise ParameterError(
            "A comparison needs X in memory, but it stays in its file. Add {memory}, or use mrshc "
            "cluster for one method after the other.",
            memory=_IN_MEMORY,
        )


def _placed(
    matrix: DataMatrix, table: Table, kept: Index, place: Place, n_jobs: int | None
) -> DataMatrix:
    """Return data where they are put, checked; refusals use the names that the table has."""
    with place.working():
        placed = place.put(matrix)
        placed.holds_integers = matrix.holds_integers  # it was put there as floats
        found = placed.summary(n_threads=n_threads(check_jobs(n_jobs)))
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
    return placed


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
        raise ParameterError(
            "Every two samples must share an observed feature, but {one!r} and {other!r} have none "
            "in common. Remove one of them, or add {impute}.",
            one=one,
            other=other,
            impute=Setting("impute", "features"),
        )


@contextmanager
def refusals() -> Iterator[None]:
    """Take what the library refuses of data and parameters as a mistake of the user."""
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        raise UserError(str(error)) from None


def _known_method(key: str) -> Method:
    if key not in METHODS:
        raise refused("method", key, allowed=f"be one of {', '.join(METHODS)}")
    return METHODS[key]


def _estimator(method: Method, given: dict[str, Any], *, n_features: int) -> Any:
    if method.features == "all":
        if "n_features_to_select" in given:
            raise ParameterError(
                "Method {method} takes all features. Use {hmv} to choose a number.",
                method=method.key,
                hmv=Setting("method", "hmv"),
                value=given["n_features_to_select"],
            )
        given = {**given, "n_features_to_select": n_features}
    if method.features == "given" and not isinstance(given.get("n_features_to_select"), int):
        raise ParameterError(
            "Method {method} needs a number of features. Give one with {number}.",
            method=method.key,
            number=Parameter("n_features_to_select"),
            value=given.get("n_features_to_select"),
        )
    if not method.finds_number_of_clusters and given.get("n_clusters") == "auto":
        given = {**given, "n_clusters": None}
    # Everyone has a seed and a number of workers; where nothing is drawn or spread they are idle.
    idle = {"random_state", "n_jobs"}
    if strange := sorted(set(given) - method.parameters - idle):
        raise ParameterError(
            "{parameter} has no meaning for method {method}. Leave it out.",
            parameter=Parameter(strange[0]),
            method=method.key,
            value=given[strange[0]],
        )
    return method.make(given)
