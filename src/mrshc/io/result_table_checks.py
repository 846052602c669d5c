"""Reading of the tables of a result, and checks that tables and result.json are consistent."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.trees import check_linkage
from mrshc.enrichment import DIRECTIONS
from mrshc.exports import format_gct_cell
from mrshc.io.formats.gct import read_gct
from mrshc.io.saved_file_reading import (
    BOOLEAN_TYPE,
    OPTIONAL_BOOLEAN_TYPE,
    TEXT_TYPE,
    ColumnType,
    choice_type,
    float_type,
    integer_type,
    read_complete_text,
    read_csv_columns,
)
from mrshc.io.streams import FlawError
from mrshc.methods import METHODS
from mrshc.shell.text_cleaning import unguard_formula
from mrshc.shell.url_templates import find_template_flaw

About = dict[str, Any]  # the content of result.json
Columns = dict[str, NDArray[Any]]  # columns of a table by title, each of shape (n_rows,)

BRANCHES_FILE, CONSENSUS_FILE = "branches.csv", "consensus.csv.gz"
GENE_SETS_FILE = "gene_sets.csv"
LINKAGE_COLUMNS = ("left", "right", "height", "size")
# A list of cluster numbers, such as "1, 3". Numbers of up to 18 digits fit into 64 bits.
_CLUSTER_LIST = re.compile(r"[1-9][0-9]{0,17}(, [1-9][0-9]{0,17})*")
# Largest absolute value that estimators accept, since squares of larger values could overflow.
_MAX_VALUE = 1e150
# Types of annotation columns, by the kind of annotation in result.json. Numeric annotations may be
# infinite.
_ANNOTATION_TYPES = {
    "text": TEXT_TYPE,
    "whole": integer_type(allow_empty=True),
    "number": float_type(-np.inf, np.inf, allow_empty=True),
}
# Columns that plots and the report need in the table of candidates if a search varies the number of
# features and the rank (see `mrshc.plotting.search_story`).
_RANK_SEARCH_COLUMNS = {
    *("n_features_target", "n_features", "n_leaves", "silhouette", "reached"),
}
# Further columns of the two methods that search over ranks: of AssociationHC and of MrSHC.
_ASSOCIATION_COLUMNS = {"n_associated", "strength"}
_SILHOUETTE_COLUMNS = {"screened_out", "best_rank", "removed"}
# Columns that plots and the report need for other methods. The keys are columns that identify the
# method.
_OTHER_SEARCH_COLUMNS = {
    "n_clusters": {"silhouette"},
    "l1_bound": {"n_features"},
    "spike_penalty": {"n_features"},
}
# Pairs of columns; a table must have both columns of a pair or neither of them.
_PAIRED_COLUMNS = ({"gap", "gap_sd"}, {"n_features_target", "reached"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultTables:
    """The tables of a result, which are described in the docstring of `mrshc.io.Result`."""

    samples: pd.DataFrame
    features: pd.DataFrame
    selected: pd.DataFrame
    silhouettes: pd.DataFrame
    markers: pd.DataFrame
    linkage_matrix: NDArray[np.float64]
    centers: pd.DataFrame
    branches: pd.DataFrame | None
    consensus: NDArray[np.float64] | None
    gene_sets: pd.DataFrame | None


def has_branches(about: About) -> bool:
    """Return whether a result has a table of branches, given the content of its result.json."""
    return "significance" in about or "stability" in about


def has_consensus(about: About) -> bool:
    """Return whether a result has a consensus matrix, given the content of its result.json."""
    return "stability" in about


def has_gene_sets(about: About) -> bool:
    """Return whether a result has a table of gene sets, given the content of its result.json."""
    return "genes" in about and about["genes"]["sets"] is not None


def check_condition(condition: Any, flaw: str) -> None:
    """Raise FlawError if a condition is not met."""
    if not condition:
        raise FlawError(flaw)


@contextmanager
def prefix_file_name(name: str) -> Iterator[None]:
    """Prepend the name of a file to the message of any FlawError raised in the context."""
    try:
        yield
    except FlawError as flaw:
        raise FlawError(f"{name} {flaw}") from None


def check_about(about: About) -> None:
    """Raise FlawError if entries of result.json contradict each other.

    The content must already have been checked against its schema.
    """
    n, k, p = about["data"]["n_samples"], about["chosen"]["n_clusters"], about["n_rows"]["features"]
    sizes = about["cluster_sizes"]
    check_condition(
        len(sizes) == k and sum(sizes) == n, "has clusters of other sizes than it counts"
    )
    check_condition(about["chosen"]["n_features"] <= p, "selects more features than there are")
    check_condition(about["method"] in METHODS, f"has a method other than {' or '.join(METHODS)}")
    method = METHODS[about["method"]]
    is_ranked = method.loadings == "rank"
    rank = about["chosen"]["rank"]
    check_condition((rank is not None) == is_ranked, "has a rank that does not fit")
    # The rank is the expected number of columns of loadings. Without a limit, a damaged rank could
    # require unlimited time and memory.
    check_condition(rank is None or rank <= min(n, p), "has a rank that no matrix of its size has")
    is_cut = not method.finds_number_of_clusters
    check_condition(
        not is_cut or "n_clusters" in about["parameters"], "lacks 'parameters.n_clusters'"
    )
    is_refined = about["n_associated"] is not None
    check_condition(is_refined or not about["supported"], "lacks 'n_associated'")
    _check_splits(about["splits"], n)
    _check_confidence(about, n=n, k=k)
    if "genes" in about:
        _check_genes(about)
    if (scores := about["scores"]) is not None:
        names = {entry["name"] for entry in about["annotations"]["samples"]}
        check_condition(scores["truth"] in names, "lacks the annotation that holds the classes")
        check_condition(scores["n_samples"] <= n, "knows the class of more samples than there are")
    check_candidates(about["search"])
    learnt = [(entry["step"], entry["name"]) for entry in about["prediction"]["learnt"]]
    check_condition(
        len(set(learnt)) == len(learnt)
        and all(step <= len(about["preprocessing"]) for step, _ in learnt),
        "has learnt values of steps that it does not have",
    )


def _check_splits(splits: Sequence[dict[str, Any]], n: int) -> None:
    """Raise FlawError if the split tests are not possible for a tree of `n` samples."""
    nodes = [split["node"] for split in splits]
    check_condition(len(set(nodes)) == len(nodes), "tests a node of the tree twice")
    # scipy numbers the samples from 0 to n - 1 and the merges from n to 2n - 2.
    check_condition(all(n <= node <= 2 * n - 2 for node in nodes), "tests a node that no tree has")
    check_condition(
        all(split["n_samples"] <= n for split in splits), "tests more samples than there are"
    )


def _check_confidence(about: About, *, n: int, k: int) -> None:
    """Raise FlawError if entries on significance or stability do not fit n samples, k clusters."""
    if "stability" in about:
        jaccard = about["stability"]["cluster_jaccard"]
        check_condition(len(jaccard) == k, "has Jaccard indices of other clusters than it counts")
    if "significance" in about:
        check_condition(
            about["significance"]["n_clusters"] <= n, "has more significant clusters than samples"
        )


def _check_genes(about: About) -> None:
    """Raise FlawError if the settings that concern genes cannot be used."""
    column, url = about["genes"]["column"], about["genes"]["url"]
    names = {entry["name"] for entry in about["annotations"]["features"]}
    check_condition(column is None or column in names, "lacks the annotation that holds the genes")
    # The report contains links that are made from this text, and a result may come from others.
    flaw = None if url is None else find_template_flaw(url)
    check_condition(flaw is None, f"has a template of an address, but {flaw}")
    if has_gene_sets(about):
        sizes = about["genes"]["sets"]
        check_condition(sizes["min_size"] <= sizes["max_size"], "has limits of gene sets reversed")


def check_candidates(rows: Sequence[dict[str, Any]]) -> None:
    """Raise FlawError if a table of candidates is not valid input for plots and the report.

    An empty table is valid.
    """
    if not rows:
        return
    titles = rows[0].keys()
    check_condition(all(row.keys() == titles for row in rows), "has candidates of different kinds")
    if "rank" in titles:
        has_scores = titles >= _ASSOCIATION_COLUMNS
        check_condition(
            titles >= _RANK_SEARCH_COLUMNS and (has_scores or titles >= _SILHOUETTE_COLUMNS),
            "has incomplete candidates",
        )
        scores = [row[title] for row in rows for title in _ASSOCIATION_COLUMNS if has_scores]
        # Plots and messages use the scores in computations, but the schema allows null in any
        # column.
        check_condition(
            all(type(score) in (int, float) for score in scores), "has a score that is not a number"
        )
    else:
        kind = next((kind for kind in _OTHER_SEARCH_COLUMNS if kind in titles), None)
        check_condition(
            kind is not None and titles >= _OTHER_SEARCH_COLUMNS[kind], "has incomplete candidates"
        )
    check_condition(
        all(len(titles & pair) != 1 for pair in _PAIRED_COLUMNS), "has incomplete candidates"
    )
    check_condition(sum(row["chosen"] for row in rows) == 1, "does not choose a single candidate")


def read_tables(folder: Path, about: About, *, most_cuts: int) -> ResultTables:
    """Return the tables of a result; raise FlawError if one is damaged or contradicts another."""
    n = about["data"]["n_samples"]
    with prefix_file_name("linkage.csv"):
        linkage_matrix = _read_linkage(folder / "linkage.csv", n)
    with prefix_file_name("clusters.csv"):
        samples = _read_samples(folder / "clusters.csv", about)
    with prefix_file_name("silhouettes.csv"):
        cuts = {f"cut_{k}": float_type(-1, 1) for k in range(2, min(most_cuts, n) + 1)}
        types = {"sample": _NAME_TYPE, **cuts}
        silhouettes = read_csv_columns(folder / "silhouettes.csv", types, n_rows=n)
        are_equal = np.array_equal(silhouettes["sample"], samples["sample"])
        check_condition(are_equal, "names other samples than clusters.csv")
    with prefix_file_name("features.csv"):
        features = _read_features(folder / "features.csv", about)
    selected = _names_of_selected_features(features)
    with prefix_file_name("selected.gct"):
        values = _read_selected_values(
            folder / "selected.gct", samples=samples["sample"], features=selected
        )
    with prefix_file_name("markers.csv"):
        markers = _read_markers(folder / "markers.csv", features, about)
    with prefix_file_name("centers.csv"):
        centers = _read_centers(folder / "centers.csv", features, about)
    branches = consensus = gene_sets = None
    if has_gene_sets(about):
        with prefix_file_name(GENE_SETS_FILE):
            gene_sets = _read_gene_sets(folder / GENE_SETS_FILE, about)
    if has_branches(about):
        with prefix_file_name(BRANCHES_FILE):
            branches = _read_branches(folder / BRANCHES_FILE, linkage_matrix, about)
    if has_consensus(about):
        with prefix_file_name(CONSENSUS_FILE):
            consensus = _read_consensus(folder / CONSENSUS_FILE, samples["sample"])
    frame = _frame_indexed_by(samples, "sample")
    columns = pd.Index(selected, name="feature", dtype=object)
    return ResultTables(
        samples=frame,
        features=_frame_indexed_by(features, "feature"),
        selected=pd.DataFrame(values, index=frame.index, columns=columns),
        silhouettes=_frame_indexed_by(silhouettes, "sample"),
        markers=pd.DataFrame(markers),
        linkage_matrix=linkage_matrix,
        centers=_frame_indexed_by(centers, "feature"),
        branches=branches,
        consensus=consensus,
        gene_sets=gene_sets,
    )


def _frame_indexed_by(columns: Columns, key: str) -> pd.DataFrame:
    """Return columns as a data frame whose index is the column `key`."""
    index = pd.Index(columns[key], name=key, dtype=object)
    return pd.DataFrame({title: c for title, c in columns.items() if title != key}, index=index)


def _read_linkage(path: Path, n: int) -> NDArray[np.float64]:
    """Return the linkage matrix of a tree of `n` samples, an array of shape (n - 1, 4).

    Raise FlawError if the file does not contain a valid tree.
    """
    column_types = (integer_type(), integer_type(), float_type(), integer_type())
    types = dict(zip(LINKAGE_COLUMNS, column_types, strict=True))
    columns = read_csv_columns(path, types, n_rows=n - 1)
    try:
        return check_linkage(np.column_stack(list(columns.values())), n_samples=n)
    except ValueError as error:
        raise FlawError(f"holds no tree: {str(error).rstrip('.')}") from None


_NAME_TYPE = ColumnType(dtype=object, parse=str, wanted="a name")


def _are_unique(values: NDArray[Any]) -> bool:
    return len(set(values.tolist())) == len(values)


def _merge_types(*parts: dict[str, ColumnType]) -> dict[str, ColumnType]:
    """Return the types of all columns by title; raise FlawError if a title is repeated."""
    types = {title: column_type for part in parts for title, column_type in part.items()}
    check_condition(len(types) == sum(map(len, parts)), "has two columns of the same name")
    return types


def _types_of_annotations(entries: Sequence[dict[str, str]]) -> dict[str, ColumnType]:
    """Return the types of annotation columns by title, given the annotations in result.json.

    Raise FlawError if a title is repeated.
    """
    check_condition(
        len({entry["name"] for entry in entries}) == len(entries), "has an annotation twice"
    )
    return {entry["name"]: _ANNOTATION_TYPES[entry["kind"]] for entry in entries}


def _convert_whole_numbers(columns: Columns, entries: Sequence[dict[str, str]]) -> None:
    """Convert annotations of whole numbers to integers, in place, with NA for missing values.

    `entries` are the annotations in result.json.
    """
    for name in (entry["name"] for entry in entries if entry["kind"] == "whole"):
        values = columns[name].tolist()
        columns[name] = (
            pd.array(values, dtype="Int64") if None in values else np.array(values, dtype=np.int64)
        )


def _read_samples(path: Path, about: About) -> Columns:
    """Return the columns of clusters.csv; raise FlawError if the file contradicts result.json."""
    n, k = about["data"]["n_samples"], about["chosen"]["n_clusters"]
    own = {"cluster": integer_type(1, k), "leaf": integer_type(1, n)}
    own |= {"silhouette": float_type(-1, 1)}
    if about["parameters"].get("robust"):
        own["outlying"] = BOOLEAN_TYPE
    if "stability" in about:
        own["jaccard"] = float_type(0, 1, allow_empty=True)
    if "significance" in about:
        n_significant = about["significance"]["n_clusters"]
        own["significant_cluster"] = integer_type(1, n_significant, allow_empty=True)
    annotations = _types_of_annotations(about["annotations"]["samples"])
    types = _merge_types({"sample": _NAME_TYPE}, own, annotations)
    samples = read_csv_columns(path, types, n_rows=n)
    _convert_whole_numbers(samples, about["annotations"]["samples"])
    check_condition(_are_unique(samples["sample"]), "names a sample twice")
    check_condition(_are_unique(samples["leaf"]), "puts two samples at the same leaf of the tree")
    # Clusters are counted from 1, so the first count that `bincount` returns (for cluster 0) is
    # left out.
    sizes = np.bincount(samples["cluster"], minlength=k + 1)[1:]
    check_condition(
        sizes.tolist() == about["cluster_sizes"], "has clusters of other sizes than result.json"
    )
    outliers = samples["sample"][samples["outlying"]].tolist() if "outlying" in own else []
    check_condition(outliers == about["outliers"], "has other outlying samples than result.json")
    _check_sample_confidence(samples, about)
    return samples


def _check_sample_confidence(samples: Columns, about: About) -> None:
    """Raise FlawError if columns on stability or significance contradict result.json.

    The column "significant_cluster" is converted to integers with missing values.
    """
    if "jaccard" in samples:
        expected = np.array(about["stability"]["cluster_jaccard"], dtype=float)
        check_condition(
            np.array_equal(samples["jaccard"], expected[samples["cluster"] - 1], equal_nan=True),
            "has other Jaccard indices than result.json",
        )
    if "significant_cluster" in samples:
        clusters = samples["significant_cluster"]
        check_condition(
            len({*clusters.tolist()} - {None}) == about["significance"]["n_clusters"],
            "has fewer significant clusters than result.json",
        )
        samples["significant_cluster"] = pd.array(clusters, dtype="Int64")


def _read_features(path: Path, about: About) -> Columns:
    """Return the columns of features.csv; raise FlawError if the file contradicts result.json."""
    p, q = about["n_rows"]["features"], about["chosen"]["n_features"]
    n_loadings = METHODS[about["method"]].n_loadings(about["chosen"]["rank"])
    # Effect sizes, q-values and means may be empty, for example if a feature is constant or is
    # missing in all samples of a cluster.
    own = {"position": integer_type(1, p), "selected": BOOLEAN_TYPE}
    own |= {"effect_size": float_type(0, 1, allow_empty=True)}
    if about["n_associated"] is not None:
        own |= {"q_value": float_type(0, 1, allow_empty=True), "associated": BOOLEAN_TYPE}
    if "stability" in about:
        own["selection_frequency"] = float_type(0, 1)
    own |= {f"loading_{i}": float_type() for i in range(1, n_loadings + 1)}
    n_clusters = about["chosen"]["n_clusters"]
    own |= {f"mean_cluster_{i}": float_type(allow_empty=True) for i in range(1, n_clusters + 1)}
    if n_clusters > 1:
        # A score is infinite if the feature does not vary within the two groups.
        score = float_type(-np.inf, np.inf, allow_empty=True)
        own |= {f"score_cluster_{i}": score for i in range(1, n_clusters + 1)}
    annotations = _types_of_annotations(about["annotations"]["features"])
    types = _merge_types({"feature": _NAME_TYPE}, annotations, own)
    features = read_csv_columns(path, types, n_rows=p)
    _convert_whole_numbers(features, about["annotations"]["features"])
    check_condition(_are_unique(features["feature"]), "names a feature twice")
    check_condition(_are_unique(features["position"]), "puts two features at the same position")
    selected = features["selected"]
    check_condition(
        selected.sum() == q and selected[:q].all(), "does not begin with the selected features"
    )
    n_associated = int(features["associated"].sum()) if "associated" in own else None
    check_condition(n_associated == about["n_associated"], "has more or fewer associated features")
    return features


def _names_of_selected_features(features: Columns) -> NDArray[Any]:
    """Return the names of the selected features, in the order of the columns of the data."""
    selected = features["selected"]
    names: NDArray[Any] = features["feature"][selected]
    return names[np.argsort(features["position"][selected])]


def _read_selected_values(
    path: Path, *, samples: NDArray[Any], features: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the values of the selected features, an array of shape (n_samples, n_features).

    Raise FlawError if the file does not contain exactly these samples and features, or if a value
    is too large.
    """
    text = read_complete_text(path)
    check_condition(text.startswith("#1.3\n"), "is not a GCT file")
    table = read_gct(io.StringIO(text, newline=""))
    values = np.asarray(table.values, dtype=np.float64).T
    check_condition(table.column_names == _names_as_read_from_gct(samples), "names other samples")
    check_condition(table.row_names == _names_as_read_from_gct(features), "names other features")
    # Missing values are allowed: they are NaN, for which this comparison is False.
    check_condition(not (np.abs(values) > _MAX_VALUE).any(), "holds values that no fit takes")
    return values


