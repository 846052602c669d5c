"""Registry of clustering methods.

The registry defines the names and properties of the methods. It is used by the command line, by
comparisons and studies, and for saved results, plot titles and the report. The class of an
estimator is imported only when its method is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any, Literal

from mrshc.shell.wording import Parameter, ParameterError, invalid_parameter_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A clustering method and its properties.

    Parameters
    ----------
    key : str
        Name on the command line and in saved results, such as "mrshc".
    label : str
        Name in comparisons and plot titles, such as "MrSHC".
    name : str
        Full name, which the report uses.
    summary : str
        Short description for the command-line help; may be empty.
    load : callable
        Function without arguments that returns the class of the estimator. The function is called
        only when the method is used, so that the registry can be imported quickly.
    features : {"chosen", "all", "given", "weighted"}, default="chosen"
        How the number of features is determined: the method chooses the number ("chosen"), the
        method uses all features ("all"), the user must pass `n_features_to_select` ("given"), or
        the method determines weights of all features ("weighted").
    follows : str or None, default=None
        Key of another method. In a comparison, this method uses as many features as the other
        method selects.
    fixed : mapping of str to object, default={}
        Parameters with fixed values. In a comparison, they override the parameters that all methods
        share. A method with fixed parameters is a variant of another method. It is used only in
        comparisons: on the command line, the same values are given as options of the other method.
    compared_with : mapping of str to object, default={}
        Parameters that override, in a comparison, those that all methods share.
    comparison_position : int or None, default=100
        Number by which the methods of a comparison are sorted, in increasing order. With the
        default, a method comes after the built-in methods. If `comparison_position` is None, the
        method is not part of the default comparison.
    finds_number_of_clusters : bool, default=False
        Whether the parameter `n_clusters` may be "auto". If False, the user must pass a number.
    needs_shared_features : bool, default=False
        Whether the method requires, for every pair of samples, at least one feature that is missing
        in neither of the two samples.
    loadings : {"rank", "one"} or None, default=None
        Loadings of the features in the result: "rank" for one column per component, "one" for one
        column of feature weights, None for no loadings.
    has_tree : bool, default=True
        Whether the method builds a tree. A method without a tree needs the number of clusters, and
        is used only in comparisons, since a result consists of a tree.
    """

    key: str
    label: str
    name: str
    summary: str
    load: Callable[[], type]
    features: Literal["chosen", "all", "given", "weighted"] = "chosen"
    follows: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict, hash=False)
    compared_with: Mapping[str, Any] = field(default_factory=dict, hash=False)
    comparison_position: int | None = 100
    finds_number_of_clusters: bool = False
    needs_shared_features: bool = False
    loadings: Literal["rank", "one"] | None = None
    has_tree: bool = True

    @property
    def is_only_compared(self) -> bool:
        """Whether the method is used in comparisons only, and not for a result of its own."""
        return bool(self.fixed) or not self.has_tree

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters of the estimator."""
        return set(signature(self.load()).parameters)

    @property
    def loading_name(self) -> str:
        """Term for a loading in the report: "weight" if `loadings` is "one", else "loading"."""
        return "weight" if self.loadings == "one" else "loading"

    @property
    def distance_features(self) -> str:
        """Term for the features from which the distances of the samples are computed."""
        return "the weighted features" if self.features == "weighted" else "the selected features"

    @property
    def silhouette_caveat(self) -> str:
        """Sentence that states why silhouette widths are not evidence for the clusters."""
        reasons = {
            "chosen": "The features were selected to separate the clusters",
            "weighted": "The features were weighted to separate the clusters",
        }
        reason = reasons.get(self.features, "The clusters were found in the same features")
        return f"{reason}, so this says nothing about whether the clusters exist."

    def n_loadings(self, rank: int | None) -> int:
        """Return the number of columns of loadings in a result with the given rank.

        `rank` is the number of components, or None if the method has no components.
        """
        return {"rank": rank or 0, "one": 1, None: 0}[self.loadings]

    def make_estimator(self, parameters: Mapping[str, Any]) -> Any:
        """Return an unfitted estimator of this method with the given parameters."""
        accepted = self.parameters
        return self.load()(
            **{name: value for name, value in parameters.items() if name in accepted}
        )

    def make_for_comparison(
        self, parameters: Mapping[str, Any], *, n_features: int, n_clusters: int | None = None
    ) -> Any:
        """Return the unfitted estimator for a comparison, or a function that returns it."""
        parameters = {**parameters, **self.fixed, **self.compared_with}
        if not self.has_tree:
            parameters = {**parameters, "n_clusters": n_clusters}
            # Several candidates are for methods with a tree, which choose among them.
            if not isinstance(parameters.get("n_features_to_select"), int):
                parameters["n_features_to_select"] = None
        if self.fixed.get("n_features_to_select") is not None:
            n_fixed = min(self.fixed["n_features_to_select"], n_features)
            parameters = {**parameters, "n_features_to_select": n_fixed}
        if self.follows is not None:
            leader = METHODS[self.follows].label
            return lambda models: self.make_estimator(
                {**parameters, "n_features_to_select": models[leader].n_features_selected_}
            )
        if self.features == "all":
            parameters = {**parameters, "n_features_to_select": n_features}
        return self.make_estimator(parameters)


# The registered methods by key, in the order in which help texts and error messages list them.
METHODS: dict[str, Method] = {}
# Methods that are used only in comparisons, by key: those with fixed parameters or without a tree.
VARIANTS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method to the registry, and return the method.

    A method with fixed parameters or without a tree is added to `VARIANTS`, and any other method to
    `METHODS`.
    """
    # Labels must be unique, because they name the rows of a comparison.
    for other in (*METHODS.values(), *VARIANTS.values()):
        if method.key == other.key or method.label == other.label:
            raise ValueError(
                f"The method {method.key!r} ({method.label}) must have a unique key and a unique "
                f"label, but {other.key!r} ({other.label}) is already registered. Choose other "
                "names."
            )
    (VARIANTS if method.is_only_compared else METHODS)[method.key] = method
    return method


