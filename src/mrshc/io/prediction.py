"""Assignment of new samples to the clusters of a saved result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.centres import ClusterCentres
from mrshc.errors import UserError
from mrshc.io.result import Result
from mrshc.io.result_files import learnt_column
from mrshc.io.table import Table
from mrshc.preprocessing.chains import SavedStep, preprocess_new
from mrshc.shell.wording import Parameter, ParameterError
from mrshc.validation import (
    check_table,
    positions_of_features,
    refuse_extreme_values,
    refuse_incomparable_samples,
)


def predict_clusters(result: Result, X: Any) -> pd.DataFrame:
    """Assign new samples to the clusters of a result.

    Parameters
    ----------
    result : Result
        The result, as returned by :func:`load_result`.
    X : DataFrame of shape (n_new_samples, n_features) or Table
        New samples, before preprocessing; NaN marks a missing value. Features are matched by name.
        Features that are not needed are ignored.

    Returns
    -------
    DataFrame of shape (n_new_samples, 4)
        One row for each sample. "cluster" is the cluster whose centre is nearest, counted from 1 as
        in the tables of a result, and "distance" is the distance to this centre. "second_cluster"
        and "second_distance" are those of the second nearest centre; they are missing if there is
        only one cluster. The index contains the names of the samples.

    Examples
    --------
    >>> from mrshc.io import load_result, predict_clusters, read_table
    >>> result = load_result("results")  # doctest: +SKIP
    >>> new = read_table("new.csv", min_samples=1)  # doctest: +SKIP
    >>> predict_clusters(result, new)  # doctest: +SKIP
    """
    try:
        return _predict_clusters(result, X)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(str(error)) from None


def _predict_clusters(result: Result, X: Any) -> pd.DataFrame:
    """Assign new samples to the clusters of a result; invalid data may raise any ValueError."""
    centers = result.centers
    n_steps = centers["n_steps"].to_numpy()
    names = [str(name) for name in centers.index]
    values, samples = _needed_values(X, names, n_same=centers["n_same"].to_numpy())
    refuse_extreme_values(values)
    values, present = preprocess_new(
        values, saved_steps(result), n_steps_passed=n_steps, names=names
    )
    used = centers["used"].to_numpy()
    values = values[:, used[present]]
    centres = centres_of_result(result)
    refuse_incomparable_samples(centres, values, samples)
    return _assignment_table(centres.distances(values), samples)


def saved_steps(result: Result) -> list[SavedStep]:
    """Return the preprocessing steps of a result, with the values that they learnt."""
    learnt: dict[int, dict[str, NDArray[np.float64]]] = {}
    for entry in result.about["prediction"]["learnt"]:
        column = result.centers[learnt_column(entry["step"], entry["name"])]
        learnt.setdefault(entry["step"], {})[entry["name"]] = column.to_numpy(dtype=np.float64)
    return [
        SavedStep(
            name=step["name"],
            parameters=step["parameters"],
            use=step["new_samples"],
            description=step["description"],
            learnt=learnt.get(number, {}),
        )
        for number, step in enumerate(result.about["preprocessing"], start=1)
    ]


def centres_of_result(result: Result) -> ClusterCentres:
    """Return the centres of the clusters of a result."""
    used = result.centers[result.centers["used"]]
    columns = [f"center_{k}" for k in range(1, result.n_clusters_ + 1)]
    limits = None
    if "lower" in used:
        # A missing limit means that the feature is not winsorised on this side.
        limits = np.array([used["lower"].fillna(-np.inf), used["upper"].fillna(np.inf)])
    return ClusterCentres(
        metric=result.about["prediction"]["metric"],
        features=np.arange(len(used)),
        values=used[columns].to_numpy(dtype=np.float64).T,
        weights=used["weight"].to_numpy(dtype=np.float64),
        limits=limits,
    )


def _needed_values(
    X: Any, names: Sequence[str], *, n_same: NDArray[np.intp]
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the values of new samples in the features with the given names, and sample names.

    `n_same` states how often the name of each feature occurred in the file of the result.
    """
    if isinstance(X, Table):
        given = [str(name) for name in X.feature_names]
        positions = _match(names, given, transposed=X.sample_names)
        counts = np.ones(len(given), np.intp) if X.name_counts is None else X.name_counts
        _refuse_other_counts(names, counts[positions], n_same)
        columns = X.data.columns(positions)
        return np.asarray(columns, dtype=np.float64), [str(name) for name in X.sample_names]
    if not hasattr(X, "iloc") or not hasattr(X, "columns"):
        raise UserError(
            "New samples must be a DataFrame or a Table, since their features are matched by name, "
            f"got {type(X).__name__}. Pass a pandas DataFrame with the names as columns."
        )
    positions = _match(names, [str(name) for name in X.columns], transposed=X.index)
    frame = check_table(X.iloc[:, positions])
    return frame.to_numpy(dtype=np.float64, na_value=np.nan), [str(name) for name in X.index]


def _match(names: Sequence[str], given: Sequence[str], *, transposed: Any) -> NDArray[np.intp]:
    """Return the positions of the needed features; raise UserError if one is missing.

    `transposed` contains the names of the samples, which are those of features if the table is
    transposed.
    """
    if not set(names) & set(given) and set(names) & {str(name) for name in transposed}:
        raise ParameterError(
            "The features of new samples must be those of the result, but the names of the samples "
            "are. Give {features}, or transpose the table.",
            features=Parameter("features"),
        )
    return positions_of_features(names, given)


def _refuse_other_counts(
    names: Sequence[str], counts: NDArray[np.intp], expected: NDArray[np.intp]
) -> None:
    """Raise UserError if a name occurs more or less often than in the file of the result.

    If it occurs equally often, features of the same name are matched in the order of the files.
    """
    differs = counts != expected
    if differs.any():
        i = int(differs.argmax())
        raise UserError(
            f"The name of the feature {names[i]!r} must occur in the new table as often as in the "
            f"table of the result ({expected[i]}), but it occurs {counts[i]} times. Keep the "
            "features that belong to the result."
        )


def _assignment_table(distances: NDArray[np.float64], samples: list[str]) -> pd.DataFrame:
    """Return the table of the two nearest clusters, given distances to all clusters."""
    order = np.argsort(distances, axis=1, kind="stable")
    rows = np.arange(len(distances))
    second: Any = pd.array([pd.NA] * len(distances), dtype="Int64")
    second_distance = np.full(len(distances), np.nan)
    if distances.shape[1] > 1:
        second = pd.array(order[:, 1] + 1, dtype="Int64")
        second_distance = distances[rows, order[:, 1]]
    return pd.DataFrame(
        {
            "cluster": order[:, 0] + 1,
            "distance": distances[rows, order[:, 0]],
            "second_cluster": second,
            "second_distance": second_distance,
        },
        index=pd.Index(samples, name="sample", dtype=object),
    )
