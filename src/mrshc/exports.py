"""Export of trees and data to the file formats of other programs.

The functions return text, which the caller writes to files in UTF-8. Tabs and line breaks in names
are replaced by blanks. In tables (GCT and CDT files), an apostrophe is put in front of each name or
annotation that a spreadsheet would interpret as a formula
(`mrshc.shell.text_cleaning.guard_formula`). When :func:`mrshc.io.read_table` reads a GCT
file, the apostrophes are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mrshc.core.trees import Tree, check_linkage
from mrshc.shell.text_cleaning import guard_formula

__all__ = ["TreeViewFiles", "gct", "newick", "rnk", "treeview"]

# Names that may be written to Newick files without quotes. Names with underscores are not included,
# since programs that read Newick files replace underscores in unquoted names by blanks.
_UNQUOTED_NAME = re.compile(r"[A-Za-z0-9.+-]+")
# Heights of the form 1 - correlation are between 0 and 2, but rounding errors may move them
# slightly outside this interval. Heights that are outside by more than this amount are not of this
# form: the rounding error of a correlation is smaller even for a million samples. The value has not
# been tuned.
_ROUNDING = 1e-9


def newick(
    linkage_matrix: ArrayLike, names: Sequence[Any], *, support: ArrayLike | None = None
) -> str:
    """Return a tree in Newick format [1]_, which programs for phylogenetic trees can read.

    The length of a branch is the difference between the heights of its two ends, so all leaves have
    the same distance from the root. With centroid and median linkage, a branch length may be
    negative, because a merge may be lower than an earlier merge.

    Parameters
    ----------
    linkage_matrix : array-like of shape (n_samples - 1, 4)
        Tree in scipy's format, such as the attribute `linkage_matrix_` of an estimator.
    names : sequence of length n_samples
        Names of the samples. A name is quoted unless it consists only of ASCII letters, digits,
        ".", "+" and "-".
    support : array-like of shape (n_samples - 1,) or None, default=None
        Support of the branch below each node, in the order of the rows of `linkage_matrix`, such as
        the attribute `branch_support` of :func:`mrshc.stability`; NaN for branches without support.
        It is written as the label of the node, after the closing parenthesis, where Biopython, ete
        and other programs read it as the confidence of the branch.

    Returns
    -------
    str
        The tree as one line, without a line break at the end. Branch lengths have at most 12
        significant digits, and supports at most 4.

    References
    ----------
    .. [1] Felsenstein, J. The Newick tree format.
       https://evolution.genetics.washington.edu/phylip/newicktree.html

    Examples
    --------
    >>> from mrshc.exports import newick
    >>> newick([[0, 1, 1.0, 2], [2, 3, 4.0, 3]], ["a", "b", "it's c"])
    "('it''s c':4,(a:1,b:1):3);"
    >>> newick([[0, 1, 1.0, 2], [2, 3, 4.0, 3]], ["a", "b", "c"], support=[0.9, float("nan")])
    '(c:4,(a:1,b:1)0.9:3);'
    """
    n = len(names)
    merges = _check_merges("linkage_matrix", linkage_matrix, n=n)
    children = merges[:, :2].astype(np.intp)
    heights = np.append(np.zeros(n), merges[:, 2])
    labels = _format_support(support, length=n - 1)
    parts: list[str] = []
    # The stack contains the nodes and strings that remain to be written. A stack is used instead of
    # recursion, since the depth of a tree may exceed Python's recursion limit.
    stack: list[int | str] = [";", 2 * n - 2]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item < n:
            parts.append(_quote_name(str(names[item])))
        else:
            left, right = children[item - n]
            # The items are added in reverse order, since the item that was added last is taken
            # first.
            stack += [f"){labels[item - n]}", _format_branch(heights, item, right)]
            stack += [int(right), ","]
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
    r"""Return data in GCT format, which GenePattern [1]_, GSEA and Morpheus can read.

    The format version is 1.3 if there are annotations, otherwise 1.2. Values are written with all
    their digits, so reading the file returns exactly the same numbers.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, with samples in rows; NaN for missing values. In the returned text, samples are in
        columns, as the format requires.
    feature_names : sequence of length n_features
        Names of the features. Many programs require unique names.
    sample_names : sequence of length n_samples
        Names of the samples. Many programs require unique names.
    descriptions : sequence of length n_features or None, default=None
        Description of each feature.
    feature_annotations : mapping of str to sequences of length n_features or None, default=None
        Annotations of the features, such as their loadings. The keys are the names of the
        annotations.
    sample_annotations : mapping of str to sequences of length n_samples or None, default=None
        Annotations of the samples, such as their clusters. The keys are the names of the
        annotations.

    Returns
    -------
    str
        Text of the file. Missing values are written as "NaN", and empty names and annotations as
        "na".

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
    # The entries of each row are joined into one string immediately, since a list of all entries of
    # the table would take twenty times the memory.
    lines = [*preamble, "\t".join(header)]
    lines += ["\t".join([key, *["na"] * len(keys), *cells]) for key, cells in rows]
    for j, name in enumerate(feature_names):
        cells = [format_gct_cell(name), *(entries[j] for _, entries in columns)]
        lines.append("\t".join([*cells, *_format_numbers(values[:, j], missing="NaN")]))
    return _join_lines(lines)