def compared_methods(keys: Sequence[str] | None = None) -> list[Method]:
    """Return the methods of a comparison."""
    registered = METHODS | VARIANTS
    if keys is not None:
        _check_keys(keys, registered)
        return [registered[key] for key in keys]
    compared = [m for m in registered.values() if m.comparison_position is not None]
    # The sort is stable, so methods with equal positions remain in the order of registration.
    return sorted(compared, key=lambda m: m.comparison_position or 0)


def describe_method(key: str, parameters: Mapping[str, Any]) -> Method:
    """Return the registered method that describes a fit best.

    This is a variant of the method whose fixed parameters are those of the fit and concern the
    penalty of the feature weights, such as SHC-SSL, or the method itself. Other variants differ
    only in defaults, and have no name of their own in a result.
    """
    method = METHODS[key]
    for variant in VARIANTS.values():
        is_same_penalty = variant.fixed.get("penalty") == parameters.get("penalty")
        if "penalty" in variant.fixed and is_same_penalty and variant.load() is method.load():
            return variant
    return method


def _check_keys(keys: Any, registered: Mapping[str, Method]) -> None:
    """Raise ParameterError if `keys` are not valid; see :func:`compared_methods`."""
    is_sequence = isinstance(keys, Sequence) and not isinstance(keys, str)
    if not is_sequence or not keys or len(set(keys)) < len(keys) or set(keys) - set(registered):
        raise invalid_parameter_error(
            "methods", keys, allowed=f"name different methods out of {', '.join(registered)}"
        )
    for position, key in enumerate(keys):
        leader = registered[key].follows
        if leader is not None and leader not in keys[:position]:
            raise ParameterError(
                "The method {key} selects as many features as {leader}, so {methods} must name "
                "{leader} before it, got {got}. Name {leader} first.",
                key=key,
                leader=leader,
                methods=Parameter("methods"),
                got=", ".join(keys),
            )


def _estimator_loader(name: str) -> Callable[[], type]:
    """Return a function that imports and returns the estimator class with the given name."""
    return lambda: getattr(import_module("mrshc.estimators"), name)


# Help texts list the methods in the order of registration. The positions in a comparison begin with
# the methods that are recommended for real data.
_ASSOCIATION, _HMV_500, _MRSHC, _SHC, _HC, _HMV = range(1, 7)

register(
    Method(
        key="association",
        label="AssociationHC",
        name="Hierarchical clustering on features associated with the clusters",
        summary="",  # the command-line help describes the default method in detail
        load=_estimator_loader("AssociationHC"),
        # Ward's linkage needs squared Euclidean distances.
        compared_with={"linkage": "ward", "metric": "sqeuclidean", "n_clusters": "auto"},
        comparison_position=_ASSOCIATION,
        finds_number_of_clusters=True,
        loadings="rank",
    )
)
register(
    Method(
        key="mrshc",
        label="MrSHC",
        name="Multi-rank sparse hierarchical clustering (MrSHC)",
        summary="the procedure of Zhang and Zamar (2014)",
        load=_estimator_loader("MrSHC"),
        comparison_position=_MRSHC,
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
        comparison_position=_SHC,
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
        # With all features selected, HighVarianceHC is classical hierarchical clustering.
        load=_estimator_loader("HighVarianceHC"),
        features="all",
        comparison_position=_HC,
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
        # As in the paper, HC-HMV uses as many features as MrSHC selects, so that the two methods
        # differ in the choice of the features, not in their number.
        follows="mrshc",
        comparison_position=_HMV,
    )
)
register(
    Method(
        key="cosa",
        label="COSA",
        name="Clustering objects on subsets of attributes of Friedman and Meulman (COSA)",
        summary="weights of the features for each sample, of Friedman and Meulman",
        load=_estimator_loader("COSA"),
        features="weighted",
        # The methods of the default comparison share the linkage, which can be Ward's. Ward's
        # linkage is not defined for the distances of COSA.
        comparison_position=None,
        needs_shared_features=True,
        loadings="one",
    )
)
register(
    Method(
        key="hmv-500-ward",
        label="HMV 500, Ward",
        name="Ward's hierarchical clustering on the 500 features of highest variance",
        summary="variance filter: the 500 features of highest variance, Ward's linkage",
        load=_estimator_loader("HighVarianceHC"),
        features="given",
        # A common default for gene expression. The metric is fixed too, because Ward's linkage is
        # defined for squared Euclidean distances only.
        fixed={"n_features_to_select": 500, "linkage": "ward", "metric": "sqeuclidean"},
        comparison_position=_HMV_500,
    )
)
register(
    Method(
        key="shc-ssl",
        label="SHC-SSL",
        name="Sparse hierarchical clustering with the spike-and-slab lasso (SHC-SSL)",
        summary="SHC with the penalty of the spike-and-slab lasso",
        load=_estimator_loader("SHC"),
        # The penalty determines the number of features.
        fixed={"penalty": "ssl", "n_features_to_select": None},
        comparison_position=None,
        needs_shared_features=True,
        loadings="one",
    )
)
register(
    Method(
        key="sparse-kmeans",
        label="Sparse K-means",
        name="Sparse K-means clustering of Witten and Tibshirani",
        summary="K-means with weighted features, of Witten and Tibshirani",
        load=_estimator_loader("SparseKMeans"),
        comparison_position=None,
        loadings="one",
        has_tree=False,
    )
)
