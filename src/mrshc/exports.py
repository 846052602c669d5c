"""Export of trees and data to the file formats of other programs.

All functions return text, which the caller writes to a file, encoded as UTF-8. Tabs and line breaks
in names are replaced by blanks. In tables (GCT, CDT), names and annotations that a spreadsheet
would interpret as a formula are preceded by an apostrophe, see
:func:`mrshc.utils.text_cleaning.guard_formula`; :func:`mrshc.io.read_table` removes it from GCT
files.
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

__all__ = ["TreeViewFiles", "gct", "newick", "treeview"]

# Names that Newick files may hold without quotes. Underscores are excluded, since readers replace
# them by blanks in names without quotes.
_UNQUOTED_NAME = re.compile(r"[A-Za-z0-9.+-]+")
# Heights of 1 - correlation may leave [0, 2] by up to this much through rounding. Correlations over
# a million samples have smaller errors. Not tuned: larger deviations indicate other distances.
_ROUNDING = 1e-9


def newick(linkage_matrix: ArrayLike, names: Sequence[Any]) -> str:
    """Return a tree in Newick format, which programs for phylogenetic trees read.

    The length of a branch is the difference of the heights of its ends, so that all leaves have the
    same distance from the root. With linkages that are not monotone (centroid, median), lengths may
    be negative.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        Tree in scipy's format, such as the attribute `linkage_matrix_` of an estimator.
    names : sequence of length n_samples
        Names of the samples. Names with other characters than letters, digits, ".", "+" and "-" are
        quoted.

    Returns
    -------
    str
        The tree, in one line without a line break. Lengths have 12 significant digits.

    Raises
    ------
    ValueError
        If the linkage matrix is not a tree with as many leaves as there are names.

    See Also
    --------
    treeview : Trees and data for Java TreeView.

    References
    ----------
    .. [1] Felsenstein, J. The Newick tree format.
       https://evolution.genetics.washington.edu/phylip/newicktree.html

    Examples
    --------
    >>> from mrshc.exports import newick
    >>> newick([[0, 1, 1.0, 2], [2, 3, 4.0, 3]], ["a", "b", "it's c"])
    "('it''s c':4,(a:1,b:1):3);"
    """
    n = len(names)
    merges = _check_merges("linkage_matrix", linkage_matrix, n=n)
    children = merges[:, :2].astype(np.intp)
    heights = np.append(np.zeros(n), merges[:, 2])
    parts: list[str] = []
    # A stack of nodes and text to be written, in place of recursion: the depth of a tree may exceed
    # Python's recursion limit.
    stack: list[int | str] = [";", 2 * n - 2]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item < n:
            parts.append(_quote_name(str(names[item])))
        else:
            left, right = children[item - n]
            # In reverse order, since the last item is taken first.
            stack += [")", _format_branch(heights, item, right), int(right), ","]
            stack += [_format_branch(heights, item, left), int(left), "("]
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
    r"""Return data in the GCT format, which GenePattern, GSEA and Morpheus read.

    The version of the format is 1.3 if there are annotations, otherwise 1.2. Values are written
    with all their digits, so that reading them returns the same numbers.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, with samples in rows; NaN for missing values. In the file, samples are in columns, as
        the format requires.
    feature_names : sequence of length n_features
        Names of the features. Many programs require unique names.
    sample_names : sequence of length n_samples
        Names of the samples. Many programs require unique names.
    descriptions : sequence of length n_features or None, default=None
        Description of each feature.
    feature_annotations : mapping of str to sequences of length n_features or None, default=None
        Annotations of the features, such as their weights in a fit.
    sample_annotations : mapping of str to sequences of length n_samples or None, default=None
        Annotations of the samples, such as their clusters.

    Returns
    -------
    str
        Text of the file. A missing value is "NaN", an empty name or annotation "na".

    Raises
    ------
    ValueError
        If the lengths do not agree, X holds infinite values, or there are descriptions and also an
        annotation with the name "Description".

    See Also
    --------
    mrshc.io.read_table : Read GCT and other files.

    References
    ----------
    .. [1] Reich, M., Liefeld, T., Gould, J., Lerner, J., Tamayo, P. and Mesirov, J. P. (2006).
       GenePattern 2.0. Nature Genetics 38, 500-501. https://doi.org/10.1038/ng0506-500

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
    values = _check_values(X, n=len(sample_names), p=len(feature_names))
    n, p = values.shape
    columns = _format_annotations("feature_annotations", feature_annotations, length=p)
    rows = _format_annotations("sample_annotations", sample_annotations, length=n)
    text = {} if descriptions is None else {"Description": descriptions}
    description = _format_annotations("", text, length=p)
    is_annotated = bool(columns or rows)
    if description and any(key == "Description" for key, _ in columns):
        raise ValueError(
            "feature_annotations must not hold 'Description' if descriptions are given. Rename the "
            "annotation, or leave out descriptions."
        )
    if is_annotated:
        columns = description + columns
        preamble = ["#1.3", f"{p}\t{n}\t{len(columns)}\t{len(rows)}"]
    else:
        # Version 1.2 requires a column of descriptions.
        columns = description or [("Description", ["na"] * p)]
        preamble = ["#1.2", f"{p}\t{n}"]
    keys = [key for key, _ in columns]
    header = ["id" if is_annotated else "Name", *keys, *map(format_gct_cell, sample_names)]
    # Each row is joined at once: a list of all cells would take twenty times the memory.
    lines = [*preamble, "\t".join(header)]
    lines += ["\t".join([key, *["na"] * len(keys), *cells]) for key, cells in rows]
    for j, name in enumerate(feature_names):
        cells = [format_gct_cell(name), *(entries[j] for _, entries in columns)]
        lines.append("\t".join([*cells, *_format_numbers(values[:, j], missing="NaN")]))
    return _join_lines(lines)