def _names_as_read_from_gct(names: NDArray[Any]) -> list[str]:
    """Return names as they are read from a GCT file, in which some characters are replaced."""
    return [unguard_formula(format_gct_cell(name)) for name in names]


def _read_branches(path: Path, linkage_matrix: NDArray[np.float64], about: About) -> pd.DataFrame:
    """Return the table of branches; raise FlawError if the file contradicts other files."""
    n = len(linkage_matrix) + 1
    types = {"node": integer_type(), "n_samples": integer_type(), "height": float_type()}
    if "stability" in about:
        types["support"] = float_type(0, 1, allow_empty=True)
    if "significance" in about:
        share, count = float_type(0, 1, allow_empty=True), integer_type(0, allow_empty=True)
        types |= {
            # The statistic is infinite if the branches have no variance, and empty if a node has no
            # split that can be tested.
            "statistic": float_type(-np.inf, np.inf, allow_empty=True),
            "p_value": share,
            "threshold": share,
            "significant": OPTIONAL_BOOLEAN_TYPE,
            "agreement": float_type(-1, 1, allow_empty=True),
            "n_simulations": count,
        }
    columns = read_csv_columns(path, types, n_rows=n - 1)
    # The nodes are listed from the root downwards, in the reverse order of the merges.
    merges = linkage_matrix[::-1]
    check_condition(
        np.array_equal(columns["node"], np.arange(2 * n - 2, n - 1, -1))
        and np.array_equal(columns["n_samples"], merges[:, 3])
        and np.array_equal(columns["height"], merges[:, 2]),
        "has other nodes than linkage.csv",
    )
    if "significance" in about:
        _check_node_tests(columns)
    converted: dict[str, Any] = dict(columns)
    for title, dtype in (("significant", "boolean"), ("n_simulations", "Int64")):
        if title in converted:
            converted[title] = pd.array(converted[title], dtype=dtype)
    return pd.DataFrame(converted)


