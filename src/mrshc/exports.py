"""Trees and data in formats that other programs read.

All functions return text, for the caller to write as UTF-8. Tabs and line breaks in names become
blanks. In tables (GCT, CDT), an apostrophe is put before names and annotations that a spreadsheet
would take for a formula, see :func:`mrshc.utils.text_cleaning.guard_formula`;
`mrshc.io.read_table` removes it from GCT files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mrshc.core.array_types import Float
from mrshc.core.trees.tree import Tree, check_linkage
from mrshc.utils.text_cleaning import guard_formula

# What a Newick name may hold without quotes. An underscore would be read as a blank.
_PLAIN = re.compile(r"[A-Za-z0-9.+-]+")
# Heights of 1 - correlation that leave their range by less do so by rounding. Not tuned: sums over
# a million samples round by less.
_ROUNDING = 1e-9


def newick(linkage_matrix: ArrayLike, names: Sequence[Any]) -> str:
    """Return a tree in Newick format.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        The tree in scipy's format, such as `linkage_matrix_`.
    names : sequence of length n_samples
        Names of the samples.

    Returns
    -------
    str
        One line. The length of a branch is the difference of the heights at its ends, so that all
        samples lie equally deep; with linkages that are not monotone (centroid, median) it may be
        negative.

    Examples
    --------
    >>> from mrshc.exports import newick
    >>> newick([[0, 1, 1.0, 2], [2, 3, 4.0, 3]], ["a", "b", "it's c"])
    "('it''s c':4,(a:1,b:1):3);"
    """
    n = len(names)
    merges = _merges("linkage_matrix", linkage_matrix, n=n)
    children = merges[:, :2].astype(np.intp)
    heights = np.append(np.zeros(n), merges[:, 2])
    parts: list[str] = []
    # What is still to be written, last first; a deep tree must not exhaust the call stack.
    waiting: list[int | str] = [";", 2 * n - 2]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item < n:
            parts.append(_quoted(str(names[item])))
        else:
            left, right = children[item - n]
            waiting += [")", _branch(heights, item, right), int(right), ","]
            waiting += [_branch(heights, item, left), int(left), "("]
    return "".join(parts)


def gct(
    X: ArrayLike,
    *,
    feature_names: Sequence[Any],
    sample_names: Sequence[Any],
    descriptions: Sequence[Any] | None = None,
    feature_annotations: Mapping[str, Sequence[Any]] | None = None,
    sample_annotations: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    r"""Return data as a GCT file, which GenePattern, GSEA and Morpheus read.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples in rows. In the file they are in columns, as the format wants it.
    feature_names, sample_names : sequence
        Names of the features and of the samples. Many programs want them to be unique.
    descriptions : sequence of length n_features, optional
        A description of each feature.
    feature_annotations : mapping of names to sequences of length n_features, optional
        More about each feature, such as its weight in a fit.
    sample_annotations : mapping of names to sequences of length n_samples, optional
        More about each sample, such as its cluster.

    Returns
    -------
    str
        GCT 1.3 if there are annotations, GCT 1.2 else. Values are written with all their digits and
        read back exactly; a missing value is "NaN", an empty name or annotation "na".

    Examples
    --------
    >>> from mrshc.exports import gct
    >>> text = gct(
    ...     [[1.5, 2.0], [0.1, float("nan")]],
    ...     feature_names=["g1", "g2"],
    ...     sample_names=["s1", "s2"],
    ...     sample_annotations={"cluster": [0, 1]},
    ... )
    >>> for line in text.splitlines():
    ...     print(line.split("\t"))
    ['#1.3']
    ['2', '2', '0', '1']
    ['id', 's1', 's2']
    ['cluster', '0', '1']
    ['g1', '1.5', '0.1']
    ['g2', '2.0', 'NaN']
    """
    values = _values(X, n=len(sample_names), p=len(feature_names))
    n, p = values.shape
    about_features = _annotations("feature_annotations", feature_annotations, length=p)
    about_samples = _annotations("sample_annotations", sample_annotations, length=n)
    text = {} if descriptions is None else {"Description": descriptions}
    described = _annotations("", text, length=p)
    is_annotated = bool(about_features or about_samples)
    if described and any(key == "Description" for key, _ in about_features):
        raise ValueError(
            "feature_annotations holds a second 'Description'. Rename it, or leave descriptions "
            "out."
        )
    if is_annotated:
        about_features = described + about_features
        size = ["#1.3", f"{p}\t{n}\t{len(about_features)}\t{len(about_samples)}"]
    else:
        about_features = described or [("Description", ["na"] * p)]
        size = ["#1.2", f"{p}\t{n}"]
    keys = [key for key, _ in about_features]
    header = ["id" if is_annotated else "Name", *keys, *map(gct_cell, sample_names)]
    # Rows are joined as they come: cells one by one would take twenty times the memory.
    lines = [*size, "\t".join(header)]
    lines += ["\t".join([key, *["na"] * len(keys), *cells]) for key, cells in about_samples]
    columns = [cells for _, cells in about_features]
    for j, name in enumerate(feature_names):
        about = [column[j] for column in columns]
        lines.append("\t".join([gct_cell(name), *about, *_digits(values[:, j], missing="NaN")]))
    return _joined(lines)


@dataclass(frozen=True, kw_only=True)
class TreeViewFiles:
    """What Cluster 3.0 writes and Java TreeView reads: three files that differ in their suffix."""

    cdt: str  # the data, in the order of the trees
    gtr: str | None  # the tree of the features; None without one
    atr: str | None  # the tree of the samples; None without one


def treeview(
    X: ArrayLike,
    *,
    sample_tree: ArrayLike | None,
    feature_tree: ArrayLike | None,
    sample_names: Sequence[Any],
    feature_names: Sequence[Any],
) -> TreeViewFiles:
    r"""Return data and trees in the format of Cluster 3.0 and Java TreeView.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples in rows; most often the selected features only. NaN becomes an empty cell.
    sample_tree : array-like of shape (n_samples - 1, 4) or None
        The tree of the samples in scipy's format, such as `linkage_matrix_`; None for none.
    feature_tree : array-like of shape (n_features - 1, 4) or None
        The tree of the features, whose heights are 1 - correlation; None for none. A single feature
        has no tree.
    sample_names, feature_names : sequence
        Names of the samples and of the features.

    Returns
    -------
    TreeViewFiles
        The text of the three files. What has a tree is in the order of the tree, the rest as in X.

    Notes
    -----
    The format wants similarities in [-1, 1] that do not increase from merge to merge. For features
    they are 1 - height, their correlation. Heights of samples have no unit to keep: they are
    divided by the height of the root, as Cluster 3.0 does with Euclidean distances, so that
    similarities run from 1 at a sample to 0 at the root. A merge below an earlier one, as centroid
    and median linkage make it, is drawn at the height of the earlier one.

    Examples
    --------
    >>> from mrshc.exports import treeview
    >>> files = treeview(
    ...     [[1.0], [5.0], [2.0]],
    ...     sample_tree=[[0, 2, 1.0, 2], [1, 3, 4.0, 3]],
    ...     feature_tree=None,
    ...     sample_names=["a", "b", "c"],
    ...     feature_names=["g"],
    ... )
    >>> for line in files.atr.splitlines():
    ...     print(line.split("\t"))
    ['NODE1X', 'ARRY0X', 'ARRY2X', '0.75']
    ['NODE2X', 'ARRY1X', 'NODE1X', '0.0']
    >>> print(files.cdt.splitlines()[-1].split("\t"))
    ['g', 'g', '1.000000', '5.0', '1.0', '2.0']
    """
    values = _values(X, n=len(sample_names), p=len(feature_names))
    samples = _tree("sample_tree", sample_tree, n=values.shape[0])
    features = _tree("feature_tree", feature_tree, n=values.shape[1])
    return TreeViewFiles(
        cdt=_cdt(
            values,
            samples,
            features=features,
            sample_names=[guard_formula(_blanked(name)) for name in sample_names],
            feature_names=[guard_formula(_blanked(name)) for name in feature_names],
        ),
        gtr=None if features is None else _nodes(features, _correlations(features), kind="GENE"),
        atr=None if samples is None else _nodes(samples, _closeness(samples), kind="ARRY"),
    )


def _cdt(
    values: Float,
    samples: Tree | None,
    *,
    features: Tree | None,
    sample_names: list[str],
    feature_names: list[str],
) -> str:
    n, p = values.shape
    columns = np.arange(n) if samples is None else samples.leaf_order
    # The first column is there only if the features have a tree, the second row if samples do.
    ids = [] if features is None else ["GID"]
    blank = ["", ""] if features is None else ["", "", ""]
    header = [*ids, "UNIQID", "NAME", "GWEIGHT", *(sample_names[i] for i in columns)]
    lines = ["\t".join(header)]
    if samples is not None:
        lines.append("\t".join(["AID", *blank, *(f"ARRY{i}X" for i in columns)]))
    lines.append("\t".join(["EWEIGHT", *blank, *["1.000000"] * n]))
    for j in np.arange(p) if features is None else features.leaf_order:
        ids = [] if features is None else [f"GENE{j}X"]
        name = feature_names[j]
        cells = _digits(values[columns, j], missing="")
        lines.append("\t".join([*ids, name, name, "1.000000", *cells]))
    return _joined(lines)


def _nodes(tree: Tree, similarities: Float, *, kind: str) -> str:
    """Return one line for each merge: its name, what it joins, and how similar they are."""
    n = tree.n_samples

    def name(node: int) -> str:
        return f"{kind}{node}X" if node < n else f"NODE{node - n + 1}X"

    rows = zip(range(n, 2 * n - 1), similarities.tolist(), strict=True)
    return _joined("\t".join([name(k), *map(name, tree.children(k)), repr(s)]) for k, s in rows)


def _correlations(features: Tree) -> Float:
    heights = _rising_heights(features)
    if heights[-1] > 2 + _ROUNDING:
        raise ValueError(
            f"feature_tree must have heights of 1 - correlation, between 0 and 2, got "
            f"{heights[-1]:.6g}. Build it from correlation distances, or leave it out with None."
        )
    return np.clip(1.0 - heights, -1.0, 1.0)


def _closeness(samples: Tree) -> Float:
    heights = _rising_heights(samples)
    return 1.0 - heights / heights[-1] if heights[-1] > 0 else np.ones_like(heights)


def _rising_heights(tree: Tree) -> Float:
    return np.maximum.accumulate(tree.linkage_matrix[:, 2])


def _tree(argument: str, linkage_matrix: ArrayLike | None, *, n: int) -> Tree | None:
    if linkage_matrix is None or n == 1:
        return None
    return Tree(linkage_matrix=_merges(argument, linkage_matrix, n=n))


def _merges(argument: str, linkage_matrix: ArrayLike, *, n: int) -> Float:
    """Return a linkage matrix of n names."""
    try:
        merges = np.array(linkage_matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # no numbers: the check says so
        return check_linkage(linkage_matrix, n_samples=n, name=argument)
    if np.isnan(merges).any():
        raise ValueError(
            f"{argument} must be finite, but holds NaN. Drop constant features before correlations "
            "are taken, and impute missing values."
        )
    # Rounding leaves 1 - correlation of copies a hair below zero.
    merges[(merges < 0) & (merges > -_ROUNDING)] = 0.0
    return check_linkage(merges, n_samples=n, name=argument)


def _values(X: ArrayLike, *, n: int, p: int) -> Float:
    values = np.asarray(X, dtype=np.float64)
    if values.shape != (n, p):
        raise ValueError(
            f"X must have the shape {(n, p)} for {n} sample names and {p} feature names, got "
            f"{values.shape}. Samples are in rows."
        )
    if np.isinf(values).any():
        raise ValueError(
            "X must be finite or NaN, but holds inf, which other programs do not read. Replace it."
        )
    return values


def _annotations(
    argument: str, annotations: Mapping[str, Sequence[Any]] | None, *, length: int
) -> list[tuple[str, list[str]]]:
    for key, entries in (annotations or {}).items():
        if len(entries) != length:
            where = f"{argument}[{key!r}]" if argument else "descriptions"
            raise ValueError(f"{where} must hold {length} entries, got {len(entries)}.")
    return [
        (gct_cell(k), [gct_cell(e) for e in entries]) for k, entries in (annotations or {}).items()
    ]


def _digits(values: Float, *, missing: str) -> list[str]:
    # Python's floats, unlike numpy's, are written bare by repr; NaN differs from itself.
    return [repr(value) if value == value else missing for value in values.tolist()]


def _joined(lines: Iterable[str]) -> str:
    return "\n".join([*lines, ""])


def gct_cell(value: Any) -> str:
    """Return a name or an annotation as a GCT file holds it.

    Rows without a name would be passed over, so that there is always one.
    """
    is_missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "na" if is_missing else guard_formula(_blanked(value)) or "na"


def _blanked(name: Any) -> str:
    return re.sub(r"\s", " ", str(name))


def _branch(heights: Any, parent: int, child: int) -> str:
    return f":{heights[parent] - heights[child]:.12g}"


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return "'" + _blanked(name).replace("'", "''") + "'"
