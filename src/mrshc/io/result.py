"""The result of a clustering, and functions that write a result to files and load it again."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.enrichment import gene_name
from mrshc.errors import UserError
from mrshc.exports import gct
from mrshc.io.result_files import (
    BRANCHES_FILE,
    CONSENSUS_FILE,
    GENE_SETS_FILE,
    LINKAGE_COLUMNS,
    read_about,
    read_json,
    read_tables,
    reading,
)
from mrshc.io.streams import FlawError
from mrshc.methods import METHODS
from mrshc.shell.text_cleaning import guard_formula
from mrshc.shell.wording import Sentence, Setting, format_count

FORMAT = "mrshc result"
# This number must be increased when the meaning of a file changes. Results in other versions of the
# format cannot be loaded.
FORMAT_VERSION = 8

RESULT_FILE = "result.json"
TABLES = (
    *("centers.csv", "clusters.csv", "features.csv", "linkage.csv", "markers.csv"),
    *("selected.gct", "silhouettes.csv", BRANCHES_FILE, CONSENSUS_FILE, GENE_SETS_FILE),
)
# Silhouettes are stored for cuts into at most this many clusters, since plots do not have more than
# this many colours that are easy to distinguish.
MAX_CUTS = 20
# Features are ranked by the differences of clusters with at least this many samples. In a cluster
# of one or two samples, the features with the largest differences are those in which these samples
# happen to be extreme. The value is not tuned: the clusters do not depend on it.
MIN_RANKED_SAMPLES = 3
# Largest number of names in a message, so that the message remains one sentence.
_MAX_LISTED_NAMES = 5
# Proportion of missing values above which users are warned. If more than a third of the values are
# missing, too few clusters are found (docs/guide/missing-values.md). The limit was chosen well
# below a third and is not tuned.
_MAX_MISSING_SHARE = 0.2
# Largest number of annotations that are drawn as bars next to a tree, and largest number of levels
# of a text annotation that is drawn. With more bars or levels, the legend would take up more space
# than the tree.
_MAX_BARS, _MAX_LEVELS = 5, 20


class ResultError(UserError):
    """Raised if a folder has no result that can be read; the message states the reason."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """The result of a clustering, with names and annotations of samples and features.

    A result has the attributes of a fitted estimator that plots need, under the same names. The
    functions of :mod:`mrshc.plotting` therefore accept a result in place of an estimator.
    `load_result` reads a result from a folder that the command line has written.

    Parameters
    ----------
    about : dict
        The content of result.json: parameters, properties of the data, and
        the choices of the method with their reasons.
    samples : DataFrame of shape (n_samples, n_columns)
        One row for each sample. The columns are the cluster and the position among the leaves of
        the tree (both counted from 1), the silhouette width, and the annotations. Clusters are
        numbered in the order of the leaves, from left to right. For robust fits, the column
        "outlying" states whether a sample is outlying. If the stability was computed, "jaccard" is
        the mean Jaccard index of the cluster of the sample. If the significance of the branches was
        computed, "significant_cluster" is the cluster of the sample in the tree that is divided at
        the significant nodes only (counted from 1; missing for samples of small branches above a
        significant node). The index contains the names of the samples.
    features : DataFrame of shape (n_features, n_columns)
        One row for each feature. The columns are the annotations, the position in the data, whether
        the feature is selected, the effect size, the loadings, and the means in the clusters. If
        there are several clusters, the scores ("score_cluster_1" and so on) are the difference
        between the mean of the cluster and that of all other samples, divided by the pooled
        standard deviation within these two groups: the `effect_size` of the markers, here for all
        features. A score is infinite if the feature does not vary within the groups. With
        the method association, there are also q-values and a column that states
        whether the feature is associated with the clusters. If the stability was computed,
        "selection_frequency" is the share of the subsamples in which the feature was selected. The
        index contains the names of the features. The selected features come first. Within the
        selected features and within the other features, rows are sorted by decreasing effect size.
    selected : DataFrame of shape (n_samples, n_features_selected)
        Values of the selected features, with NaN for missing values.
    silhouettes : DataFrame of shape (n_samples, n_cuts)
        Silhouette widths of the samples for cuts of the tree into 2, 3, ... clusters (at most 20),
        in columns cut_2, cut_3, ...
    markers : DataFrame of shape (n_markers, n_columns)
        Features that differ, with a q-value of at most 0.05, between a cluster and all other
        samples or between the two branches of a split. The columns are those of the method
        `markers` of the estimators, the annotations of the feature, and "direction", which is "up"
        if the mean is higher inside than outside, "down" if it is lower, and "none" if both means
        are equal. Clusters are counted from 1.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        The tree, in the format of `scipy.cluster.hierarchy.linkage`.
    centers : DataFrame of shape (n_needed_features, n_columns)
        One row for each feature that is needed to assign new samples to clusters; the index
        contains the names. "used" states whether clusters are compared in the feature, and
        "center_1", "center_2", ... contain the centres of the clusters; see `predict`. "weight" is
        the weight of the feature in distances, and "lower" and "upper" are the limits at which a
        robust fit winsorises values (missing if there are none). Other features are needed only by
        preprocessing: "n_steps" is the number of steps that a feature passed, and columns such as
        "step_3_mean" contain values that a step learnt. "n_same" is the number of features that
        have the same name in the file.
    branches : DataFrame of shape (n_samples - 1, n_columns) or None, default=None
        One row for each node of the tree, from the root downwards: a node comes after its
        ancestors. It is None unless the stability or the significance of the branches was computed.
        The columns "node" (number of the node as in scipy and in `markers`: n_samples plus the row
        of the linkage matrix), "n_samples" and "height" are always present. "support" is the
        `branch_support` of :func:`mrshc.stability`; it is missing for the root. "statistic",
        "p_value", "threshold", "significant", "agreement" and "n_simulations" are those of
        :func:`mrshc.branch_significance`; they are missing for nodes that were not tested.
    consensus : ndarray of shape (n_samples, n_samples) or None, default=None
        The `consensus` of :func:`mrshc.stability`, in the order of `samples`; None if the stability
        was not computed.
    gene_sets : DataFrame or None, default=None
        The table of :func:`mrshc.gene_set_enrichment`, with clusters counted from 1; None if no
        gene sets were given.

    Examples
    --------
    Load the result from a folder that the command line has written:

    >>> from mrshc.io import load_result
    >>> result = load_result("results")  # doctest: +SKIP
    >>> result.samples["cluster"].value_counts()  # doctest: +SKIP
    """

    about: dict[str, Any]
    samples: pd.DataFrame
    features: pd.DataFrame
    selected: pd.DataFrame
    silhouettes: pd.DataFrame
    markers: pd.DataFrame
    linkage_matrix_: NDArray[np.float64]
    centers: pd.DataFrame
    branches: pd.DataFrame | None = None
    consensus: NDArray[np.float64] | None = None
    gene_sets: pd.DataFrame | None = None

    @property
    def genes(self) -> dict[str, Any]:
        """Settings that concern genes: "column", "url" and "sets", each of which may be None.

        "column" is the annotation of the features that contains their genes, "url" the template of
        a web address for each gene, and "sets" describes the gene sets that were given.
        """
        value: dict[str, Any] = self.about.get("genes", {"column": None, "url": None, "sets": None})
        return value

    @property
    def gene_names(self) -> pd.Series:
        """Gene of each feature, in the order of `features`; None for features without a gene.

        The genes are the names of the features unless an annotation with the genes was given.
        """
        column = self.genes["column"]
        values = self.features.index if column is None else self.features[column]
        return pd.Series([gene_name(v) for v in values], index=self.features.index, dtype=object)

    @property
    def feature_labels(self) -> pd.Series:
        """Text that names each feature in plots and sentences, in the order of `features`.

        It is the gene of the feature if an annotation with the genes was given. If several features
        have this gene, the name of the feature follows in parentheses. It is the name of the
        feature if the feature has no gene.
        """
        names = [str(name) for name in self.features.index]
        labels = names
        if self.genes["column"] is not None:
            short = [gene or name for gene, name in zip(self.gene_names, names, strict=True)]
            n_uses = Counter(short)
            labels = [
                text if n_uses[text] == 1 or text == name else f"{text} ({name})"
                for text, name in zip(short, names, strict=True)
            ]
        return pd.Series(labels, index=self.features.index, dtype=object)

    @property
    def ranked_clusters(self) -> list[int]:
        """Clusters, counted from 1, by whose differences features are ranked.

        They are the clusters with at least three samples that are not outlying, or all clusters if
        there are none.
        """
        large = np.flatnonzero(self._cluster_sizes() >= MIN_RANKED_SAMPLES) + 1
        return large.tolist() if large.size else [*range(1, self.n_clusters_ + 1)]

    def _cluster_sizes(self) -> NDArray[np.intp]:
        """Return the number of samples of each cluster, without outlying samples."""
        usual = np.delete(self.labels_, self.outlier_samples_)
        return np.bincount(usual, minlength=self.n_clusters_)

    @property
    def significance(self) -> dict[str, Any] | None:
        """Settings and number of clusters of the significance test; None if it was not made.

        The keys are "alpha", "n_simulations", "statistic" (name of the test statistic) and
        "n_clusters" (number of clusters if the tree is divided at the significant nodes only).
        """
        value: dict[str, Any] | None = self.about.get("significance")
        return value

    @property
    def stability(self) -> dict[str, Any] | None:
        """Settings of the resampling and stability of the clusters; None if it was not made.

        The keys are "n_resamples", "fraction" and "cluster_jaccard" (list with the mean Jaccard
        index of each cluster; None if it is not defined).
        """
        value: dict[str, Any] | None = self.about.get("stability")
        return value

    @property
    def sample_names_in_(self) -> NDArray[Any]:
        """Names of the samples, an array of shape (n_samples,).

        Plots use the names to match annotations to samples.
        """
        return self.samples.index.to_numpy()

    @property
    def labels_(self) -> NDArray[np.intp]:
        """Cluster of each sample, counted from 0 as in estimators; array of shape (n_samples,)."""
        return self.samples["cluster"].to_numpy(dtype=np.intp) - 1

    @property
    def linkage(self) -> str | None:
        """Linkage of the tree; None if the method has no parameter with this name."""
        value: str | None = self.about["parameters"].get("linkage")
        return value

    @property
    def metric(self) -> str | None:
        """Distance between samples; None if the method has no parameter with this name."""
        value: str | None = self.about["parameters"].get("metric")
        return value

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        return int(self.about["chosen"]["n_clusters"])

    def __repr__(self) -> str:
        chosen, data = self.about["chosen"], self.about["data"]
        return (
            f"Result({self.about['method']}: {len(self.samples):,} samples, "
            f"{chosen['n_features']:,} of {data['n_features']:,} features, "
            f"{format_count(self.n_clusters_, 'cluster')})"
        )

    @property
    def n_clusters_given(self) -> int | None:
        """Number of clusters that the user gave; None if the user did not give a number."""
        given = self.about["parameters"].get("n_clusters")
        return given if isinstance(given, int) else None

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the cluster of new samples: the one whose centre is nearest.

        New samples are preprocessed like the data of the result, with the parameters learnt from
        these data.

        Parameters
        ----------
        X : DataFrame of shape (n_new_samples, n_features) or Table
            New samples, before preprocessing; NaN marks a missing value. Features are matched by
            name. Features that are not needed are ignored.

        Returns
        -------
        labels : ndarray of shape (n_new_samples,)
            Cluster of each sample, counted from 0 as in `labels_`.
        """
        from mrshc.io.prediction import predict_clusters

        return predict_clusters(self, X)["cluster"].to_numpy(dtype=np.intp) - 1

    @property
    def n_features_selected_(self) -> int:
        """Number of selected features."""
        return self.selected.shape[1]

    @property
    def search_results_(self) -> dict[str, NDArray[Any]]:
        """The table of candidates, as one array for each column; it may be empty."""
        return columns_from_rows(self.about["search"])

    @property
    def split_tests_(self) -> dict[str, NDArray[Any]]:
        """The gap tests of the nodes, as in :class:`mrshc.MrSHC`; empty if no node was tested."""
        rows = self.about["splits"]
        # The columns are first filled as arrays of objects. The column "reference_drops" contains
        # arrays, whose lengths may differ between nodes.
        table = {name: np.empty(len(rows), dtype=object) for name in (rows[0] if rows else ())}
        for name, column in table.items():
            for i, row in enumerate(rows):
                column[i] = np.array(row[name]) if name == "reference_drops" else row[name]
        return {
            name: column if name == "reference_drops" else np.array(column.tolist())
            for name, column in table.items()
        }

    @property
    def outlier_samples_(self) -> NDArray[np.intp]:
        """Positions of the outlying samples; empty if the fit did not search for outliers."""
        outliers = set(self.about["outliers"])
        return np.flatnonzero([name in outliers for name in self.samples.index])

    @property
    def chosen_candidate(self) -> dict[str, Any]:
        """The row of the chosen candidate in the search table; empty if there are no candidates."""
        return next((row for row in self.about["search"] if row["chosen"]), {})

    @property
    def starts_from_several_sets(self) -> bool:
        """Whether several start sets were replaced by associated features.

        The rank and the loadings are then those of the start set that led to the result.
        """
        return "strength" in self.chosen_candidate

    @property
    def n_features_before_refinement(self) -> int:
        """Number of features that sparse components selected.

        With the method association, it is that of the start set that led to the result.
        """
        if self.starts_from_several_sets:
            # The table of candidates has the numbers of features after the refinement. A feature
            # is in the start set if one of its loadings is not zero.
            return int((self.loadings != 0).any(axis=1).sum())
        return int(self.chosen_candidate.get("n_features", self.n_features_selected_))

    @property
    def has_components(self) -> bool:
        """Whether the search compared sets of features that sparse components selected."""
        return "rank" in self.chosen_candidate

    @property
    def n_missing(self) -> int:
        """Number of missing values in the selected features."""
        return int(self.selected.isna().to_numpy().sum())

    @property
    def sample_annotations(self) -> pd.DataFrame:
        """Annotations of the samples, of shape (n_samples, n_annotations)."""
        return self.samples[[entry["name"] for entry in self.about["annotations"]["samples"]]]

    @property
    def feature_annotations(self) -> pd.DataFrame:
        """Annotations of the features, such as descriptions; (n_features, n_annotations)."""
        return self.features[[entry["name"] for entry in self.about["annotations"]["features"]]]

    @property
    def caveats(self) -> list[str]:
        """Warnings about properties of the result that limit the interpretation of the clusters."""
        sentences = list(self.about["warnings"])
        chosen = self.chosen_candidate
        # With several start sets, the result does not depend on the exact size of one of them.
        if chosen.get("reached") is False and not self.starts_from_several_sets:
            sentences.append(
                f"No bound gives exactly {chosen['n_features_target']:,} features: the closest "
                f"number, {chosen['n_features']:,}, was taken."
            )
        if outliers := self.about["outliers"]:
            sentences.append(outlier_message(outliers))
        if self.n_missing > _MAX_MISSING_SHARE * self.selected.size:
            sentences.append(
                f"{self.n_missing / self.selected.size:.0%} of the cells of the selected features "
                "are missing: distances between samples are estimated from the observed cells."
            )
        return [*sentences, *self._small_cluster_caveats()]

    def _small_cluster_caveats(self) -> list[str]:
        """Return a list with one sentence on the samples of clusters with one or two samples.

        The list is empty if there are no such clusters, or if there is only one cluster.
        """
        is_small = (self._cluster_sizes() < MIN_RANKED_SAMPLES)[self.labels_]
        is_small[self.outlier_samples_] = False
        if self.n_clusters_ == 1 or not is_small.any():
            return []
        names = [str(name) for name in self.samples.index[is_small]]
        subject = f"Samples {_list_names(names)} are in clusters"
        if len(names) == 1:
            subject = f"Sample {names[0]} is in a cluster"
        advice: str = ""
        if not self.about["parameters"].get("robust"):
            has_option = "robust" in METHODS[self.about["method"]].parameters
            advice = Sentence(
                "; {method}{robust} sets outlying samples apart",
                method="" if has_option else "the method association with ",
                robust=Setting("robust", True),
            )
        return [
            Sentence(
                "{subject} of fewer than {least} samples and may be outlying{advice}.",
                subject=subject,
                least=MIN_RANKED_SAMPLES,
                advice=advice,
            )
        ]

    @property
    def annotations_to_plot(self) -> dict[str, Any]:
        """Annotations to plot, by name: the true classes, then other annotations; five at most.

        The other annotations are numeric annotations and text annotations with at most 20 levels,
        in the order of the table.
        """
        annotations = self.sample_annotations
        truth = (self.about["scores"] or {}).get("truth")
        # Numbers are drawn on a colour scale, but text needs a separate colour for each level.
        readable = [
            name
            for name in annotations
            if annotations[name].dtype.kind in "fi" or annotations[name].nunique() <= _MAX_LEVELS
        ]
        ordered = [*(name for name in annotations if name == truth), *readable]
        chosen = list(dict.fromkeys(ordered))[:_MAX_BARS]
        # The array of a column keeps whole numbers with missing values.
        return {str(name): annotations[name].array for name in chosen}

    @property
    def loadings(self) -> pd.DataFrame:
        """Loadings of the features, or their weights in SHC, with one column for each component."""
        # Annotations are excluded, since an annotation of the input may have a title such as
        # "loading_1".
        known = {entry["name"] for entry in self.about["annotations"]["features"]}
        names = [name for name in self.features if re.fullmatch(r"loading_\d+", str(name))]
        return self.features[[name for name in names if name not in known]]


