"""Methods of clustering that a run can use and a comparison puts side by side: one registry.

The command line, its help, comparisons, studies, saved results, titles and the report take names
and properties of methods from here. Estimators are imported when a method is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method of clustering.

    Parameters
    ----------
    key : str
        Its name on the command line and in saved results, such as "mrshc".
    label : str
        Its name in comparisons and titles, such as "MrSHC".
    name : str
        Its full name, for the report.
    summary : str
        A few words for the help of the command line; may be empty.
    load : callable
        Returns the class of the estimator. Called when the method is used, so that importing the
        registry is fast.
    features : {"chosen", "all", "given"}
        Whether the method chooses the features, takes all of them, or needs the number
        `n_features_to_select`.
    follows : str or None
        In a comparison, the key of the method whose number of selected features it takes over.
    comparison_position : int or None
        Position among the methods of a comparison, the smallest first; None: not compared unless
        asked for.
    finds_number_of_clusters : bool
        Whether "auto" is a value of its `n_clusters`; otherwise its tree is cut.
    needs_shared_features : bool
        Whether every two samples need a feature in which both are observed.
    loadings : {"rank", "one"} or None
        Loadings of features in the result: one column for each component, with a rank; one column
        of weights; or none.
    """

    key: str
    label: str
    name: str
    summary: str
    load: Callable[[], type]
    features: Literal["chosen", "all", "given"] = "chosen"
    follows: str | None = None
    comparison_position: int | None = 100
    finds_number_of_clusters: bool = False
    needs_shared_features: bool = False
    loadings: Literal["rank", "one"] | None = None

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters of the estimator."""
        return set(signature(self.load()).parameters)

    @property
    def loading_name(self) -> str:
        """What plots and tables call the loadings."""
        return "weight" if self.loadings == "one" else "loading"

    def n_loadings(self, rank: int | None) -> int:
        """Return the number of columns of loadings in a result of a given rank."""
        return {"rank": rank or 0, "one": 1, None: 0}[self.loadings]

    def make(self, given: Mapping[str, Any]) -> Any:
        """Return the estimator with those of the given parameters that it takes."""
        known = self.parameters
        return self.load()(**{name: value for name, value in given.items() if name in known})

    def make_compared(self, given: Mapping[str, Any], *, n_features: int) -> Any:
        """Return the estimator of a comparison, or a function that makes it from fitted ones."""
        if self.follows is not None:
            other = METHODS[self.follows].label
            return lambda fitted: self.make(
                {**given, "n_features_to_select": fitted[other].n_features_selected_}
            )
        if self.features == "all":
            given = {**given, "n_features_to_select": n_features}
        return self.make(given)


# By key, in the order in which help and error messages list them.
METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Register a method under its key.

    Parameters
    ----------
    method : Method
        Its key and its label differ from those of every registered method.

    Returns
    -------
    method : Method
        The same method.

    Examples
    --------
    >>> from mrshc.methods import METHODS
    >>> METHODS["hmv"].label
    'HC-HMV'
    """
    for other in METHODS.values():
        if method.key == other.key or method.label == other.label:
            raise ValueError(
                f"The method {method.key!r} must have a key and a label of its own, but "
                f"{other.key!r} ({other.label}) is registered already. Rename it."
            )
    METHODS[method.key] = method
    return method


def compared_methods() -> list[Method]:
    """Return the methods of a comparison, in their order."""
    placed = [m for m in METHODS.values() if m.comparison_position is not None]
    return sorted(placed, key=lambda m: m.comparison_position or 0)


def _estimator(name: str) -> Callable[[], type]:
    """Return a function that imports an estimator of this package."""
    return lambda: getattr(import_module("mrshc.estimators"), name)


register(
    Method(
        key="mrshc",
        label="MrSHC",
        name="Multi-rank sparse hierarchical clustering (MrSHC)",
        summary="",
        load=_estimator("MrSHC"),
        comparison_position=3,
        finds_number_of_clusters=True,
        loadings="rank",
    )
)
register(
    Method(
        key="shc",
        label="SHC",
        name="Sparse hierarchical clustering of Witten and Tibshirani (SHC)",
        summary="sparse clustering of Witten and Tibshirani",
        load=_estimator("SHC"),
        comparison_position=2,
        needs_shared_features=True,
        loadings="one",
    )
)
register(
    Method(
        key="hc",
        label="HC",
        name="Classical hierarchical clustering",
        summary="classical, all features",
        load=_estimator("HighVarianceHC"),
        features="all",
        comparison_position=1,
    )
)
register(
    Method(
        key="hmv",
        label="HC-HMV",
        name="Hierarchical clustering on the features of highest variance",
        summary="classical, features of highest variance",
        load=_estimator("HighVarianceHC"),
        features="given",
        follows="mrshc",
        comparison_position=4,
    )
)
