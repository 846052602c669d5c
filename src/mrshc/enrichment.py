"""Gene sets that are over-represented among the markers of clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mrshc.optional_packages import require_packages
from mrshc.shell.wording import Parameter, ParameterError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["gene_set_enrichment"]

# Smaller sets are over-represented as soon as they share two or three genes with the list, and
# larger sets are too general to describe a cluster. The limits are those of other programs for
# over-representation.
MIN_SET_SIZE, MAX_SET_SIZE = 10, 500
# Directions of markers: the mean inside the cluster is higher or lower than outside.
DIRECTIONS = ("up", "down")
# Columns of the table and their types, which are needed for a table without rows.
_TABLE_COLUMNS = {
    "cluster": np.int64,
    "direction": str,
    "gene_set": str,
    "description": str,
    "n_common": np.int64,
    "n_set": np.int64,
    "n_markers": np.int64,
    "n_tested": np.int64,
    "expected": np.float64,
    "p_value": np.float64,
    "q_value": np.float64,
    "genes": str,
}
# Separator of genes in a cell. It does not occur in symbols of genes.
GENE_SEPARATOR = "; "


def gene_set_enrichment(
    markers: pd.DataFrame,
    gene_sets: Mapping[str, Sequence[str]],
    *,
    universe: Sequence[Any],
    genes: Sequence[Any] | None = None,
    min_size: int = MIN_SET_SIZE,
    max_size: int = MAX_SET_SIZE,
) -> pd.DataFrame:
    """Return the gene sets that have genes in common with the markers of each cluster.

    For each cluster, the markers with a higher mean in the cluster (direction "up") and those with
    a lower mean ("down") are two lists. Each list is compared with each gene set by a
    hypergeometric test, which is the one-sided exact test of Fisher.

    Parameters
    ----------
    markers : DataFrame
        Table of markers: the return value of the method `markers` of an estimator, or the attribute
        `markers` of a result. Only the comparisons of a cluster with all other samples are used.
    gene_sets : mapping of str to sequence of str
        Genes of each set by the name of the set, such as the return value of
        :func:`mrshc.io.read_gene_sets`.
    universe : sequence of str
        Names of all features that were tested for markers, that is, of all features of the fit that
        are not constant. Genes outside the universe are removed from the gene sets.
    genes : sequence of length n_universe or None, default=None
        Gene of each feature in `universe`. Several features may have the same gene; a gene is a
        marker if one of its features is. Features without a gene (None, NaN or empty text) are left
        out. If None, the names of the features are the genes.
    min_size, max_size : int, default=10, 500
        Sets are tested if this many of their genes are in the universe.

    Returns
    -------
    DataFrame
        One row for each list and each tested set that have a gene in common, sorted by p-value
        within a list. The columns are:

        - `cluster` : label of the cluster, as in `markers`;
        - `direction` : "up" or "down";
        - `gene_set`, `description` : name and description of the set;
        - `n_common` : number of genes in the set and in the list;
        - `n_set` : number of genes of the set in the universe;
        - `n_markers` : number of genes of the list;
        - `n_tested` : number of genes of the universe;
        - `expected` : expected number of common genes of a random list;
        - `p_value` : probability that a random list of the same length has at least as many genes
          in common with the set;
        - `q_value` : p-value adjusted for the number of tested sets, separately for each cluster
          and direction;
        - `genes` : the common genes in alphabetical order, separated by semicolons.

    Notes
    -----
    With N genes in the universe, K of them in the set and n in the list, the p-value for k common
    genes is the sum of C(K, i) C(N - K, n - i) / C(N, n) over all i from k on. The q-values are
    those of Benjamini and Hochberg [1]_ over all tested sets, including sets without a gene in
    common, whose p-value is 1.

    The p-values describe which sets the markers of a cluster belong to. They are not evidence for
    the clusters, since the markers were found in the same data as the clusters. In addition, the
    test treats genes as if they were drawn independently of each other. Genes of one set are often
    correlated and become markers together, so the p-values are usually too small even for a
    correct division of the samples [2]_. Use them to rank sets.

    References
    ----------
    .. [1] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical
       and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1),
       289-300. https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    .. [2] Goeman, J. J. and Buhlmann, P. (2007). Analyzing gene expression data in terms of gene
       sets: methodological issues. Bioinformatics 23(8), 980-987.
       https://doi.org/10.1093/bioinformatics/btm051

    Examples
    --------
    >>> import pandas as pd
    >>> from mrshc import gene_set_enrichment
    >>> markers = pd.DataFrame({
    ...     "contrast": "cluster", "inside": "0", "feature": ["MYC", "E2F1", "CDKN1A"],
    ...     "mean_inside": [3.0, 2.0, 0.0], "mean_outside": [1.0, 1.0, 2.0],
    ... })
    >>> tested = ["MYC", "E2F1", "CDKN1A", "ACTB", "GAPDH", "TP53"]
    >>> sets = {"growth": ["MYC", "E2F1", "CCND1"], "arrest": ["CDKN1A", "TP53"]}
    >>> table = gene_set_enrichment(markers, sets, universe=tested, min_size=2)
    >>> table[["cluster", "direction", "gene_set", "n_common", "n_set", "p_value"]].round(3)
       cluster direction gene_set  n_common  n_set  p_value
    0        0        up   growth         2      2    0.067
    1        0      down   arrest         1      2    0.333
    """
    require_packages(["pandas"], purpose="A table of gene sets", extra="tables")
    # pandas is imported here because the import takes a long time, and fits do not need pandas.
    import pandas as pd

    tested = GenesOfFeatures.from_names(universe, genes)
    sets = sets_in_universe(gene_sets, tested.genes, min_size=min_size, max_size=max_size)
    descriptions = getattr(gene_sets, "descriptions", {})
    blocks = [
        _list_rows(found, sets, n_tested=len(tested.genes), descriptions=descriptions).assign(
            cluster=cluster, direction=direction
        )
        for (cluster, direction), found in _marker_lists(markers, tested).items()
    ]
    table = pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame(columns=[])
    if table.empty:
        return pd.DataFrame({name: pd.Series(dtype=t) for name, t in _TABLE_COLUMNS.items()})
    return table[list(_TABLE_COLUMNS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenesOfFeatures:
    """Genes of the features that were tested.

    Attributes
    ----------
    by_feature : dict of str to str or None
        Gene of each feature; None for features without a gene.
    """

    by_feature: dict[str, str | None]

    @classmethod
    def from_names(cls, features: Sequence[Any], genes: Sequence[Any] | None) -> GenesOfFeatures:
        """Return the genes of features, which are the names of the features if `genes` is None.

        Raise ParameterError if a feature is repeated, or if the lengths differ.
        """
        names = [str(name) for name in features]
        given = names if genes is None else [gene_name(gene) for gene in genes]
        if len(given) != len(names):
            raise ParameterError(
                "{genes} must have one entry for each of the {n:,} features of {universe}, got "
                "{value:,}.",
                genes=Parameter("genes"),
                universe=Parameter("universe"),
                n=len(names),
                value=len(given),
            )
        by_feature = dict(zip(names, given, strict=True))
        if len(by_feature) < len(names):
            repeated = next(name for name, count in Counter(names).items() if count > 1)
            raise ParameterError(
                "{universe} must name every feature once, but {value!r} is repeated. Pass unique "
                "names, and the genes as {genes}.",
                universe=Parameter("universe"),
                genes=Parameter("genes"),
                value=repeated,
            )
        return cls(by_feature=by_feature)

    @property
    def genes(self) -> set[str]:
        """The distinct genes."""
        return {gene for gene in self.by_feature.values() if gene is not None}


def gene_name(value: Any) -> str | None:
    """Return the name of a gene as text, or None if it is missing.

    Identifiers may be numbers, such as those of Entrez. If they are floats, because other values
    are missing, they are written without a decimal point.
    """
    import pandas as pd  # loaded already, since the genes are in a table

    if value is None or value is pd.NA or value != value:  # NaN is not equal to itself
        return None
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if is_whole else value).strip() or None


def sets_in_universe(
    gene_sets: Mapping[str, Sequence[str]], universe: set[str], *, min_size: int, max_size: int
) -> dict[str, frozenset[str]]:
    """Return the sets that are tested, restricted to the genes of the universe.

    The parameters are those of `gene_set_enrichment`, except that `universe` contains genes. Raise
    ParameterError if no gene of the sets is in the universe, or if no set has an allowed size.
    """
    # Imported here, since scikit-learn is slow to import and this module is needed before the fit.
    from mrshc.validation import check_integer

    advice = "The defaults are 10 and 500."
    min_size = check_integer("min_size", min_size, low=1, high=None, advice=advice)
    max_size = check_integer("max_size", max_size, low=min_size, high=None, advice=advice)
    restricted = {name: universe.intersection(members) for name, members in gene_sets.items()}
    sizes = [len(members) for members in restricted.values()]
    if not any(sizes):
        raise _no_common_gene_error(gene_sets, universe)
    tested = {
        name: frozenset(members)
        for name, members in restricted.items()
        if min_size <= len(members) <= max_size
    }
    if not tested:
        raise ParameterError(
            "No set of {gene_sets} has {low:,} to {high:,} genes among the tested genes: the "
            "smallest set has {smallest:,}, the largest {largest:,}. Change {min_size} or "
            "{max_size}.",
            gene_sets=Parameter("gene_sets"),
            low=min_size,
            high=max_size,
            smallest=min(sizes),
            largest=max(sizes),
            min_size=Parameter("min_size"),
            max_size=Parameter("max_size"),
        )
    return tested


def _no_common_gene_error(
    gene_sets: Mapping[str, Sequence[str]], universe: set[str]
) -> ParameterError:
    """Return the error for sets that have no gene in common with the universe."""
    in_sets = [gene for members in gene_sets.values() for gene in members]
    by_capitals = {gene.upper(): gene for gene in sorted(universe)}
    alike = next((gene for gene in in_sets if gene.upper() in by_capitals), None)
    advice = "Use the same kind of identifiers in both"
    one, other = in_sets[0] if in_sets else "", min(universe, default="")
    if alike is not None:
        one, other = alike, by_capitals[alike.upper()]
        advice = (
            "They differ in upper and lower case, which is not ignored, since it may distinguish "
            "species: use gene sets of the species of the data, or change the names"
        )
    return ParameterError(
        "{gene_sets} and the data have no gene in common: the sets have genes such as {one!r}, the "
        "data {other!r}. {advice}, or give the genes of the features by {genes}.",
        gene_sets=Parameter("gene_sets"),
        one=one,
        other=other,
        advice=advice,
        genes=Parameter("genes"),
    )


def _marker_lists(
    markers: pd.DataFrame, tested: GenesOfFeatures
) -> dict[tuple[int, str], frozenset[str]]:
    """Return the genes of the markers of each cluster and direction; empty lists are left out.

    Raise ParameterError if a column is missing, or if a marker was not among the tested features.
    """
    needed = ("contrast", "inside", "mean_inside", "mean_outside", "feature")
    if missing := [title for title in needed if title not in markers]:
        raise ParameterError(
            "{markers} must have the column {value!r}, as the table of markers of an estimator.",
            markers=Parameter("markers"),
            value=missing[0],
        )
    of_clusters = markers[markers["contrast"] == "cluster"]
    if unknown := [n for n in map(str, of_clusters["feature"]) if n not in tested.by_feature]:
        raise ParameterError(
            "{universe} must have all features that were tested, but the marker {value!r} is not "
            "in it. Pass the names of all features of the fit.",
            universe=Parameter("universe"),
            value=unknown[0],
        )
    difference = (of_clusters["mean_inside"] - of_clusters["mean_outside"]).to_numpy(dtype=float)
    lists: dict[tuple[int, str], set[str]] = {}
    for feature, inside, sign in zip(
        of_clusters["feature"], of_clusters["inside"], np.sign(difference), strict=True
    ):
        gene = tested.by_feature[str(feature)]
        # A marker may have equal means in both groups; then it has no direction.
        if gene is not None and sign in (1, -1):
            direction = DIRECTIONS[0] if sign > 0 else DIRECTIONS[1]
            lists.setdefault((int(inside), direction), set()).add(gene)
    # Clusters are sorted by number, and "up" comes first.
    order = sorted(lists, key=lambda key: (key[0], DIRECTIONS.index(key[1])))
    return {key: frozenset(lists[key]) for key in order}


def _list_rows(
    found: frozenset[str],
    sets: Mapping[str, frozenset[str]],
    *,
    n_tested: int,
    descriptions: Mapping[str, str],
) -> pd.DataFrame:
    """Return the rows of one list of markers, sorted by p-value.

    `found` contains the genes of the list, and `sets` the tested sets.
    """
    import pandas as pd

    common = [members & found for members in sets.values()]
    n_common, n_set = (np.array([len(s) for s in part]) for part in (common, sets.values()))
    # These imports take half a second, and the command line needs the constants of this module
    # before it reads the table.
    from scipy.stats import false_discovery_control, hypergeom

    p_values = hypergeom.sf(n_common - 1, n_tested, n_set, len(found))
    rows = pd.DataFrame(
        {
            "gene_set": list(sets),
            "description": [descriptions.get(name, "") for name in sets],
            "n_common": n_common,
            "n_set": n_set,
            "n_markers": len(found),
            "n_tested": n_tested,
            "expected": n_set * len(found) / n_tested,
            "p_value": p_values,
            "q_value": false_discovery_control(p_values),
            "genes": [GENE_SEPARATOR.join(sorted(members)) for members in common],
        }
    )
    # A stable sort keeps sets with equal p-values in the order in which they were given.
    return rows[rows["n_common"] > 0].sort_values("p_value", kind="stable")