def outlier_message(names: list[str]) -> str:
    """Return a sentence that names the first few outlying samples and counts the others."""
    listed = _list_names(names)
    subject = f"Sample {listed} is" if len(names) == 1 else f"Samples {listed} are"
    return f"{subject} outlying: set apart, and attached to the nearest cluster at the end."


def _list_names(names: list[str]) -> str:
    """Return the first few names as text, and the number of the others."""
    n_others = len(names) - _MAX_LISTED_NAMES
    rest = f" and {n_others} more" if n_others > 0 else ""
    return ", ".join(names[:_MAX_LISTED_NAMES]) + rest


def columns_from_rows(rows: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns of a table by title, given the table as a list of rows."""
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}


def write_result(result: Result, folder: Path) -> None:
    """Write a result to files, from which `load_result` can load the result again."""
    tree = pd.DataFrame(result.linkage_matrix_, columns=LINKAGE_COLUMNS)
    tree = tree.astype({"left": int, "right": int, "size": int})
    _write_csv(result.samples, folder / "clusters.csv", index_label="sample")
    _write_csv(result.features, folder / "features.csv", index_label="feature")
    _write_csv(pd.DataFrame(result.about["search"]), folder / "search.csv")
    _write_csv(result.silhouettes, folder / "silhouettes.csv", index_label="sample")
    _write_csv(result.markers, folder / "markers.csv")
    _write_csv(tree, folder / "linkage.csv")
    _write_csv(result.centers, folder / "centers.csv", index_label="feature")
    (folder / "selected.gct").write_bytes(_format_selected(result).encode())
    if result.branches is not None:
        _write_csv(result.branches, folder / BRANCHES_FILE)
    if result.consensus is not None:
        names = result.samples.index
        consensus = pd.DataFrame(result.consensus, index=names, columns=names)
        _write_csv(consensus, folder / CONSENSUS_FILE, index_label="sample")
    if result.gene_sets is not None:
        _write_csv(result.gene_sets, folder / GENE_SETS_FILE)
    # result.json is written last: without it, a folder holds no result.
    text = json.dumps(result.about, indent=2, allow_nan=False, ensure_ascii=False)
    # The text is written as bytes, since line breaks in text mode would depend on the system.
    (folder / RESULT_FILE).write_bytes((text + "\n").encode())


def _write_csv(table: pd.DataFrame, path: Path, *, index_label: str | None = None) -> None:
    """Write a table as CSV; see `format_csv`. The file is compressed if its name ends in ".gz"."""
    content = format_csv(table, index_label=index_label).encode()
    if path.suffix == ".gz":
        # Without the time of writing, equal tables are equal files.
        content = gzip.compress(content, mtime=0)
    path.write_bytes(content)


def format_csv(table: pd.DataFrame, *, index_label: str | None = None) -> str:
    """Return a table as text in CSV format.

    An apostrophe is put in front of text that a spreadsheet would read as a formula.
    Loading a result removes it.
    """
    table = _guard_formulas(table)
    has_index = index_label is not None
    options: Any = {"index": has_index, "index_label": index_label, "lineterminator": "\n"}
    text: str = table.to_csv(**options)
    # Other programs read a carriage return as the end of a row, unless it is quoted. By default,
    # pandas does not quote text that contains a carriage return.
    if "\r" in text:
        text = table.to_csv(**options, quoting=csv.QUOTE_NONNUMERIC)
    return text


def _guard_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before each text that a spreadsheet reads as a formula."""

    def guard(value: Any) -> Any:
        return guard_formula(value) if isinstance(value, str) else value

    texts = [name for name in table if table[name].dtype.kind not in "fiub"]
    guarded = table.assign(**{name: table[name].map(guard) for name in texts})
    return guarded.rename(index=guard, columns=guard)


def _format_selected(result: Result) -> str:
    """Return the selected features and their annotations as text in GCT format."""
    features = result.features.loc[result.selected.columns]
    titles = list(result.feature_annotations)
    # This column exists only if the stability was computed.
    frequency = [name for name in ("selection_frequency",) if result.stability is not None]
    annotations = features[[*titles, "effect_size", *frequency, *result.loadings.columns]]
    # The column "outlying" exists only if the fit included a search for outliers.
    flags = [name for name in ("cluster", "outlying") if name in result.samples]
    samples = result.samples[[*flags, *result.sample_annotations.columns]]
    return gct(
        result.selected.to_numpy(),
        feature_names=list(result.selected.columns),
        sample_names=list(result.selected.index),
        feature_annotations={str(name): list(annotations[name]) for name in annotations},
        sample_annotations={str(name): list(samples[name]) for name in samples},
    )


def load_result(folder: str | os.PathLike[str]) -> Result:
    """Load a result that was written to a folder.

    It is checked that the files have the shapes, names and tree of one result.

    Parameters
    ----------
    folder : str or path
        A folder that the command line has written.

    Returns
    -------
    Result
        The result. The functions of :mod:`mrshc.plotting` accept it in place of a fitted estimator.

    Examples
    --------
    Load the result from a folder that the command line has written:

    >>> from mrshc.io import ResultError, load_result
    >>> result = load_result("results")  # doctest: +SKIP

    If the folder does not contain a result, an error is raised:

    >>> try:
    ...     load_result(".")
    ... except ResultError as error:
    ...     print(str(error).partition(":")[0])
    . holds no result
    """
    folder = Path(folder)
    path = folder / RESULT_FILE
    if not path.exists():
        raise ResultError(
            f"{folder} holds no result: there is no {RESULT_FILE} in it. Name a folder that holds "
            "the result of a clustering."
        )
    try:
        with reading(RESULT_FILE):
            _refuse_other_format(read_json(path, ()), folder)
            about = read_about(path)
        return Result(about=about, **read_tables(folder, about))
    except FlawError as flaw:
        raise ResultError(f"{folder} is not a complete result: {flaw}. Make it again.") from None


def _refuse_other_format(about: dict[str, Any], folder: Path) -> None:
    if about.get("format") != FORMAT:
        raise ResultError(f"{folder / RESULT_FILE} does not describe a result of mrshc.")
    if (version := about.get("format_version")) != FORMAT_VERSION:
        raise ResultError(
            f"{folder} is written in version {version} of the format, this mrshc reads version "
            f"{FORMAT_VERSION}. Install a newer mrshc, or make the result again."
        )