def _check_node_tests(branches: Columns) -> None:
    """Raise FlawError if tests of nodes are incomplete, or contradict their p-values."""
    is_tested = ~np.isnan(branches["p_value"])
    is_significant = branches["p_value"] <= branches["threshold"]  # False for NaN
    expected = [bool(s) if t else None for s, t in zip(is_significant, is_tested, strict=True)]
    is_counted = np.array([count is not None for count in branches["n_simulations"]])
    check_condition(
        np.array_equal(~np.isnan(branches["threshold"]), is_tested)
        and np.array_equal(is_counted, is_tested),
        "has a test that is not complete",
    )
    check_condition(
        branches["significant"].tolist() == expected, "has a test that contradicts its p-value"
    )
    is_empty = np.isnan(branches["statistic"]) & np.isnan(branches["agreement"])
    check_condition(is_empty[~is_tested].all(), "has the statistic of a node without a test")


def _read_consensus(path: Path, samples: NDArray[Any]) -> NDArray[np.float64]:
    """Return the consensus matrix, an array of shape (n_samples, n_samples).

    Raise FlawError if the file is damaged, or is not the matrix of these samples.
    """
    check_condition(path.is_file(), "is not a file")  # reading from a pipe might never end
    n, cell_type = len(samples), float_type(0, 1, allow_empty=True)
    matrix = np.empty((n, n))
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            # The rows are converted one at a time, since text takes many times the memory.
            rows = csv.reader(file, strict=True)
            names = [unguard_formula(name) for name in next(rows, [])]
            check_condition(names == ["sample", *samples], "names other samples than clusters.csv")
            for i, name in enumerate(samples):
                first, *cells = next(rows, [""])
                check_condition(
                    unguard_formula(first) == name and len(cells) == n,
                    f"has other cells than expected in row {i + 1}",
                )
                matrix[i] = [cell_type.parse(cell) for cell in cells]
            check_condition(next(rows, None) is None, "has more rows than there are samples")
    except (EOFError, OSError, zlib.error, csv.Error):
        raise FlawError("is damaged or cut off") from None
    except ValueError:  # also text that is not UTF-8
        raise FlawError("holds a cell that is not a number from 0 to 1") from None
    check_condition(np.array_equal(matrix, matrix.T, equal_nan=True), "is not symmetric")
    return matrix