@dataclass(frozen=True, kw_only=True)
class TreeViewFiles:
    """Texts of the files that Java TreeView reads, which have the same name but for the suffix.

    Attributes
    ----------
    cdt : str
        The data, in the order of the trees.
    gtr : str or None
        The tree of the features, if there is one.
    atr : str or None
        The tree of the samples, if there is one.

    See Also
    --------
    treeview : Make these texts.
    """

    cdt: str
    gtr: str | None
    atr: str | None


def treeview(
    X: ArrayLike,
    *,
    sample_tree: ArrayLike | None,
    feature_tree: ArrayLike | None,
    sample_names: Sequence[Any],
    feature_names: Sequence[Any],
) -> TreeViewFiles:
    r"""Return data and trees in the format of Cluster 3.0 and Java TreeView.

    Samples, and features, with a tree are in the order of its leaves; those without a tree are in
    the order of X.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, with samples in rows; usually of the selected features only. NaN becomes an empty
        cell.
    sample_tree : array-like of shape (n_samples - 1, 4) or None
        Tree of the samples in scipy's format, such as the attribute `linkage_matrix_` of an
        estimator; None for no tree.
    feature_tree : array-like of shape (n_features - 1, 4) or None
        Tree of the features in scipy's format, with heights of 1 - correlation; None for no tree.
        It is ignored if there is only one feature.
    sample_names : sequence of length n_samples
        Names of the samples.
    feature_names : sequence of length n_features
        Names of the features.

    Returns
    -------
    TreeViewFiles
        The texts of the three files.

    Raises
    ------
    ValueError
        If the shapes do not agree, a matrix is not a tree, X holds infinite values, or heights of
        the feature tree are not between 0 and 2.

    See Also
    --------
    newick : The tree of the samples only.
    gct : The data only.

    Notes
    -----
    The format requires similarities in [-1, 1] that do not increase from merge to merge. For
    features, the similarity is 1 - height, the correlation. The heights of samples are divided by
    the height of the root, as Cluster 3.0 does with Euclidean distances, so that similarities
    decrease from 1 at a sample to 0 at the root. A merge below an earlier one, as in trees of
    centroid and median linkage, gets the height of the earlier one.

    References
    ----------
    .. [1] Eisen, M. B., Spellman, P. T., Brown, P. O. and Botstein, D. (1998). Cluster analysis and
       display of genome-wide expression patterns. Proceedings of the National Academy of Sciences
       95(25), 14863-14868. https://doi.org/10.1073/pnas.95.25.14863
    .. [2] de Hoon, M. J. L., Imoto, S., Nolan, J. and Miyano, S. (2004). Open source clustering
       software. Bioinformatics 20(9), 1453-1454. https://doi.org/10.1093/bioinformatics/bth078
    .. [3] Saldanha, A. J. (2004). Java Treeview - extensible visualization of microarray data.
       Bioinformatics 20(17), 3246-3248. https://doi.org/10.1093/bioinformatics/bth349

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
    values = _check_values(X, n=len(sample_names), p=len(feature_names))
    samples = _check_tree("sample_tree", sample_tree, n=values.shape[0])
    features = _check_tree("feature_tree", feature_tree, n=values.shape[1])
    gtr = atr = None
    if features is not None:
        gtr = _format_merges(features, _feature_similarities(features), leaf_prefix="GENE")
    if samples is not None:
        atr = _format_merges(samples, _sample_similarities(samples), leaf_prefix="ARRY")
    return TreeViewFiles(
        cdt=_format_cdt(
            values,
            samples,
            features=features,
            sample_names=[guard_formula(_replace_whitespace(name)) for name in sample_names],
            feature_names=[guard_formula(_replace_whitespace(name)) for name in feature_names],
        ),
        gtr=gtr,
        atr=atr,
    )


def _format_cdt(
    values: Float,
    samples: Tree | None,
    *,
    features: Tree | None,
    sample_names: list[str],
    feature_names: list[str],
) -> str:
    """Return the text of a CDT file: features in rows, samples in columns."""
    n, p = values.shape
    columns = np.arange(n) if samples is None else samples.leaf_order
    # The column of identifiers exists only if the features have a tree, the row of identifiers only
    # if the samples do.
    ids = [] if features is None else ["GID"]
    blank = ["", ""] if features is None else ["", "", ""]
    header = [*ids, "UNIQID", "NAME", "GWEIGHT", *(sample_names[i] for i in columns)]
    lines = ["\t".join(header)]
    if samples is not None:
        lines.append("\t".join(["AID", *blank, *(f"ARRY{i}X" for i in columns)]))
    # Weights of samples and features are required; with six digits, as Cluster 3.0 writes them.
    lines.append("\t".join(["EWEIGHT", *blank, *["1.000000"] * n]))
    for j in np.arange(p) if features is None else features.leaf_order:
        ids = [] if features is None else [f"GENE{j}X"]
        name = feature_names[j]
        cells = _format_numbers(values[columns, j], missing="")
        lines.append("\t".join([*ids, name, name, "1.000000", *cells]))
    return _join_lines(lines)


def _format_merges(tree: Tree, similarities: Float, *, leaf_prefix: str) -> str:
    """Return one line for each merge: its name, its two children and their similarity."""
    n = tree.n_samples

    def node_name(node: int) -> str:
        return f"{leaf_prefix}{node}X" if node < n else f"NODE{node - n + 1}X"

    rows = zip(range(n, 2 * n - 1), similarities.tolist(), strict=True)
    return _join_lines(
        "\t".join([node_name(k), *map(node_name, tree.children(k)), repr(s)]) for k, s in rows
    )


def _feature_similarities(features: Tree) -> Float:
    """Return the correlation at each merge; refuse heights that are not 1 - correlation."""
    heights = _monotone_heights(features)
    if heights[-1] > 2 + _ROUNDING:
        raise ValueError(
            "feature_tree must have heights of 1 - correlation, between 0 and 2, got "
            f"{heights[-1]:.6g}. Build it from correlation distances, or leave it out with None."
        )
    return np.clip(1.0 - heights, -1.0, 1.0)


def _sample_similarities(samples: Tree) -> Float:
    """Return a similarity for each merge, 1 at height zero and 0 at the root."""
    heights = _monotone_heights(samples)
    # Identical samples have heights of zero: they are entirely similar.
    return 1.0 - heights / heights[-1] if heights[-1] > 0 else np.ones_like(heights)


def _monotone_heights(tree: Tree) -> Float:
    """Return the heights of all merges, each at least that of the merge before it."""
    return np.maximum.accumulate(tree.linkage_matrix[:, 2])


def _check_tree(argument: str, linkage_matrix: ArrayLike | None, *, n: int) -> Tree | None:
    """Return the tree of n leaves in an argument; None if there is none or n is 1."""
    if linkage_matrix is None or n == 1:
        return None
    return Tree(linkage_matrix=_check_merges(argument, linkage_matrix, n=n))


def _check_merges(argument: str, linkage_matrix: ArrayLike, *, n: int) -> Float:
    """Return a linkage matrix of n leaves as floats; refuse anything else."""
    try:
        merges = np.array(linkage_matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # not numbers: check_linkage says so
        return check_linkage(linkage_matrix, n_samples=n, name=argument)
    if np.isnan(merges).any():
        raise ValueError(
            f"{argument} must be finite, but holds NaN. Remove constant features before computing "
            "correlations, and impute missing values."
        )
    # Rounding may make 1 - correlation of identical features slightly negative.
    merges[(merges < 0) & (merges > -_ROUNDING)] = 0.0
    return check_linkage(merges, n_samples=n, name=argument)


def _check_values(X: ArrayLike, *, n: int, p: int) -> Float:
    """Return data of n samples and p features as floats; refuse other shapes and infinity."""
    values = np.asarray(X, dtype=np.float64)
    if values.shape != (n, p):
        raise ValueError(
            f"X must have the shape {(n, p)} for {n} sample names and {p} feature names, got "
            f"{values.shape}. Give samples in rows, and a name for each sample and feature."
        )
    if np.isinf(values).any():
        raise ValueError(
            "X must be finite or NaN, but holds inf, which other programs do not read. Replace "
            "infinite values, for example by NaN."
        )
    return values


def _format_annotations(
    argument: str, annotations: Mapping[str, Sequence[Any]] | None, *, length: int
) -> list[tuple[str, list[str]]]:
    """Return annotations as pairs of a name and its entries, as text; refuse wrong lengths."""
    for key, entries in (annotations or {}).items():
        if len(entries) != length:
            name = f"{argument}[{key!r}]" if argument else "descriptions"
            unit = "sample" if argument == "sample_annotations" else "feature"
            raise ValueError(
                f"{name} must hold {length} entries, one for each {unit}, got {len(entries)}."
            )
    return [
        (format_gct_cell(k), [format_gct_cell(e) for e in entries])
        for k, entries in (annotations or {}).items()
    ]


def _format_numbers(values: Float, *, missing: str) -> list[str]:
    """Return numbers with all their digits, and `missing` for NaN."""
    # tolist makes Python floats, whose repr is the number alone. NaN is not equal to itself.
    return [repr(value) if value == value else missing for value in values.tolist()]


def _join_lines(lines: Iterable[str]) -> str:
    """Return the text of lines, each with a line break."""
    return "\n".join([*lines, ""])


def format_gct_cell(value: Any) -> str:
    """Return a name or an annotation as text for a cell of a GCT file.

    Parameters
    ----------
    value : object
        The name or annotation.

    Returns
    -------
    str
        One line without tabs; "na" for None, NaN and empty text, since programs skip rows without a
        name.
    """
    is_missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "na" if is_missing else guard_formula(_replace_whitespace(value)) or "na"


def _replace_whitespace(name: Any) -> str:
    """Return a name as text in which tabs and line breaks, which separate cells, are blanks."""
    return re.sub(r"\s", " ", str(name))


def _format_branch(heights: Any, parent: int, child: int) -> str:
    """Return the length of a branch in Newick notation."""
    # 12 digits hide rounding errors of differences, and are more than a drawing can show.
    return f":{heights[parent] - heights[child]:.12g}"


def _quote_name(name: str) -> str:
    """Return a name in Newick notation, in quotes if it needs them; quotes in it are doubled."""
    if _UNQUOTED_NAME.fullmatch(name):
        return name
    return "'" + _replace_whitespace(name).replace("'", "''") + "'"
