"""Data that the scripts of a page draw in the browser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.outliers import winsorise
from mrshc.core.trees import Tree
from mrshc.enrichment import GENE_SEPARATOR
from mrshc.io.result import MAX_CUTS, Result, columns_from_rows
from mrshc.methods import METHODS
from mrshc.plotting.branch_marks import format_p_value, result_support, result_tests
from mrshc.plotting.colours import annotation_bars, cluster_colours, outlier_bars
from mrshc.plotting.dendrogram_layout import height_label
from mrshc.plotting.heatmap_data import feature_tree, standardised, usual_samples
from mrshc.plotting.search_explanation import search_story
from mrshc.report.branch_names import higher_features
from mrshc.report.gene_sets_section import marker_lists, max_rows_per_list
from mrshc.report.number_packing import encode_base64, pack_values

# Largest number of rows of the table of markers. The table is larger only if there are more than
# 200 contrasts, since each contrast may have five rows for each direction. 2000 rows take about
# 300 kB, so the page stays small enough for e-mail.
_MAX_MARKERS = 2000
# Largest number of samples whose consensus is drawn. Each of 300 columns is about two pixels wide
# on a screen, and the encoded matrix takes 120 kB.
MAX_CONSENSUS_SAMPLES = 300
# Byte that encodes a missing value of the consensus; values are encoded as percentages.
_MISSING_CONSENSUS = 255


def result_data(result: Result) -> dict[str, Any]:
    """Return the data that the scripts of the report of a result draw."""
    selected, features = _selected_by_effect(result)
    # Outlying samples would distort the correlations on which the tree of features is based.
    usual = usual_samples(selected, result.outlier_samples_)
    return {
        "kind": "result",
        "samples": _sample_data(result),
        "features": {
            "names": [str(name) for name in features.index],
            "labels": _label_data(result, features.index),
            "annotations": _annotation_columns(result.feature_annotations.loc[features.index]),
            "effect": _json_numbers(features["effect_size"]),
            "loadings": [_json_numbers(features[name]) for name in result.loadings.columns],
            "means": [
                _json_numbers(features[f"mean_cluster_{k}"])
                for k in range(1, result.n_clusters_ + 1)
            ],
            "q_values": _json_numbers(features["q_value"]) if result.about["supported"] else None,
            "frequency": _json_numbers(features["selection_frequency"])
            if "selection_frequency" in features
            else None,
            # A single feature has no tree.
            "tree": feature_tree(usual).tolist() if usual.shape[1] > 1 else [],
        },
        "values": _feature_values(result, selected),
        "linkage": result.linkage_matrix_.tolist(),
        "branches": _branch_data(result),
        "consensus": _consensus_data(result),
        "height_label": height_label(result),
        "missing": result.n_missing > 0,
        "markers": _marker_data(result),
        "gene_sets": _gene_set_data(result),
        "links": _link_data(result, features.index),
        # Colours for the largest number of clusters that the slider offers.
        "colours": list(cluster_colours(MAX_CUTS)),
        "curves": curve_data(result.search_results_),
        "splits": result.about["splits"],
        "loading_name": METHODS[result.about["method"]].loading_name,
    }


def _label_data(result: Result, features: pd.Index) -> list[str] | None:
    """Return the labels of features in figures; None if they are the names of the features."""
    if result.genes["column"] is None:
        return None
    labels: list[str] = result.feature_labels.loc[features].tolist()
    return labels


def _sample_data(result: Result) -> dict[str, Any]:
    """Return the names, leaf order, clusters, silhouette widths and annotations of the samples."""
    n = len(result.samples)
    bars = (*outlier_bars(result, n), *annotation_bars(result.annotations_to_plot, n))
    return {
        "names": [str(name) for name in result.samples.index],
        "order": Tree(linkage_matrix=result.linkage_matrix_).leaf_order.tolist(),
        "labels": result.labels_.tolist(),
        "silhouette": _json_numbers(result.samples["silhouette"]),
        # The encoded matrix has one row for each number of clusters, starting with two.
        "silhouettes": encode_base64(result.silhouettes.to_numpy().T, "<f4"),
        "outlying": result.outlier_samples_.tolist(),
        # Clusters of the tree that is divided at significant nodes only; -1 for no cluster.
        "significant": (result.samples["significant_cluster"].fillna(0) - 1).tolist()
        if "significant_cluster" in result.samples
        else None,
        "annotations": _annotation_columns(result.sample_annotations),
        # Name of the annotation with the known classes.
        "truth": (result.about["scores"] or {}).get("truth"),
        "bars": [asdict(bar) for bar in bars],
    }


def _branch_data(result: Result) -> dict[str, Any]:
    """Return the support of each row of the linkage matrix, the tests of nodes, and their markers.

    Support and tests are None if they were not computed. Nodes of tests are numbered as in scipy.
    """
    tests, support = result_tests(result), result_support(result)
    rows = None
    if tests is not None:
        rows = [
            {
                "node": len(result.samples) + int(tests["node"][i]),
                "text": format_p_value(tests["p_value"][i]),
                "threshold": f"{tests['threshold'][i]:.3g}",
                "significant": bool(tests["significant"][i]),
                "agreement": agreement,
            }
            for i, agreement in enumerate(_json_numbers(tests["agreement"]))
        ]
    return {
        "support": _json_numbers_or_none(support),
        "tests": rows,
        # Pairs of a node and the strongest markers that are higher in it than in its sibling.
        "higher": [[node, names] for node, names in higher_features(result).items()],
    }


def _consensus_data(result: Result) -> str | None:
    """Return the consensus in percent, with samples in the order of the data, as encoded bytes.

    Return None if it was not computed, or if there are too many samples for the page.
    """
    if result.consensus is None or len(result.samples) > MAX_CONSENSUS_SAMPLES:
        return None
    percentages = np.nan_to_num(np.round(100 * result.consensus), nan=_MISSING_CONSENSUS)
    return encode_base64(percentages, "u1")


def _feature_values(result: Result, selected: pd.DataFrame) -> dict[str, Any]:
    """Return the encoded values of the selected features, and the values that the fit changed.

    A robust fit winsorises extreme values and excludes outlying samples. The page shows the values
    before these changes, but computes means and effect sizes from the values that the fit used.
    Values that the fit did not change are stored only once.
    """
    X = selected.to_numpy(dtype=np.float64)
    outlying = result.outlier_samples_
    packed = pack_values(X, outlying=outlying)
    colours = standardised(X, outlying=outlying)
    fitted = values_of_fit(result, X)
    # NaN is not equal to NaN, so values that are missing in both arrays must be excluded.
    changed = (fitted != X) & ~(np.isnan(fitted) & np.isnan(X))
    return {
        "cells": encode_base64(packed.cells, "<f4"),
        "centre": packed.centre.tolist(),
        "scale": packed.scale.tolist(),
        # Features that vary only by rounding error are drawn as constant features, as in
        # heatmap.png.
        "constant": np.flatnonzero((np.nan_to_num(colours) == 0).all(axis=0)).tolist(),
        "changed": {
            "positions": encode_base64(np.flatnonzero(changed), "<u4"),
            "cells": encode_base64(((fitted - packed.centre) / packed.scale)[changed], "<f4"),
        },
    }


def values_of_fit(result: Result, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values from which the effect sizes and means in features.csv were computed.

    `X` contains the values of the selected features. In the returned array, the values of outlying
    samples are NaN and, if the fit was robust, extreme values are winsorised.
    """
    robust = result.about["parameters"].get("robust")
    fitted = winsorise(X, result.outlier_samples_) if robust else X.copy()
    fitted[result.outlier_samples_] = np.nan
    return fitted


