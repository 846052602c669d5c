"""The plan of a run: data, method and parameters, checked before anything is written."""

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

from mrshc.app.execution_backends import LOCAL_BACKEND, ExecutionBackend
from mrshc.core.array_types import Index
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import effective_n_threads
from mrshc.errors import (
    Parameter,
    ParameterError,
    Sentence,
    Setting,
    UserError,
    invalid_parameter_error,
)
from mrshc.estimators.base import candidate_feature_counts
from mrshc.io.table import Table
from mrshc.methods import METHODS, Method
from mrshc.preprocessing import ObservedFilter, Prepared, StepReport, prepare
from mrshc.validation.parameters import check_n_jobs

_IN_MEMORY = Setting("in_memory", True)
# Parameters of estimators on which results do not depend: they may differ when a run is resumed.
_PARAMETERS_WITHOUT_EFFECT = ("n_jobs", "verbose", "checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Preprocessed data and the estimator to be fitted to them.

    Attributes
    ----------
    table : Table
        The table as it was read.
    matrix : DataMatrix of shape (n_samples, n_kept_features)
        The data to fit, after preprocessing and on the execution backend.
    kept_features : ndarray of shape (n_kept_features,)
        Positions of the kept features in the table.
    log : tuple of StepReport
        One report for each preprocessing step.
    backend : ExecutionBackend
        Where the estimator is fitted.
    method : str
        Key of the method in :data:`mrshc.methods.METHODS`.
    estimator : estimator
        The unfitted estimator.
    n_clusters : int or None
        Number of clusters asked for; None if the method or the silhouette chooses it.
    truth : str or None
        Annotation of the samples that holds their classes.
    command : str
        Command that repeats the run.
    """

    table: Table
    matrix: DataMatrix
    kept_features: Index
    log: tuple[StepReport, ...]
    backend: ExecutionBackend
    method: str
    estimator: Any
    n_clusters: int | None
    # Never given to the estimator: known classes must not influence the clusters.
    truth: str | None
    command: str

    @property
    def feature_names(self) -> NDArray[Any]:
        """Names of the features that preprocessing kept."""
        return self.table.feature_names[self.kept_features]

    @property
    def data(self) -> pd.DataFrame | DataMatrix:
        """The data to fit; in memory, a data frame, so that errors can name a feature."""
        # Estimators take out-of-core data as a `DataMatrix`; it has no names.
        if not self.matrix.in_memory:
            return self.matrix
        return pd.DataFrame(self.matrix.values, columns=self.feature_names)

    @property
    def n_missing(self) -> int:
        """Number of missing values in the table."""
        # Out-of-core data are not filtered, so the fitted data have all values of the table, and
        # their summary is known from the pass that checked them.
        data = self.table.data if self.table.data.in_memory else self.matrix
        return data.shape[0] * data.shape[1] - data.summary().n_observed

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator on which the result depends."""
        given = self.estimator.get_params()
        return {name: v for name, v in given.items() if name not in _PARAMETERS_WITHOUT_EFFECT}

    @property
    def fingerprint(self) -> str:
        """Hash of everything on which the result depends: data, names, method, parameters."""
        parts = [self.matrix.fingerprint(), self.method, str(self.n_clusters), str(self.truth)]
        parts += [str(sorted(self.parameters.items())), version("mrshc")]
        parts += [*map(str, self.table.sample_names), *map(str, self.feature_names)]
        parts += [self.table.sample_annotations.to_csv(), self.table.feature_annotations.to_csv()]
        # Names may hold surrogates, which stand for bytes that are not valid text.
        return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def make_plan(
    table: Table,
    *,
    method: str = "mrshc",
    parameters: Mapping[str, Any] | None = None,
    steps: Sequence[Any] = (),
    truth: str | None = None,
    command: str = "",
    backend: ExecutionBackend = LOCAL_BACKEND,
) -> Plan:
    """Preprocess a table, make the estimator, and refuse requests that cannot work.

    Parameters
    ----------
    table : Table
        The data to cluster.
    method : str, default="mrshc"
        Key of a registered method; see :mod:`mrshc.methods`.
    parameters : mapping or None, default=None
        Parameters of the estimator by name, and `n_clusters`. The value None stands for the
        default of a parameter.
    steps : sequence of transformers, default=()
        Preprocessing steps, in this order. They need data in memory.
    truth : str or None, default=None
        Annotation of the samples that holds their classes. It is used for scores, never to fit.
    command : str, default=""
        Command that repeats the run, for the description of the result.
    backend : ExecutionBackend, default=LOCAL_BACKEND
        Where X is stored and fitted. Out-of-core data are checked in one pass.

    Returns
    -------
    Plan
        What :func:`mrshc.app.fit` needs.

    Raises
    ------
    UserError
        If the data, the method and the parameters do not go together.
    """
    if truth is not None and truth not in table.sample_annotations:
        available = ", ".join(map(str, table.sample_annotations.columns)) or "none"
        raise UserError(f"There is no annotation {truth!r} of the samples; there are: {available}.")
    # The command line passes every option; those that the user did not give are None.
    given = {name: v for name, v in (parameters or {}).items() if v is not None}
    chosen_method = _get_method(method)
    matrix, kept, log = table.data, np.arange(table.X.shape[1]), tuple[StepReport, ...]()
    if matrix.in_memory:
        needs_shared = chosen_method.needs_shared_features
        prepared = _preprocess(matrix.values, table, steps, needs_shared_features=needs_shared)
        matrix, kept, log = ArrayMatrix(prepared.X), prepared.kept, prepared.log
    else:
        _refuse_steps_out_of_core(steps)
    is_local_array = matrix.in_memory and not backend.transfers_arrays
    if not is_local_array:
        _refuse_in_memory_methods(chosen_method, given)
    estimator = _make_estimator(chosen_method, given, n_features=kept.size)
    # `fit` checks this too, but only after files have been written.
    if "n_features_to_select" in given:
        candidate_feature_counts(given["n_features_to_select"], n_features=kept.size, n_constant=0)
    n_clusters = given.get("n_clusters")
    if not is_local_array:
        matrix = _transfer(matrix, table, kept, backend=backend, n_jobs=given.get("n_jobs"))
    return Plan(
        table=table,
        matrix=matrix,
        kept_features=kept,
        log=log,
        backend=backend,
        method=method,
        estimator=estimator,
        n_clusters=None if n_clusters == "auto" else n_clusters,
        truth=truth,
        command=command,
    )


def _preprocess(
    X: NDArray[Any], table: Table, steps: Sequence[Any], *, needs_shared_features: bool
) -> Prepared:
    """Return the values of a table after the steps, and refuse values that cannot be used."""
    _refuse_unusable_values(X, table)
    # No method can use a feature without values, and a user cannot be asked to remove each one.
    if np.isnan(X).all(axis=0).any():
        # Before all other steps, since imputation cannot use such a feature either.
        steps = [ObservedFilter(), *steps]
    with value_errors_as_user_errors():
        prepared = prepare(X, steps, feature_names=list(table.feature_names))
    refuse_samples_without_values(prepared.X, table, needs_shared_features=needs_shared_features)
    return prepared


def _refuse_steps_out_of_core(steps: Sequence[Any]) -> None:
    """Refuse preprocessing of data that are not in memory."""
    if steps:
        raise ParameterError(
            "Filters, logarithms and other preprocessing steps need X in memory, but it is read "
            "from its file in blocks. Apply them when the file is written, or add {memory}.",
            memory=_IN_MEMORY,
        )


def _refuse_in_memory_methods(method: Method, given: Mapping[str, Any]) -> None:
    """Refuse methods and parameters that need an array in the memory of this process."""
    # The sentences share their ends, which name options of the command line.
    fields: dict[str, Any] = {
        "robust": Parameter("robust"),
        "hmv": Setting("method", "hmv"),
        "instead": Sentence(
            "is stored elsewhere. Use {memory}, without {device}",
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


def refuse_out_of_core_comparison(table: Table) -> None:
    """Refuse to compare methods on out-of-core data, which not all of them can use."""
    if not table.data.in_memory:
        raise ParameterError(
            "A comparison needs X in memory, but it is read from its file in blocks. Add {memory}, "
            "or use mrshc cluster for one method after the other.",
            memory=_IN_MEMORY,
        )


def _transfer(
    matrix: DataMatrix,
    table: Table,
    kept: Index,
    *,
    backend: ExecutionBackend,
    n_jobs: int | None,
) -> DataMatrix:
    """Return data as stored on a backend, checked for empty rows and columns and infinite values.

    Parameters
    ----------
    matrix : DataMatrix of shape (n_samples, n_kept_features)
        The data.
    table : Table
        Gives the names of samples and features for error messages.
    kept : ndarray of shape (n_kept_features,)
        Positions of the features in the table.
    backend : ExecutionBackend
        Where the data go.
    n_jobs : int or None
        Number of workers, which gives the number of threads of the pass.
    """
    with backend.activate():
        transferred = backend.transfer(matrix)
        # Backends store floating-point numbers; that they were integers is recorded separately.
        transferred.holds_integers = matrix.holds_integers
        summary = transferred.summary(n_threads=effective_n_threads(check_n_jobs(n_jobs)))
    names = {"sample": table.sample_names, "feature": table.feature_names[kept]}
    # The summary of the pass has counts of observed values: no further pass is needed.
    for axis, counts in (("sample", summary.row_counts), ("feature", summary.counts)):
        if not counts.all():
            raise UserError(
                f"Every {axis} needs a value, but {axis} {names[axis][counts.argmin()]!r} has "
                f"none. Leave it out when {table.source} is written."
            )
    if np.isinf(summary.lowest) or np.isinf(summary.highest):
        raise UserError(
            f"Values must be finite, but {table.source} holds inf. Correct the transformation "
            "that produced it, such as a logarithm of zero."
        )
    return transferred


def _refuse_unusable_values(X: NDArray[Any], table: Table) -> None:
    """Refuse infinite values and samples without values, by the names in the table."""
    # The message names the first infinite value, since tables are large.
    infinite = np.isinf(X)
    if infinite.any():
        i, j = np.unravel_index(int(infinite.argmax()), infinite.shape)
        raise UserError(
            f"Values must be finite, but {table.source} holds inf (first in sample "
            f"{table.sample_names[i]!r}, feature {table.feature_names[j]!r}). Correct the "
            "transformation that produced it, such as a logarithm of zero."
        )
    empty = np.flatnonzero(np.isnan(X).all(axis=1))
    if empty.size:
        raise UserError(
            f"Every sample needs a value, but sample {table.sample_names[empty[0]]!r} has none. "
            f"Remove it from {table.source}."
        )


def refuse_samples_without_values(
    X: NDArray[Any], table: Table, *, needs_shared_features: bool
) -> None:
    """Refuse samples without values in the kept features, or pairs without a shared feature.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_kept_features)
        Values after preprocessing; NaN where missing.
    table : Table
        Gives the names of the samples.
    needs_shared_features : bool
        Whether every two samples must have a feature observed in both, as methods require that
        compare samples pair by pair.
    """
    observed = ~np.isnan(X)
    # The product below costs time: data without missing values need no check.
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
    # A product of 0/1 matrices counts shared features. Floats, since numpy multiplies matrices of
    # integers without BLAS; rounding of large counts does not matter, as only zero is looked for.
    counts = observed.astype(np.float32)
    if needs_shared_features and (pairs := np.argwhere(counts @ counts.T == 0)).size:
        one, other = (names[i] for i in pairs[0])
        raise ParameterError(
            "Every two samples must share an observed feature, but {one!r} and {other!r} have none "
            "in common. Remove one of them, or add {impute}.",
            one=one,
            other=other,
            impute=Setting("impute", "features"),
        )


@contextmanager
def value_errors_as_user_errors() -> Iterator[None]:
    """Raise each ValueError of the library as a UserError with the same message."""
    # The data and the parameters come from the user, so an error in them is the user's to correct.
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        raise UserError(str(error)) from None


def _get_method(key: str) -> Method:
    """Return a registered method; refuse unknown keys."""
    if key not in METHODS:
        raise invalid_parameter_error("method", key, allowed=f"be one of {', '.join(METHODS)}")
    return METHODS[key]


def _make_estimator(method: Method, given: dict[str, Any], *, n_features: int) -> Any:
    """Return the unfitted estimator of a method; refuse parameters that it does not have."""
    if method.features == "all":
        if "n_features_to_select" in given:
            raise ParameterError(
                "Method {method} takes all features. Use {hmv} to choose a number.",
                method=method.key,
                hmv=Setting("method", "hmv"),
                value=given["n_features_to_select"],
            )
        given = {**given, "n_features_to_select": n_features}
    # Candidates or "auto" are of no use for a method that cannot choose among them.
    if method.features == "given" and not isinstance(given.get("n_features_to_select"), int):
        raise ParameterError(
            "Method {method} needs a number of features. Give one with {number}.",
            method=method.key,
            number=Parameter("n_features_to_select"),
            value=given.get("n_features_to_select"),
        )
    # Their number is chosen by the silhouette after the fit, if the user leaves it open.
    if not method.finds_number_of_clusters and given.get("n_clusters") == "auto":
        given = {**given, "n_clusters": None}
    # The command line always gives a seed and a number of workers. Methods that draw no random
    # numbers and run in one process ignore them.
    ignored = {"random_state", "n_jobs"}
    if unknown := sorted(set(given) - method.parameters - ignored):
        raise ParameterError(
            "{parameter} has no meaning for method {method}. Leave it out.",
            parameter=Parameter(unknown[0]),
            method=method.key,
            value=given[unknown[0]],
        )
    return method.make_estimator(given)
