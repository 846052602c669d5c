"""Choice of the features that a heat map shows, with their values and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrshc.plotting.arguments import check_names, check_numbers
from mrshc.plotting.fitted_names import fitted_feature_names, label_features
from mrshc.shell.sample_alignment import SampleNames, are_same_names, feature_names_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeaturesToDraw:
    """Values and names of the features of a heat map.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_shown)
        Values of the features that are drawn.
    names : list of length n_shown
        Names of these features.
    positions : ndarray of shape (n_shown,)
        Positions of these features in the table that was passed.
    n_passed : int
        Number of features in the table that was passed.
    known_names : SampleNames
        Names by which annotations of the features are matched.
    """

    values: NDArray[np.float64]
    names: list[Any]
    positions: NDArray[np.intp]
    n_passed: int
    known_names: SampleNames

    def pick_annotations(self, annotations: Any) -> Any:
        """Return annotations of the features that are drawn.

        Annotations with an index are returned as they are, since they are matched by name later.
        Annotations without an index may have one value for each feature that was passed.
        """
        if not isinstance(annotations, Mapping):
            return annotations
        return {name: self._pick_values(values) for name, values in annotations.items()}

    def _pick_values(self, values: Any) -> Any:
        is_plain = isinstance(values, Iterable) and not isinstance(values, str)
        if hasattr(values, "iloc") or not is_plain:
            return values
        listed = list(values)
        if len(listed) != self.n_passed:
            return values
        return [listed[i] for i in self.positions]


def values_of_result(model: Any) -> Any:
    """Return the values of the selected features of a result.

    Raise ValueError if the model is an estimator, which does not contain its data.
    """
    if not hasattr(model, "selected"):
        raise ValueError(
            f"heatmap needs the data of the fit in addition to a {type(model).__name__}, got None. "
            "Write heatmap(model, X)."
        )
    return model.selected


def features_to_draw(
    model: Any, table: ArrayLike, *, n: int, names: Iterable[Any] | None
) -> FeaturesToDraw:
    """Return the features of a table that a heat map shows."""
    given = check_names("feature_names", names)
    given = None if given is None else list(given)
    # The columns are picked before the values are checked, since other columns may contain text.
    shape = np.shape(table)
    support = _support_in(model, table, shape)
    positions = np.arange(shape[1]) if len(shape) == 2 else np.arange(0)
    if support is not None:
        positions = np.flatnonzero(support)
        table = (
            table.iloc[:, positions] if hasattr(table, "iloc") else np.asarray(table)[:, positions]
        )
    values = _check_values(table, n)
    known = _known_names(model, table, positions=None if support is None else positions)
    if given is not None and support is not None and len(given) == shape[1]:
        given = [given[i] for i in positions]
    shown = given
    if given is None and known is not None:
        shown = label_features(model, known)
    q = values.shape[1]
    shown = list(positions.tolist() if shown is None else shown)
    if len(shown) != q:
        raise ValueError(
            f"feature_names must hold one name for each of the {q} selected features, got "
            f"{len(shown)}. Pass only the names of the selected features."
        )
    alternatives = tuple(index for index in (feature_names_of(given).of_fit,) if index is not None)
    return FeaturesToDraw(
        values=values,
        names=shown,
        positions=positions,
        n_passed=shape[1],
        known_names=SampleNames(of_fit=feature_names_of(known).of_fit, alternatives=alternatives),
    )


def _support_in(model: Any, table: Any, shape: tuple[int, ...]) -> Any:
    """Return the mask of the selected features if the table holds all features of the fit.

    None is returned for any other table, and if all features are selected.
    """
    if len(shape) != 2:
        return None
    columns: Any = getattr(table, "columns", None)
    # A result knows the names of all features and of the selected features.
    if hasattr(model, "selected") and hasattr(model, "features"):
        is_whole = columns is not None and set(columns) == set(model.features.index)
        return np.isin(columns, model.selected.columns) if is_whole else None
    if not hasattr(model, "get_support") or shape[1] != getattr(model, "n_features_in_", None):
        return None
    known = fitted_feature_names(model)
    support = np.asarray(model.get_support(), dtype=bool)
    if columns is None or known is None or are_same_names(columns, known):
        return None if support.all() else support
    # The same features in another order are found by their names.
    selected = {name for name, is_selected in zip(known, support, strict=True) if is_selected}
    if set(columns) == set(known):
        return np.array([name in selected for name in columns])
    return None


def _known_names(model: Any, table: Any, *, positions: NDArray[np.intp] | None) -> list[Any] | None:
    """Return the names of the features of a table; None if they have no names.

    `positions` are the positions of the features in the data of the fit; None if they are unknown.
    """
    if hasattr(table, "columns"):
        return list(table.columns)
    known = fitted_feature_names(model)
    if known is None:
        return None
    if positions is None:
        # The table has no names. A table with as many columns as there are selected features
        # contains these features.
        if not hasattr(model, "get_support"):
            return None
        positions = np.flatnonzero(model.get_support())
        if np.shape(table)[1] != positions.size:
            return None
    return [known[i] for i in positions]


def _check_values(table: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return the values of the features of n samples as a float64 matrix.

    Raise ValueError if `table` is not a matrix of real numbers with n rows and at least one column.
    """
    X = check_numbers("selected", table)
    if X.ndim != 2 or X.shape[0] != n or not X.shape[1]:
        raise ValueError(
            f"selected must hold the {n} samples of the tree in rows and at least one feature in "
            f"columns, got the shape {X.shape}. Pass the data of the fit, or only the selected "
            "features, such as model.transform(X)."
        )
    return X