def _read_markers(path: Path, features: Columns, about: About) -> Columns:
    """Return the columns of markers.csv; raise FlawError if the file contradicts other files."""
    n, k = about["data"]["n_samples"], about["chosen"]["n_clusters"]
    is_selected = dict(zip(features["feature"], features["selected"], strict=True))
    types = {
        "contrast": choice_type("cluster or split", ("cluster", "split")),
        "node": integer_type(0, 2 * n - 2),
        "inside": _cluster_list_type(k),
        "outside": _cluster_list_type(k),
        "n_inside": integer_type(1, n),
        "n_outside": integer_type(1, n),
        "feature": choice_type("a feature", is_selected),
    }
    own = {
        "selected": BOOLEAN_TYPE,
        "mean_inside": float_type(),
        "mean_outside": float_type(),
        # The effect size is a ratio. It is empty if the feature is constant within the groups, and
        # infinite if the ratio overflows.
        "effect_size": float_type(-np.inf, np.inf, allow_empty=True),
        "p_value": float_type(0, 1),
        "q_value": float_type(0, 1),
        "direction": choice_type("up, down or none", ("up", "down", "none")),
    }
    annotations = _types_of_annotations(about["annotations"]["features"])
    types = _merge_types(types, annotations, own)
    markers = read_csv_columns(path, types, n_rows=about["n_rows"]["markers"])
    _convert_whole_numbers(markers, about["annotations"]["features"])
    expected = [is_selected[name] for name in markers["feature"]]
    check_condition(expected == markers["selected"].tolist(), "has other selected features")
    return markers


