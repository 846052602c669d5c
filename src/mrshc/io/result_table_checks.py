"""The tables of a result: which columns they have, and that they agree with each other."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.selection import rule_of
from mrshc.core.trees.tree import check_linkage
from mrshc.exports import gct_cell
from mrshc.io.formats.gct import read_gct
from mrshc.io.saved_file_reading import (
    FLAG,
    TEXT,
    Kind,
    choice,
    number,
    read_columns,
    read_whole,
    whole,
)
from mrshc.io.streams import FlawError
from mrshc.methods import METHODS
from mrshc.utils.text_cleaning import unguard_formula

About = dict[str, Any]
Columns = dict[str, NDArray[Any]]  # by title

LINKAGE = ("left", "right", "height", "size")
_CLUSTERS = re.compile(r"[1-9][0-9]{0,17}(, [1-9][0-9]{0,17})*")
# No estimator takes larger values.
_LARGEST_VALUE = 1e150
_ANNOTATIONS = {
    "text": TEXT,
    "whole": whole(),
    "number": number(-np.inf, np.inf, gaps=True),
}
# Columns that the report looks for in a table of candidates: of a search over (q, rank), and of
# other methods, by a column that tells which method made the table. As in
# `mrshc.plotting.search_story`.
_RANKED = {
    *("n_features_target", "n_features", "n_leaves", "silhouette", "reached"),
    *("screened_out", "best_rank", "removed"),
}
_CANDIDATES = {"n_clusters": {"silhouette"}, "l1_bound": {"n_features"}}
_TOGETHER = ({"gap", "gap_sd"}, {"n_features_target", "reached"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The tables of a result."""

    samples: pd.DataFrame
    features: pd.DataFrame
    selected: pd.DataFrame
    silhouettes: pd.DataFrame
    markers: pd.DataFrame
    linkage_matrix: NDArray[np.float64]


