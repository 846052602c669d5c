"""Preprocessing of new samples with the parameters that the steps learnt from the data of a fit.

A saved result contains neither the fitted steps nor the data of the fit. It contains the name and
the parameters of each step, and the learnt values of the features that are needed to assign new
samples to clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin

from mrshc.errors import UserError

# Steps are registered when their modules are imported, and a saved result may contain any of them.
from mrshc.preprocessing import counts, imputation  # noqa: F401
from mrshc.preprocessing.steps import NewSampleUse, Step

# Uses of steps whose method `transform` is called for new samples.
_APPLIED = ("values", "samples")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedStep:
    """A preprocessing step as it is described in a saved result.

    Attributes
    ----------
    name : str
        Name of the class of the step.
    parameters : dict
        Parameters of the step.
    use : NewSampleUse
        How the step is applied to new samples.
    description : str
        Description of the step for messages.
    learnt : dict of str to ndarray of shape (n_needed,)
        Learnt values of the needed features, by the name of the fitted attribute; NaN for features
        that an earlier step removed.
    """

    name: str
    parameters: Mapping[str, Any]
    use: NewSampleUse
    description: str
    learnt: Mapping[str, NDArray[np.float64]]


def step_use(step: Any) -> NewSampleUse:
    """Return how a fitted step is applied to new samples; "impossible" for unknown steps."""
    if Step.classes.get(type(step).__name__) is not type(step):
        # Selectors of scikit-learn do not change values.
        return "selection" if isinstance(step, SelectorMixin) else "impossible"
    use: NewSampleUse = step.new_sample_use
    return use


def needed_features(
    steps: Sequence[Any], n_steps_passed: NDArray[np.intp], used: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the indices of the features that new samples need, in increasing order.

    A step that is applied to samples needs all features that the data of the fit had at this step.

    Parameters
    ----------
    steps : sequence of transformers
        The fitted steps.
    n_steps_passed : ndarray of shape (n_features,)
        Number of steps that each feature passed; see `Prepared`.
    used : ndarray of int
        Indices of the features in which clusters are compared.
    """
    first = next((i for i, step in enumerate(steps) if step_use(step) == "samples"), None)
    return np.sort(used) if first is None else np.flatnonzero(n_steps_passed >= first)


def learnt_values(
    steps: Sequence[Any], n_steps_passed: NDArray[np.intp], needed: NDArray[np.intp]
) -> dict[tuple[int, str], NDArray[np.float64]]:
    """Return the values that steps learnt for the needed features, by step and attribute.

    A value is NaN if an earlier step removed the feature. The parameters are those of
    `needed_features`, and its result.
    """
    values: dict[tuple[int, str], NDArray[np.float64]] = {}
    for i, step in enumerate(steps):
        for name in getattr(step, "learnt_arrays", ()) if step_use(step) in _APPLIED else ():
            if not hasattr(step, name):  # not needed with the parameters of the step
                continue
            of_all = np.full(n_steps_passed.size, np.nan)
            of_all[n_steps_passed >= i] = getattr(step, name)
            values[i, name] = of_all[needed]
    return values


def preprocess_new(
    X: NDArray[np.float64],
    steps: Sequence[SavedStep],
    *,
    n_steps_passed: NDArray[np.intp],
    names: Sequence[str],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return preprocessed new samples, and a mask of the features that no step removed.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_needed)
        Values of the new samples in the needed features; NaN marks a missing value.
    steps : sequence of SavedStep
        The steps, in the order in which they are applied.
    n_steps_passed : ndarray of shape (n_needed,)
        Number of steps that each feature passed in the data of the fit.
    names : sequence of str
        Names of the features for messages.

    Raises
    ------
    UserError
        If a step cannot be applied to new samples, or if a step cannot be applied to these values.
    """
    present = np.ones(n_steps_passed.size, dtype=bool)
    for i, saved in enumerate(steps):
        if saved.use == "impossible":
            raise UserError(
                f"New samples must be preprocessed like the data of the result, but the step "
                f"{saved.description!r} cannot be repeated from a saved result. Use the estimator "
                "in Python, in a pipeline with this step."
            )
        if saved.use == "imputation":
            _refuse_missing_values(X, saved)
        elif saved.use == "selection":
            X, present = X[:, n_steps_passed[present] > i], n_steps_passed > i
        else:
            labels = [repr(name) for name, kept in zip(names, present, strict=True) if kept]
            step = _restore(saved, present, labels=labels)
            try:
                X = step.transform(X)
            except AttributeError:  # a learnt value, without which the step is not fitted
                raise _unknown_step_error(saved) from None
    return X, present


def _unknown_step_error(saved: SavedStep) -> UserError:
    """Return, without raising it, the error for a step that cannot be made again."""
    return UserError(
        f"This version of mrshc has no preprocessing step {saved.name!r} as it is described in the "
        "result. Install the version that made the result, or make the result again."
    )


def _restore(saved: SavedStep, present: NDArray[np.bool_], *, labels: list[str]) -> Any:
    """Return a fitted step for the features in the mask `present`, with `labels` for messages."""
    try:
        step: Any = Step.classes[saved.name](**saved.parameters)
    except (KeyError, TypeError):
        raise _unknown_step_error(saved) from None
    if step.new_sample_use != saved.use:
        raise _unknown_step_error(saved)
    step.n_features_in_ = int(present.sum())
    step._feature_labels = labels
    for name, values in saved.learnt.items():
        setattr(step, name, values[present])
    return step


def _refuse_missing_values(X: NDArray[np.float64], saved: SavedStep) -> None:
    """Raise UserError if a value is missing that the step would impute."""
    n_missing = int(np.isnan(X).sum())
    if n_missing:
        raise UserError(
            f"The data of the result were imputed ({saved.description}), which needs these data "
            f"and cannot be repeated from a saved result, but {n_missing:,} of the values of the "
            "new samples that are needed are missing. Impute them first, or leave the samples out."
        )