@dataclass(frozen=True, kw_only=True)
class TreeViewFiles:
    """Contents of the files that Java TreeView reads.

    The contents must be written to files that have the same name and the suffixes .cdt, .gtr and
    .atr.

    Attributes
    ----------
    cdt : str
        The data, with samples and features in the order of the leaves of their trees. Without a
        tree, the original order is kept.
    gtr : str or None
        The tree of the features, or None if there is no such tree.
    atr : str or None
        The tree of the samples, or None if there is no such tree.
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
    descriptions: Sequence[Any] | None = None,
) -> TreeViewFiles:
    r"""Return data and trees in the format of Cluster 3.0 [2]_ and Java TreeView [3]_.

    Samples are sorted in the order of the leaves of the sample tree, or kept in the order of X if
    there is no sample tree. The same holds for features and the feature tree.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, with samples in rows, usually restricted to the selected features. NaN is written as
        an empty entry.
    sample_tree : array-like of shape (n_samples - 1, 4) or None
        Tree of the samples in scipy's format, such as the attribute `linkage_matrix_` of an
        estimator; None for no tree. The tree is ignored if there is only one sample.
    feature_tree : array-like of shape (n_features - 1, 4) or None
        Tree of the features in scipy's format; None for no tree. Its heights must be of the form
        1 - correlation. The tree is ignored if there is only one feature.
    sample_names : sequence of length n_samples
        Names of the samples.
    feature_names : sequence of length n_features
        Names of the features, written to the column UNIQID.
    descriptions : sequence of length n_features or None, default=None
        Description of each feature, written to the column NAME, which Java TreeView shows next to
        the heat map. An empty description is replaced by the name. If None, the names are written.

    Returns
    -------
    TreeViewFiles
        The contents of the files: the data, the feature tree and the sample tree.

    Notes
    -----
    The format [1]_ requires a similarity in [-1, 1] for each merge, and the similarities must not
    increase from merge to merge. For features, the similarity is 1 - height, which is the
    correlation. For samples, the similarity is 1 minus the height divided by the height of the
    root, as in Cluster 3.0 with Euclidean distances. This similarity decreases from 1 at height
    zero to 0 at the root. With centroid and median linkage, a merge may be lower than an earlier
    merge. Such a merge is raised to the height of the highest earlier merge.

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
    if descriptions is not None and len(descriptions) != len(feature_names):
        raise ValueError(
            f"descriptions must hold {len(feature_names)} entries, one for each feature, got "
            f"{len(descriptions)}."
        )
    names = [guard_formula(_replace_whitespace(name)) for name in feature_names]
    texts = names if descriptions is None else map(_format_description, descriptions)
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
            feature_names=names,
            descriptions=[text or name for text, name in zip(texts, names, strict=True)],
        ),
        gtr=gtr,
        atr=atr,
    )