def _selected_by_effect(result: Result) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the values of the selected features, and the rows of these features in features.csv.

    Both tables list the features in decreasing order of effect size.
    """
    selected = set(result.selected.columns)
    names = [name for name in result.features.index if name in selected]
    return result.selected[names], result.features.loc[names]


@dataclass(frozen=True, kw_only=True, eq=False)
class ContrastMarkers:
    """The markers of one contrast, which is a comparison of two groups of samples.

    Attributes
    ----------
    kind : {"cluster", "split"}
        Whether the groups are one cluster and all other samples, or the two branches of a split.
    inside, outside : str
        Numbers of the clusters in the first and in the second group, separated by commas.
    rows : DataFrame
        Rows of the table of markers, in decreasing order of the absolute effect size.
    """

    kind: str
    inside: str
    outside: str
    rows: pd.DataFrame


def marker_contrasts(result: Result) -> list[ContrastMarkers]:
    """Return the contrasts of all clusters and of the splits that have markers.

    The contrast of a cluster compares the cluster with all other samples. The contrast of a split
    compares the two branches of the split.
    """
    # Clusters without markers are included, so that the page can state that these clusters have no
    # markers. Splits without markers are left out, since there are many such splits.
    keys = ["contrast", "inside", "outside"]
    rows_by_contrast = dict(list(result.markers.groupby(keys, sort=False)))
    numbers = [str(k) for k in range(1, result.n_clusters_ + 1)]
    clusters = [("cluster", k, ", ".join(n for n in numbers if n != k)) for k in numbers]
    splits = [key for key in rows_by_contrast if key[0] == "split"]
    return [
        ContrastMarkers(
            kind=kind,
            inside=inside,
            outside=outside,
            rows=rows_by_contrast.get((kind, inside, outside), result.markers.iloc[:0]),
        )
        for kind, inside, outside in [*clusters, *splits]
    ]


def max_markers_per_direction(n_contrasts: int) -> int:
    """Return the largest number of markers of a contrast on the page, up and down separately."""
    # The number is never less than five, so that the page is useful even if there are hundreds of
    # contrasts.
    return max(5, _MAX_MARKERS // (2 * n_contrasts))


def _marker_data(result: Result) -> dict[str, Any]:
    """Return the table of the strongest markers by columns, and the contrast of each row.

    The dictionary is empty if there is only one cluster.
    """
    if result.n_clusters_ == 1:
        return {}
    contrasts = marker_contrasts(result)
    n_most = max_markers_per_direction(len(contrasts))
    # The strongest markers of both directions are kept, since all of the strongest markers may have
    # the same direction.
    heads = [contrast.rows.groupby("direction").head(n_most) for contrast in contrasts]
    shown = pd.concat(heads)
    feature, *others = [
        {
            "name": name,
            "numeric": numeric,
            "values": _marker_column_values(shown[name], numeric=numeric),
        }
        for name, numeric in _MARKER_COLUMNS.items()
    ]
    annotations = _annotation_columns(shown[list(result.feature_annotations)])
    return {
        "contrast_index": [i for i, head in enumerate(heads) for _ in range(len(head))],
        "columns": [feature, *annotations, *others],
    }


def _gene_set_data(result: Result) -> dict[str, Any] | None:
    """Return the table of gene sets by columns, and the list of markers of each row.

    Return None if no gene sets were given.
    """
    if result.gene_sets is None:
        return None
    lists = [rows for _, rows in marker_lists(result)]
    heads = [rows.head(max_rows_per_list(len(lists))) for rows in lists]
    shown = pd.concat(heads)
    return {
        "list_index": [i for i, head in enumerate(heads) for _ in range(len(head))],
        "columns": [
            {
                "name": name,
                "numeric": numeric,
                "values": _marker_column_values(shown[name], numeric=numeric),
            }
            for name, numeric in _GENE_SET_COLUMNS.items()
        ],
        "separator": GENE_SEPARATOR,
    }


def _link_data(result: Result, features: pd.Index) -> dict[str, Any] | None:
    """Return the template of addresses and the gene of each feature; None without a template.

    Only the genes of the given features and of the markers are included, since there may be many
    others.
    """
    if result.genes["url"] is None:
        return None
    shown = dict.fromkeys([*features, *result.markers["feature"]])
    return {"url": result.genes["url"], "genes": result.gene_names.loc[list(shown)].to_dict()}


# Columns of the table of gene sets from left to right. The value is True if the column is numeric.
_GENE_SET_COLUMNS = {
    "gene_set": False,
    "description": False,
    "n_common": True,
    "expected": True,
    "n_set": True,
    "p_value": True,
    "q_value": True,
    "genes": False,
    "cluster": True,
    "direction": False,
    "n_markers": True,
    "n_tested": True,
}
# Columns of the table of markers from left to right; the most informative columns come first. The
# value is True if the column is numeric. The annotations of the features follow their names.
_MARKER_COLUMNS = {
    "feature": False,
    "direction": False,
    "effect_size": True,
    "mean_inside": True,
    "mean_outside": True,
    "q_value": True,
    "p_value": True,
    "selected": False,
    "contrast": False,
    "inside": False,
    "outside": False,
    "n_inside": True,
    "n_outside": True,
    "node": True,
}


def _marker_column_values(values: pd.Series, *, numeric: bool) -> list[Any]:
    """Return a column of the table of markers as a list of numbers or of texts, for JSON."""
    if numeric:
        return _json_numbers(values)
    flags = {True: "yes", False: "no"}
    return [flags[bool(v)] if values.dtype == bool else str(v) for v in values]


def comparison_data(about: dict[str, Any]) -> dict[str, Any]:
    """Return the data that the scripts of the report of a comparison draw."""
    n = len(about["samples"])
    bars = annotation_bars(about["annotations"], n)
    return {
        "kind": "comparison",
        "samples": {
            "names": about["samples"],
            "bars": [asdict(bar) for bar in bars],
            "annotations": [
                {"name": name, "values": values} for name, values in about["annotations"].items()
            ],
        },
        "methods": [
            {
                "name": name,
                "linkage": method["linkage"],
                "order": _linkage_leaf_order(method["linkage"]),
                # `outlier_bars` expects a model, but uses only its attribute `outlier_samples_`.
                "bars": [
                    asdict(bar)
                    for bar in outlier_bars(SimpleNamespace(outlier_samples_=method["outliers"]), n)
                ],
                "curves": curve_data(columns_from_rows(method["search"])),
            }
            for name, method in about["methods"].items()
        ],
        "colours": list(cluster_colours(MAX_CUTS)),
        "n_clusters": about["n_clusters"] or 2,
    }


def _linkage_leaf_order(linkage: list[list[float]]) -> list[int]:
    return Tree(linkage_matrix=np.array(linkage)).leaf_order.tolist()


def curve_data(search: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return the curves that explain why a search chose its candidate, as plain data.

    The list is empty if there was no search.
    """
    return [
        asdict(curve)
        | {"values": _json_numbers(curve.values), "errors": _json_numbers_or_none(curve.errors)}
        for curve in (search_story(search).curves if search else ())
    ]


def _annotation_columns(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each column as a dictionary with its name, its values and whether it is numeric.

    Missing values are None.
    """
    return [
        {
            "name": str(name),
            "numeric": frame[name].dtype.kind in "fi",
            "values": _json_numbers(frame[name].to_numpy(dtype=np.float64, na_value=np.nan))
            if frame[name].dtype.kind in "fi"
            else [None if pd.isna(value) else str(value) for value in frame[name]],
        }
        for name in frame.columns
    ]


def _json_numbers(values: Any) -> list[float | None]:
    """Return a list of numbers in double precision, with None for NaN and infinity.

    JSON cannot represent NaN and infinity.
    """
    return [float(v) if np.isfinite(v) else None for v in np.asarray(values, dtype=np.float64)]


def _json_numbers_or_none(values: Any) -> list[float | None] | None:
    return None if values is None else _json_numbers(values)
