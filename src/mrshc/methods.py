"""Registry of clustering methods.

The command line and its help, comparisons, studies, saved results, plot titles and the report take
the names and properties of methods from this registry. Estimators are imported when a method is
used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A clustering method and its properties.

    Parameters
    ----------
    key : str
        Name on the command line and in saved results, such as "mrshc".
    label : str
        Name in comparisons and titles, such as "MrSHC".
    name : str
        Full name, for the report.
    summary : str
        Short description for the help of the command line; may be empty.
    load : callable
        Function without arguments that returns the class of the estimator. It is called when the
        method is used, so that importing the registry is fast.
    features : {"chosen", "all", "given"}, default="chosen"
        Whether the method chooses the features, uses all of them, or requires their number,
        `n_features_to_select`.
    follows : str or None, default=None
        In a comparison, key of the method whose number of selected features is used.
    comparison_position : int or None, default=100
        Position among the methods of a comparison, in increasing order. None excludes the method
        from comparisons unless it is requested. The default puts it after the built-in methods.
    finds_number_of_clusters : bool, default=False
        Whether "auto" is a value of the parameter `n_clusters`. Otherwise the number must be given.
    needs_shared_features : bool, default=False
        Whether every pair of samples needs a feature in which both are observed.
    loadings : {"rank", "one"} or None, default=None
        Loadings of features in the result: "rank" for one column per component, "one" for one
        column of weights, None for no loadings.

    See Also
    --------
    register : Add a method to the registry.
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
        """Names of the parameters of the estimator, a set of str."""
        return set(signature(self.load()).parameters)

    @property
    def loading_name(self) -> str:
        """Name of the loadings in plots and tables: "weight" or "loading"."""
        return "weight" if self.loadings == "one" else "loading"

    def n_loadings(self, rank: int | None) -> int:
        """Return the number of columns of loadings in a result of the given rank, or None."""
        return {"rank": rank or 0, "one": 1, None: 0}[self.loadings]

    def make_estimator(self, parameters: Mapping[str, Any]) -> Any:
        """Return the estimator, with those of the parameters that it has.

        Parameters
        ----------
        parameters : mapping of str to object
            Values by name. Names that the estimator does not have are ignored, so that one mapping
            serves all methods of a comparison.
        """
        accepted = self.parameters
        return self.load()(
            **{name: value for name, value in parameters.items() if name in accepted}
        )

    def make_for_comparison(self, parameters: Mapping[str, Any], *, n_features: int) -> Any:
        """Return the estimator for a comparison, or a function that makes it from fitted models.

        Parameters
        ----------
        parameters : mapping of str to object
            Values by name, as in :meth:`make`.
        n_features : int
            Number of features of the data.

        Returns
        -------
        estimator or callable
            A function if the method follows another one. It takes the fitted models by label.
        """
        if self.follows is not None:
            leader = METHODS[self.follows].label
            return lambda models: self.make_estimator(
                {**parameters, "n_features_to_select": models[leader].n_features_selected_}
            )
        if self.features == "all":
            parameters = {**parameters, "n_features_to_select": n_features}
        return self.make_estimator(parameters)


# Methods by key, in the order in which help and error messages list them.
METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method to the registry.

    Parameters
    ----------
    method : Method
        The method. Its key and its label must differ from those of all registered methods.

    Returns
    -------
    Method
        The same method.

    Raises
    ------
    ValueError
        If the key or the label is already registered.

    Examples
    --------
    >>> from mrshc.methods import METHODS
    >>> METHODS["hmv"].label
    'HC-HMV'
    """
    # Labels must be unique too: they are the names of the rows of a comparison.
    for other in METHODS.values():
        if method.key == other.key or method.label == other.label:
            raise ValueError(
                f"The method {method.key!r} ({method.label}) must have a unique key and a unique "
                f"label, but {other.key!r} ({other.label}) is already registered. Choose other "
                "names."
            )
    METHODS[method.key] = method
    return method


def compared_methods() -> list[Method]:
    """Return the methods of a comparison, in increasing order of `comparison_position`."""
    compared = [m for m in METHODS.values() if m.comparison_position is not None]
    # Stable: methods with equal positions remain in the order of registration.
    return sorted(compared, key=lambda m: m.comparison_position or 0)


def _estimator_loader(name: str) -> Callable[[], type]:
    """Return a function that imports an estimator class of this package and returns it."""
    return lambda: getattr(import_module("mrshc.estimators"), name)


# The order of registration is that of the help; `comparison_position` is the order of the columns
# in the tables of the paper.
register(
    Method(
        key="mrshc",
        label="MrSHC",
        name="Multi-rank sparse hierarchical clustering (MrSHC)",
        summary="",  # the default method: the help describes it at length
        load=_estimator_loader("MrSHC"),
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
        load=_estimator_loader("SHC"),
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
        # Classical clustering is the same estimator, with as many features as the data have.
        load=_estimator_loader("HighVarianceHC"),
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
        load=_estimator_loader("HighVarianceHC"),
        features="given",
        # In the paper it uses as many features as MrSHC selects, so that only the choice differs.
        follows="mrshc",
        comparison_position=4,
    )
)