def _read_gene_sets(path: Path, about: About) -> pd.DataFrame:
    """Return the table of gene sets; raise FlawError if the file contradicts result.json."""
    sets, k = about["genes"]["sets"], about["chosen"]["n_clusters"]
    count = integer_type(1, sets["n_genes"])
    types = {
        "cluster": integer_type(1, k),
        "direction": choice_type("up or down", DIRECTIONS),
        "gene_set": _NAME_TYPE,
        "description": _NAME_TYPE,
        "n_common": count,
        "n_set": integer_type(sets["min_size"], sets["max_size"]),
        "n_markers": count,
        "n_tested": integer_type(sets["n_genes"], sets["n_genes"]),
        "expected": float_type(0),
        "p_value": float_type(0, 1),
        "q_value": float_type(0, 1),
        "genes": _NAME_TYPE,
    }
    columns = read_csv_columns(path, types, n_rows=sets["n_rows"])
    possible = np.minimum(columns["n_set"], columns["n_markers"])
    check_condition((columns["n_common"] <= possible).all(), "has more common genes than possible")
    return pd.DataFrame(columns)


def learnt_column(step: int, name: str) -> str:
    """Return the title of the column of centers.csv that contains values that a step learnt.

    `step` is counted from 1, and `name` is the name of the fitted attribute.
    """
    return f"step_{step}_{name.rstrip('_')}"