def rnk(features: Sequence[Any], scores: ArrayLike) -> str:
    r"""Return a ranked list in RNK format, which GSEA [1]_, fgsea and similar programs can read.

    Each line contains the name of a feature and its score, with a tab between them. The features
    are in decreasing order of the score.

    Parameters
    ----------
    features : sequence of length n_features
        Unique names of the features.
    scores : array-like of shape (n_features,)
        Score of each feature, such as the effect sizes of markers for one cluster. Features with
        the score NaN are left out. Infinite scores are replaced by the largest finite absolute
        score, since other programs do not read them (by 1 if no score is finite and not zero).

    Returns
    -------
    str
        Text of the file, without a header. Names are written without changes, except that tabs and
        line breaks are replaced by blanks: other programs compare them with the genes of their
        sets.

    References
    ----------
    .. [1] Subramanian, A. and others (2005). Gene set enrichment analysis: a knowledge-based
       approach for interpreting genome-wide expression profiles. Proceedings of the National
       Academy of Sciences 102(43), 15545-15550. https://doi.org/10.1073/pnas.0506580102

    Examples
    --------
    >>> from mrshc.exports import rnk
    >>> rnk(["TP53", "MYC", "ACTB"], [-1.5, 2.25, float("nan")])
    'MYC\t2.25\nTP53\t-1.5\n'
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(features),):
        raise ValueError(
            f"scores must have the shape {(len(features),)}, one for each feature, got "
            f"{values.shape}."
        )
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0) or 1.0
    values = np.clip(values, -largest, largest)  # NaN remains NaN
    kept = np.flatnonzero(~np.isnan(values))
    order = kept[np.argsort(-values[kept], kind="stable")]
    return _join_lines(f"{_replace_whitespace(features[i])}\t{values[i]!s}" for i in order)


def _format_description(text: Any) -> str:
    """Return a description as text for a CDT file; missing descriptions are empty."""
    is_missing = text is None or (isinstance(text, float) and np.isnan(text))
    return "" if is_missing else guard_formula(_replace_whitespace(text))


def _format_cdt(
    values: NDArray[np.float64],
    samples: Tree | None,
    *,
    features: Tree | None,
    sample_names: list[str],
    feature_names: list[str],
    descriptions: list[str],
) -> str:
    """Return the text of a CDT file, with features in rows and samples in columns.

    `values` has samples in rows. `samples` and `features` are the trees of the samples and of the
    features, or None if there is no tree.
    """
    n, p = values.shape
    columns = np.arange(n) if samples is None else samples.leaf_order
    # The file has a column of feature identifiers only if there is a feature tree, and a row of
    # sample identifiers only if there is a sample tree.
    ids = [] if features is None else ["GID"]
    blank = ["", ""] if features is None else ["", "", ""]
    header = [*ids, "UNIQID", "NAME", "GWEIGHT", *(sample_names[i] for i in columns)]
    lines = ["\t".join(header)]
    if samples is not None:
        lines.append("\t".join(["AID", *blank, *(f"ARRY{i}X" for i in columns)]))
    # The format requires weights of samples and features. All weights are 1, and are written with
    # six decimal places as in Cluster 3.0.
    lines.append("\t".join(["EWEIGHT", *blank, *["1.000000"] * n]))
    for j in np.arange(p) if features is None else features.leaf_order:
        ids = [] if features is None else [f"GENE{j}X"]
        names = [feature_names[j], descriptions[j]]
        cells = _format_numbers(values[columns, j], missing="")
        lines.append("\t".join([*ids, *names, "1.000000", *cells]))
    return _join_lines(lines)


def _format_merges(tree: Tree, similarities: NDArray[np.float64], *, leaf_prefix: str) -> str:
    """Return text with one line for each merge of a tree: name, two children and similarity.

    `similarities` contains one number for each merge. `leaf_prefix` is the first part of the names
    of leaves: "GENE" for features, "ARRY" for samples.
    """
    n = tree.n_samples

    def node_name(node: int) -> str:
        return f"{leaf_prefix}{node}X" if node < n else f"NODE{node - n + 1}X"

    rows = zip(range(n, 2 * n - 1), similarities.tolist(), strict=True)
    return _join_lines(
        "\t".join([node_name(k), *map(node_name, tree.children(k)), repr(s)]) for k, s in rows
    )


def _feature_similarities(features: Tree) -> NDArray[np.float64]:
    """Return the correlation at each merge of a feature tree whose heights are 1 - correlation.

    Raise ValueError if a height is larger than 2.
    """
    heights = _monotone_heights(features)
    if heights[-1] > 2 + _ROUNDING:
        raise ValueError(
            "feature_tree must have heights of 1 - correlation, between 0 and 2, got "
            f"{heights[-1]:.6g}. Build it from correlation distances, or leave it out with None."
        )
    return np.clip(1.0 - heights, -1.0, 1.0)


def _sample_similarities(samples: Tree) -> NDArray[np.float64]:
    """Return the similarity of each merge: 1 minus the height divided by the height of the root."""
    heights = _monotone_heights(samples)
    # If all samples are identical, all heights are zero, and all similarities are 1.
    return 1.0 - heights / heights[-1] if heights[-1] > 0 else np.ones_like(heights)


def _monotone_heights(tree: Tree) -> NDArray[np.float64]:
    """Return the heights of all merges, each raised to at least the heights of earlier merges."""
    return np.maximum.accumulate(tree.linkage_matrix[:, 2])


def _check_tree(argument: str, linkage_matrix: ArrayLike | None, *, n: int) -> Tree | None:
    """Return the tree with n leaves that a linkage matrix defines.

    Return None if the linkage matrix is None or if n is 1. Raise ValueError if the linkage matrix
    is not valid. `argument` is the name of the linkage matrix in the error message.
    """
    if linkage_matrix is None or n == 1:
        return None
    return Tree(linkage_matrix=_check_merges(argument, linkage_matrix, n=n))


def _check_merges(argument: str, linkage_matrix: ArrayLike, *, n: int) -> NDArray[np.float64]:
    """Return a linkage matrix as an array of floats.

    Raise ValueError if the linkage matrix does not define a tree with n leaves. `argument` is the
    name of the linkage matrix in the error message.
    """
    try:
        merges = np.array(linkage_matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # not numbers; check_linkage raises the error
        return check_linkage(linkage_matrix, n_samples=n, name=argument)
    if np.isnan(merges).any():
        raise ValueError(
            f"{argument} must be finite, but holds NaN. Remove constant features before computing "
            "correlations, and impute missing values."
        )
    # Rounding may make the height 1 - correlation of identical features slightly negative.
    merges[(merges < 0) & (merges > -_ROUNDING)] = 0.0
    return check_linkage(merges, n_samples=n, name=argument)


def _check_values(X: ArrayLike, *, n: int, p: int) -> NDArray[np.float64]:
    """Return data of n samples and p features as an array of floats.

    Raise ValueError if X does not have the shape (n, p), or if X contains infinite values.
    """
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
    """Return annotations as text: one pair (name, list of entries) for each annotation.

    Raise ValueError if an annotation does not have `length` entries. `argument` is the name of the
    annotations in the error message; it is empty for the descriptions of features.
    """
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


def _format_numbers(values: NDArray[np.float64], *, missing: str) -> list[str]:
    """Return numbers as text with all their digits, and the text `missing` for NaN."""
    # tolist converts the values to Python floats. Unlike the repr of a numpy number, the repr of a
    # Python float contains only the number. The comparison detects NaN, which is not equal to
    # itself.
    return [repr(value) if value == value else missing for value in values.tolist()]


def _join_lines(lines: Iterable[str]) -> str:
    """Return the lines as one string, in which each line ends with a line break."""
    return "\n".join([*lines, ""])


def format_gct_cell(value: Any) -> str:
    """Return a name or an annotation as text for a GCT file.

    Parameters
    ----------
    value : object
        The name or annotation.

    Returns
    -------
    str
        The text. Tabs and line breaks are replaced by blanks. An apostrophe is put in front of text
        that a spreadsheet would interpret as a formula. None, NaN, NA and empty text are written
        as "na", since other programs skip rows without a name.
    """
    is_missing = value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))
    return "na" if is_missing else guard_formula(_replace_whitespace(value)) or "na"


def _replace_whitespace(name: Any) -> str:
    """Return a name as text in which each whitespace character is replaced by a blank.

    Tabs and line breaks would otherwise be read as the end of an entry or of a row.
    """
    return re.sub(r"\s", " ", str(name))


def _format_support(support: ArrayLike | None, *, length: int) -> list[str]:
    """Return the label of each inner node: its support as text, or an empty text for NaN.

    Raise ValueError if there are not `length` values, or if a value is negative or infinite.
    """
    if support is None:
        return [""] * length
    values = np.asarray(support, dtype=np.float64)
    if values.shape != (length,):
        raise ValueError(
            f"support must have the shape {(length,)}, one value for each row of linkage_matrix, "
            f"got {values.shape}."
        )
    if np.isinf(values).any() or (values < 0).any():
        raise ValueError(
            "support must be at least 0 and finite, or NaN for branches without support, but holds "
            f"{values[np.isinf(values) | (values < 0)][0]:g}."
        )
    # Supports are means over at most some hundred subsamples, so 4 digits are enough.
    return ["" if value != value else f"{value:.4g}" for value in values.tolist()]


def _format_branch(heights: Any, parent: int, child: int) -> str:
    """Return a colon and the length of the branch from a parent to a child, in Newick notation.

    `parent` and `child` are numbers of nodes, and `heights` contains the height of each node.
    """
    # With 12 significant digits, the rounding error of the difference is not visible. More digits
    # would make no difference in a drawing.
    return f":{heights[parent] - heights[child]:.12g}"


def _quote_name(name: str) -> str:
    """Return a name in Newick notation.

    A name is put in single quotes unless it consists only of ASCII letters, digits, ".", "+" and
    "-". Each single quote in the name is doubled.
    """
    if _UNQUOTED_NAME.fullmatch(name):
        return name
    return "'" + _replace_whitespace(name).replace("'", "''") + "'"
