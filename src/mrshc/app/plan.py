"""The plan of a run: data, method and parameters, which are checked before files are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.app.confidence import ConfidenceSettings
from mrshc.app.execution_backends import LOCAL_BACKEND, ExecutionBackend
from mrshc.app.genes import GeneSettings
from mrshc.core import parallel
from mrshc.core.data.matrix import ArrayMatrix, DataMatrix, Summary, summarise
from mrshc.errors import UserError
from mrshc.io.table import Table
from mrshc.methods import METHODS, Method
from mrshc.preprocessing import detect_scale, prepare
from mrshc.preprocessing.chains import Prepared, StepReport
from mrshc.preprocessing.steps import ObservedFilter
from mrshc.shell.wording import (
    Parameter,
    ParameterError,
    Sentence,
    Setting,
    invalid_parameter_error,
)
from mrshc.validation import check_n_jobs

_IN_MEMORY = Setting("in_memory", True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Preprocessed data and the estimator to be fitted to them.

    Attributes
    ----------
    table : Table
        The table as it was read.
    matrix : DataMatrix of shape (n_samples, n_kept_features)
        The data to which the estimator is fitted, after preprocessing and, if necessary, transfer
        to the execution backend.
    kept_features : ndarray of shape (n_kept_features,)
        Positions in the table of the features that preprocessing kept.
    log : tuple of StepReport
        One report for each preprocessing step.
    steps : tuple of transformers
        The fitted preprocessing steps.
    n_steps_passed : ndarray of shape (n_features,)
        Number of steps that each feature of the table passed before a step removed it.
    backend : ExecutionBackend
        Process, cluster or device on which the estimator is fitted.
    method : str
        Key of the method in :data:`mrshc.methods.METHODS`.
    estimator : estimator
        The unfitted estimator.
    n_clusters : int or None
        Number of clusters that the user requested. If None, the number is chosen by the method or,
        after the fit, by the average silhouette.
    truth : str or None
        Name of the annotation of the samples that contains their known classes; None if no classes
        are known.
    command : str
        Command line that repeats the run.
    confidence : ConfidenceSettings
        Analyses of significance and stability that follow the fit.
    genes : GeneSettings
        Column of genes, links and gene sets.
    n_missing : int
        Number of missing values in the table.
    concerns : tuple of str, default=()
        Sentences on data that should be transformed before they are clustered.
    """

    table: Table
    matrix: DataMatrix
    kept_features: NDArray[np.intp]
    log: tuple[StepReport, ...]
    steps: tuple[Any, ...]
    n_steps_passed: NDArray[np.intp]
    backend: ExecutionBackend
    method: str
    estimator: Any
    n_clusters: int | None
    # The known classes are never passed to the estimator, since they must not influence the
    # clusters.
    truth: str | None
    command: str
    confidence: ConfidenceSettings
    genes: GeneSettings
    n_missing: int
    concerns: tuple[str, ...] = ()

    @property
    def feature_names(self) -> NDArray[Any]:
        """Names of the features that preprocessing kept."""
        return self.table.feature_names[self.kept_features]

    @property
    def data(self) -> pd.DataFrame | DataMatrix:
        """Data to be passed to the estimator.

        Data in memory are passed as a data frame, so that error messages can name a feature. Other
        data are passed as a `DataMatrix`.
        """
        # Estimators also accept a `DataMatrix`, which has no feature names.
        if not self.matrix.in_memory:
            return self.matrix
        return pd.DataFrame(self.matrix.values, columns=self.feature_names)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator that affect the result."""
        given = self.estimator.get_params()
        return {name: v for name, v in given.items() if name != "n_jobs"}


def make_plan(
    table: Table,
    *,
    method: str = "association",
    parameters: Mapping[str, Any] | None = None,
    steps: Sequence[Any] = (),
    truth: str | None = None,
    command: str = "",
    backend: ExecutionBackend = LOCAL_BACKEND,
    confidence: ConfidenceSettings | None = None,
    genes: GeneSettings | None = None,
    reports_scale: bool = True,
) -> Plan:
    """Return the plan of a run, with the preprocessed data and the unfitted estimator.

    Data that are out-of-core or transferred to a device are checked in one pass over the data.
    """
    if truth is not None and truth not in table.sample_annotations:
        available = ", ".join(map(str, table.sample_annotations.columns)) or "none"
        raise UserError(f"There is no annotation {truth!r} of the samples; there are: {available}.")
    # The command line passes every option. Options that the user did not give are None.
    given = {name: v for name, v in (parameters or {}).items() if v is not None}
    chosen_method = _get_method(method)
    matrix, kept, log = table.data, np.arange(table.X.shape[1]), tuple[StepReport, ...]()
    fitted_steps, n_steps_passed = tuple[Any, ...](), np.zeros(kept.size, dtype=np.intp)
    if matrix.in_memory:
        needs_shared = chosen_method.needs_shared_features
        prepared = _preprocess(matrix.values, table, steps, needs_shared_features=needs_shared)
        matrix, kept, log = ArrayMatrix(prepared.X), prepared.kept, prepared.log
        fitted_steps, n_steps_passed = prepared.steps, prepared.n_steps_passed
    else:
        _refuse_steps_out_of_core(steps)
    is_local_array = matrix.in_memory and not backend.transfers_arrays
    analyses = ConfidenceSettings() if confidence is None else confidence
    if not is_local_array:
        _refuse_in_memory_methods(chosen_method, given)
        _refuse_in_memory_analyses(analyses)
    estimator = _make_estimator(chosen_method, given, n_features=kept.size)
    gene_settings = GeneSettings() if genes is None else genes
    with value_errors_as_user_errors():
        analyses.check(estimator)
        gene_settings.check(table, kept)
    n_clusters = given.get("n_clusters")
    if is_local_array:
        n_missing = int(np.isnan(table.data.values).sum())
    else:
        matrix, summary = _transfer(
            matrix, table, kept, backend=backend, n_jobs=given.get("n_jobs")
        )
        n_missing = matrix.shape[0] * matrix.shape[1] - int(summary.counts.sum())
    return Plan(
        table=table,
        matrix=matrix,
        kept_features=kept,
        log=log,
        steps=fitted_steps,
        n_steps_passed=n_steps_passed,
        backend=backend,
        method=method,
        estimator=estimator,
        n_clusters=None if n_clusters == "auto" else n_clusters,
        truth=truth,
        command=command,
        confidence=analyses,
        genes=gene_settings,
        n_missing=n_missing,
        concerns=_scale_concerns(table, steps) if reports_scale else (),
    )


def _scale_concerns(table: Table, steps: Sequence[Any]) -> tuple[str, ...]:
    """Return a sentence, in a tuple, if a table contains counts or raw intensities.

    The tuple is empty if one of the preprocessing steps takes logarithms.
    """
    if any(getattr(step, "takes_logarithms", False) for step in steps):
        return ()
    message = detect_scale(table.data).message
    return () if message is None else (message,)


def _preprocess(
    X: NDArray[Any], table: Table, steps: Sequence[Any], *, needs_shared_features: bool
) -> Prepared:
    """Return the values of a table after preprocessing; raise UserError if they cannot be used.

    `X` contains the values of the table. For `needs_shared_features`, see
    `refuse_samples_without_values`.
    """
    _refuse_unusable_values(X, table)
    # No method can use a feature without any value. Such features are removed automatically, so the
    # user need not remove them from the table.
    if np.isnan(X).all(axis=0).any():
        # `ObservedFilter` is the first step, since imputation cannot use such a feature either.
        steps = [ObservedFilter(), *steps]
    with value_errors_as_user_errors():
        prepared = prepare(X, steps, feature_names=list(table.feature_names))
    refuse_samples_without_values(prepared.X, table, needs_shared_features=needs_shared_features)
    return prepared


def _refuse_steps_out_of_core(steps: Sequence[Any]) -> None:
    """Raise ParameterError if there are preprocessing steps; called only for out-of-core data."""
    if steps:
        raise ParameterError(
            "Filters, logarithms and other preprocessing steps need X in memory, but it is read "
            "from its file in blocks. Apply them when the file is written, or add {memory}.",
            memory=_IN_MEMORY,
        )


def _refuse_in_memory_methods(method: Method, given: Mapping[str, Any]) -> None:
    """Raise ParameterError if the method or a given parameter needs data in memory.

    This function is called only for data that are out-of-core or on a device.
    """
    # The sentence "instead" is a part of both messages. On the command line, the parameters in it
    # are replaced by options.
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
    if method.features in ("all", "weighted"):
        raise ParameterError(
            "Method {method} takes all features and needs X in memory, but it {instead}, or choose "
            "a number of features with {hmv}.",
            method=method.key,
            **fields,
        )


def _refuse_in_memory_analyses(analyses: ConfidenceSettings) -> None:
    """Raise ParameterError if an analysis was requested that needs data in memory.

    This function is called only for data that are out-of-core or on a device.
    """
    if analyses.is_given:
        raise ParameterError(
            "{analysis} needs X in memory, but it is stored elsewhere. Use {memory}, without "
            "{device}, or leave {analysis} out.",
            analysis=Parameter("significance" if analyses.significance else "stability"),
            memory=_IN_MEMORY,
            device=Parameter("device"),
        )


def refuse_out_of_core_comparison(table: Table) -> None:
    """Raise ParameterError if a table is out-of-core.

    Some of the compared methods cannot be fitted to out-of-core data.
    """
    if not table.data.in_memory:
        raise ParameterError(
            "A comparison needs X in memory, but it is read from its file in blocks. Add {memory}, "
            "or use mrshc cluster for one method after the other.",
            memory=_IN_MEMORY,
        )


def _transfer(
    matrix: DataMatrix,
    table: Table,
    kept: NDArray[np.intp],
    *,
    backend: ExecutionBackend,
    n_jobs: int | None,
) -> tuple[DataMatrix, Summary]:
    """Transfer data to a backend, check them, and return the transferred data and their summary.

    Raises UserError if a sample or a feature has no value, or if a value is infinite.
    """
    with backend.activate(), value_errors_as_user_errors():
        transferred = backend.transfer(matrix)
        with parallel.threads(check_n_jobs(n_jobs)):
            summary = summarise(transferred)
    names = {"sample": table.sample_names, "feature": table.feature_names[kept]}
    # The summary contains the number of observed values of each sample and each feature, so no
    # further pass over the data is needed.
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
    return transferred, summary


def _refuse_unusable_values(X: NDArray[Any], table: Table) -> None:
    """Raise UserError if a value is infinite or a sample has no value.

    The message names the sample and, for an infinite value, the feature.
    """
    # The message gives the position of only the first infinite value, since there may be many.
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
    """Raise UserError if a sample has no value after preprocessing.

    If `needs_shared_features` is true, the error is also raised if there are two samples without a
    feature that is observed in both.
    """
    observed = ~np.isnan(X)
    # Data without missing values need no check, and computing the product below takes time.
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
    # The product of the 0/1 matrix with its transpose contains, for each pair of samples, the
    # number of features observed in both. The matrix is floating-point, since numpy multiplies
    # integer matrices without BLAS. Rounding of large counts does not matter, since only counts of
    # zero are of interest.
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
    """Turn each ValueError raised in this context into a UserError with the same message."""
    # The data and the parameters come from the user, who must correct the error. Many messages
    # begin with the name of a parameter, which the command line replaces by that of an option.
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        message = Sentence("{name} {rest}", name=Parameter(name), rest=rest)
        raise UserError(message) from None


def _get_method(key: str) -> Method:
    """Return the registered method with this key; raise ParameterError if the key is unknown."""
    if key not in METHODS:
        raise invalid_parameter_error("method", key, allowed=f"be one of {', '.join(METHODS)}")
    return METHODS[key]


def _make_estimator(method: Method, given: dict[str, Any], *, n_features: int) -> Any:
    """Return the unfitted estimator of a method; raise ParameterError if a parameter is invalid.

    `given` contains the parameters by name, and `n_features` is the number of features after
    preprocessing.
    """
    if method.features == "all":
        if "n_features_to_select" in given:
            raise ParameterError(
                "Method {method} takes all features. Use {hmv} to choose a number.",
                method=method.key,
                hmv=Setting("method", "hmv"),
                value=given["n_features_to_select"],
            )
        given = {**given, "n_features_to_select": n_features}
    # A method that cannot choose the number of features needs one number, not several candidates or
    # "auto".
    if method.features == "given" and not isinstance(given.get("n_features_to_select"), int):
        raise ParameterError(
            "Method {method} needs a number of features. Give one with {number}.",
            method=method.key,
            number=Parameter("n_features_to_select"),
            value=given.get("n_features_to_select"),
        )
    # For a method without a rule for the number of clusters, "auto" means that the average
    # silhouette chooses the number after the fit.
    if not method.finds_number_of_clusters and given.get("n_clusters") == "auto":
        given = {**given, "n_clusters": None}
    # The command line always passes a seed and a number of workers. These values are ignored for
    # methods that do not have the parameters.
    ignored = {"random_state", "n_jobs"}
    if unknown := sorted(set(given) - method.parameters - ignored):
        raise ParameterError(
            "{parameter} has no meaning for method {method}. Leave it out.",
            parameter=Parameter(unknown[0]),
            method=method.key,
            value=given[unknown[0]],
        )
    return method.make_estimator(given)