def require(condition: Any, flaw: str) -> None:
    """Refuse what does not hold; `flaw` goes on with a sentence that begins with a file's name."""
    if not condition:
        raise FlawError(flaw)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Begin the sentences about flaws with the name of a file."""
    try:
        yield
    except FlawError as flaw:
        raise FlawError(f"{name} {flaw}") from None


def check_about(about: About) -> None:
    """Refuse entries of result.json that do not agree with each other; its schema holds."""
    n, k, p = about["data"]["n_samples"], about["chosen"]["n_clusters"], about["n_rows"]["features"]
    sizes, splits, scores = about["cluster_sizes"], about["splits"], about["scores"]
    require(len(sizes) == k and sum(sizes) == n, "has clusters of other sizes than it counts")
    require(about["chosen"]["n_features"] <= p, "selects more features than there are")
    require(about["method"] in METHODS, f"has a method other than {' or '.join(METHODS)}")
    method = METHODS[about["method"]]
    is_ranked = method.loadings == "rank"
    rank = about["chosen"]["rank"]
    require((rank is not None) == is_ranked, "has a rank that does not fit")
    # Columns are expected by it, so that a very large one would never be read to the end.
    require(rank is None or rank <= min(n, p), "has a rank that no matrix of its size has")
    is_cut = not method.finds_number_of_clusters
    require(not is_cut or "n_clusters" in about["parameters"], "lacks 'parameters.n_clusters'")
    is_refined = about["n_associated"] is not None
    require(is_refined or not about["supported"], "lacks 'n_associated'")
    nodes = [split["node"] for split in splits]
    require(len(set(nodes)) == len(nodes), "tests a node of the tree twice")
    require(all(n <= node <= 2 * n - 2 for node in nodes), "tests a node that no tree has")
    require(all(split["n_samples"] <= n for split in splits), "tests more samples than there are")
    if scores is not None:
        names = {entry["name"] for entry in about["annotations"]["samples"]}
        require(scores["truth"] in names, "lacks the annotation that holds the classes")
        require(scores["n_samples"] <= n, "knows the class of more samples than there are")
    check_candidates(about["search"])


def check_candidates(rows: Sequence[dict[str, Any]]) -> None:
    """Refuse a table of candidates that cannot be shown; it may be empty."""
    if not rows:
        return
    names = rows[0].keys()
    require(all(row.keys() == names for row in rows), "has candidates of different kinds")
    if (rule := rule_of(names)) is not None:
        require(names >= _RANKED, "has incomplete candidates")
        scores = [row[name] for row in rows for name in rule.columns]
        # Plots and sentences compute with them; the schema allows other columns to be null.
        require(
            all(type(score) in (int, float) for score in scores), "has a score that is not a number"
        )
    else:
        kind = next((kind for kind in _CANDIDATES if kind in names), None)
        require(kind is not None and names >= _CANDIDATES[kind], "has incomplete candidates")
    require(all(len(names & both) != 1 for both in _TOGETHER), "has incomplete candidates")
    require(sum(row["chosen"] for row in rows) == 1, "does not choose a single candidate")


def read_tables(folder: Path, about: About, *, most_cuts: int) -> Tables:
    """Read the tables of a result, whose number of rows and whose names `about` knows."""
    n = about["data"]["n_samples"]
    with naming("linkage.csv"):
        linkage_matrix = _linkage(folder / "linkage.csv", n)
    with naming("clusters.csv"):
        samples = _samples(folder / "clusters.csv", about)
    with naming("silhouettes.csv"):
        cuts = {f"cut_{k}": number(-1, 1) for k in range(2, min(most_cuts, n) + 1)}
        silhouettes = read_columns(folder / "silhouettes.csv", {"sample": _NAME, **cuts}, n_rows=n)
        same = np.array_equal(silhouettes["sample"], samples["sample"])
        require(same, "names other samples than clusters.csv")
    with naming("features.csv"):
        features = _features(folder / "features.csv", about)
    chosen = _chosen(features)
    with naming("selected.gct"):
        values = _selected(folder / "selected.gct", samples=samples["sample"], features=chosen)
    with naming("markers.csv"):
        markers = _markers(folder / "markers.csv", features, about)
    frame = _frame(samples, names="sample")
    columns = pd.Index(chosen, name="feature", dtype=object)
    return Tables(
        samples=frame,
        features=_frame(features, names="feature"),
        selected=pd.DataFrame(values, index=frame.index, columns=columns),
        silhouettes=_frame(silhouettes, names="sample"),
        markers=pd.DataFrame(markers),
        linkage_matrix=linkage_matrix,
    )


def _frame(columns: Columns, *, names: str) -> pd.DataFrame:
    """Return a table whose rows are named by one of its columns."""
    index = pd.Index(columns[names], name=names, dtype=object)
    return pd.DataFrame({title: c for title, c in columns.items() if title != names}, index=index)


def _linkage(path: Path, n: int) -> NDArray[np.float64]:
    kinds = dict(zip(LINKAGE, (whole(), whole(), number(), whole()), strict=True))
    columns = read_columns(path, kinds, n_rows=n - 1)
    try:
        return check_linkage(np.column_stack(list(columns.values())), n_samples=n)
    except ValueError as error:
        raise FlawError(f"holds no tree: {str(error).rstrip('.')}") from None


_NAME = Kind(dtype=object, read=str, wanted="a name")


def _are_unique(values: NDArray[Any]) -> bool:
    return len(set(values.tolist())) == len(values)


def _kinds(*parts: dict[str, Kind]) -> dict[str, Kind]:
    """Return the columns of a table, in this order; their names differ."""
    found = {title: kind for part in parts for title, kind in part.items()}
    require(len(found) == sum(map(len, parts)), "has two columns of the same name")
    return found


def _annotations(entries: Sequence[dict[str, str]]) -> dict[str, Kind]:
    require(len({entry["name"] for entry in entries}) == len(entries), "has an annotation twice")
    return {entry["name"]: _ANNOTATIONS[entry["kind"]] for entry in entries}


def _samples(path: Path, about: About) -> Columns:
    n, k = about["data"]["n_samples"], about["chosen"]["n_clusters"]
    own = {"cluster": whole(1, k), "leaf": whole(1, n), "silhouette": number(-1, 1)}
    if about["parameters"].get("robust"):
        own["outlying"] = FLAG
    kinds = _kinds({"sample": _NAME}, own, _annotations(about["annotations"]["samples"]))
    samples = read_columns(path, kinds, n_rows=n)
    require(_are_unique(samples["sample"]), "names a sample twice")
    require(_are_unique(samples["leaf"]), "puts two samples at the same leaf of the tree")
    sizes = np.bincount(samples["cluster"], minlength=k + 1)[1:]
    require(
        sizes.tolist() == about["cluster_sizes"], "has clusters of other sizes than result.json"
    )
    outlying = samples["sample"][samples["outlying"]].tolist() if "outlying" in own else []
    require(outlying == about["outliers"], "has other outlying samples than result.json")
    return samples


def _features(path: Path, about: About) -> Columns:
    p, q = about["n_rows"]["features"], about["chosen"]["n_features"]
    n_loadings = METHODS[about["method"]].n_loadings(about["chosen"]["rank"])
    own = {"position": whole(1, p), "selected": FLAG, "effect_size": number(0, 1, gaps=True)}
    if about["n_associated"] is not None:
        own |= {"q_value": number(0, 1, gaps=True), "associated": FLAG}
    own |= {f"loading_{i}": number() for i in range(1, n_loadings + 1)}
    n_clusters = about["chosen"]["n_clusters"]
    own |= {f"mean_cluster_{i}": number(gaps=True) for i in range(1, n_clusters + 1)}
    kinds = _kinds({"feature": _NAME}, _annotations(about["annotations"]["features"]), own)
    features = read_columns(path, kinds, n_rows=p)
    require(_are_unique(features["feature"]), "names a feature twice")
    require(_are_unique(features["position"]), "puts two features at the same position")
    selected = features["selected"]
    require(selected.sum() == q and selected[:q].all(), "does not begin with the selected features")
    associated = int(features["associated"].sum()) if "associated" in own else None
    require(associated == about["n_associated"], "has more or fewer associated features")
    return features


def _chosen(features: Columns) -> NDArray[Any]:
    """Return the names of the selected features, in the order of the data."""
    selected = features["selected"]
    chosen: NDArray[Any] = features["feature"][selected]
    return chosen[np.argsort(features["position"][selected])]


def _selected(path: Path, *, samples: NDArray[Any], features: NDArray[Any]) -> NDArray[np.float64]:
    text = read_whole(path)
    require(text.startswith("#1.3\n"), "is not a GCT file")
    table = read_gct(io.StringIO(text, newline=""))
    values = np.asarray(table.values, dtype=np.float64).T
    require(table.column_names == _as_read(samples), "names other samples")
    require(table.row_names == _as_read(features), "names other features")
    require(not (np.abs(values) > _LARGEST_VALUE).any(), "holds values that no fit takes")
    return values


def _as_read(names: NDArray[Any]) -> list[str]:
    """Return names as they come back from a GCT file."""
    return [unguard_formula(gct_cell(name)) for name in names]


def _markers(path: Path, features: Columns, about: About) -> Columns:
    n, k = about["data"]["n_samples"], about["chosen"]["n_clusters"]
    selected = dict(zip(features["feature"], features["selected"], strict=True))
    kinds = {
        "contrast": choice("cluster or split", ("cluster", "split")),
        "node": whole(0, 2 * n - 2),
        "inside": _clusters_up_to(k),
        "outside": _clusters_up_to(k),
        "n_inside": whole(1, n),
        "n_outside": whole(1, n),
        "feature": choice("a feature", selected),
        "selected": FLAG,
        "mean_inside": number(),
        "mean_outside": number(),
        "effect_size": number(-np.inf, np.inf, gaps=True),  # within groups without variance
        "p_value": number(0, 1),
        "q_value": number(0, 1),
    }
    markers = read_columns(path, kinds, n_rows=about["n_rows"]["markers"])
    expected = [selected[name] for name in markers["feature"]]
    require(expected == markers["selected"].tolist(), "has other selected features")
    return markers


def _clusters_up_to(k: int) -> Kind:
    def read(cell: str) -> str:
        if not (_CLUSTERS.fullmatch(cell) and all(int(part) <= k for part in cell.split(", "))):
            raise ValueError("no clusters")
        return cell

    return Kind(dtype=object, read=read, wanted="a list of clusters")