def _read_centers(path: Path, features: Columns, about: About) -> Columns:
    """Return the columns of centers.csv; raise FlawError if the file contradicts other files."""
    n_steps, k = len(about["preprocessing"]), about["chosen"]["n_clusters"]
    types = {
        "feature": _NAME_TYPE,
        "n_same": integer_type(1),
        "n_steps": integer_type(0, n_steps),
        **{
            learnt_column(entry["step"], entry["name"]): float_type(allow_empty=True)
            for entry in about["prediction"]["learnt"]
        },
        "used": BOOLEAN_TYPE,
        "weight": float_type(0, allow_empty=True),
    }
    if about["parameters"].get("robust"):
        types |= {"lower": float_type(allow_empty=True), "upper": float_type(allow_empty=True)}
    titles = [f"center_{i}" for i in range(1, k + 1)]
    types |= dict.fromkeys(titles, float_type(-_MAX_VALUE, _MAX_VALUE, allow_empty=True))
    centers = read_csv_columns(path, types, n_rows=about["n_rows"]["centers"])
    check_condition(_are_unique(centers["feature"]), "names a feature twice")
    used = centers["used"]
    known = set(features["feature"].tolist())
    check_condition(
        used.any() and known.issuperset(centers["feature"][used].tolist()),
        "compares clusters in other features than features.csv",
    )
    is_complete = (centers["n_steps"][used] == n_steps).all() and not any(
        np.isnan(centers[title][used]).any() for title in ("weight", *titles)
    )
    check_condition(is_complete, "has a centre that is not complete")
    check_condition(centers["weight"][used].any(), "has no feature with a weight")
    if "lower" in types:
        check_condition(
            not (centers["lower"] > centers["upper"]).any(), "has limits in the wrong order"
        )
    _check_learnt_values(centers, about)
    return centers


def _check_learnt_values(centers: Columns, about: About) -> None:
    """Raise FlawError if a value that a step learnt is missing, or if a scale is not positive."""
    for entry in about["prediction"]["learnt"]:
        values = centers[learnt_column(entry["step"], entry["name"])]
        is_present = centers["n_steps"] >= entry["step"]
        check_condition(
            not np.isnan(values[is_present]).any()
            and (entry["name"] != "scale_" or (values[is_present] > 0).all()),
            "lacks a value that a preprocessing step learnt",
        )


def _cluster_list_type(k: int) -> ColumnType:
    """Return the type of a column in which each cell lists cluster numbers from 1 to `k`."""

    def parse(cell: str) -> str:
        is_list = _CLUSTER_LIST.fullmatch(cell)
        if not (is_list and all(int(part) <= k for part in cell.split(", "))):
            raise ValueError("not a list of clusters")
        return cell

    return ColumnType(dtype=object, parse=parse, wanted="a list of clusters")
