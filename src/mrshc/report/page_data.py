"""What the report shows, as plain data: prepared here, drawn in the browser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.robust.outliers import winsorise
from mrshc.core.trees.tree import Tree
from mrshc.io.result import MOST_CUTS, Result, columns
from mrshc.methods import METHODS
from mrshc.plotting.colours import annotation_bars, cluster_colours, outlier_bars
from mrshc.plotting.heatmap_data import feature_tree, standardised, usual_samples
from mrshc.plotting.search_explanation import search_story
from mrshc.report.number_packing import encode_base64, pack_values

# Rows of the table of markers that do not make the page large.
_MAX_MARKERS = 2000


def result_data(result: Result) -> dict[str, Any]:
    """Return what the page of a result draws."""
    selected, features = _selected_by_effect(result)
    usual = usual_samples(selected, result.outlier_samples_)
    tree, n = Tree(linkage_matrix=result.linkage_matrix_), len(result.samples)
    return {
        "kind": "result",
        "samples": {
            "names": [str(name) for name in result.samples.index],
            "order": tree.leaf_order.tolist(),
            "labels": result.labels_.tolist(),
            "silhouette": _json_numbers(result.samples["silhouette"]),
            "silhouettes": encode_base64(result.silhouettes.to_numpy().T, "<f4"),
            "outlying": result.outlier_samples_.tolist(),
            "annotations": _annotation_columns(result.sample_annotations),
            "bars": [
                asdict(bar)
                for bar in (
                    *outlier_bars(result, n),
                    *annotation_bars(result.shown_annotations, n),
                )
            ],
        },
        "features": {
            "names": [str(name) for name in features.index],
            "annotations": _annotation_columns(
                features[[entry["name"] for entry in result.about["annotations"]["features"]]]
            ),
            "effect": _json_numbers(features["effect_size"]),
            "loadings": [_json_numbers(features[name]) for name in result.loadings.columns],
            "means": [
                _json_numbers(features[f"mean_cluster_{k}"]) for k in range(1, result.n_clusters_ + 1)
            ],
            "q_values": _json_numbers(features["q_value"]) if result.about["supported"] else None,
            "tree": feature_tree(usual).tolist() if usual.shape[1] > 1 else [],
        },
        "values": _feature_values(result, selected),
        "linkage": result.linkage_matrix_.tolist(),
        "missing": result.n_missing > 0,
        "markers": _marker_data(result),
        "colours": list(cluster_colours(MOST_CUTS)),
        "curves": curve_data(result.search_results_),
        "splits": result.about["splits"],
        "loading_name": METHODS[result.about["method"]].loading_name,
    }


def _feature_values(result: Result, selected: pd.DataFrame) -> dict[str, Any]:
    """Return the values of the features, and the cells that the fit saw otherwise."""
    X = selected.to_numpy(dtype=np.float64)
    outlying = result.outlier_samples_
    packed = pack_values(X, outlying=outlying)
    colours = standardised(X, outlying=outlying)
    seen = _values_of_fit(result, X)
    changed = (seen != X) & ~(np.isnan(seen) & np.isnan(X))
    return {
        "cells": encode_base64(packed.cells, "<f4"),
        "centre": packed.centre.tolist(),
        "scale": packed.scale.tolist(),
        # Features that differ by rounding errors only have no colours, as in other heat maps.
        "constant": np.flatnonzero((np.nan_to_num(colours) == 0).all(axis=0)).tolist(),
        "changed": {
            "positions": encode_base64(np.flatnonzero(changed), "<u4"),
            "cells": encode_base64(((seen - packed.centre) / packed.scale)[changed], "<f4"),
        },
    }


def _values_of_fit(result: Result, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values that effect sizes and means are computed from, as in features.csv."""
    robust = result.about["parameters"].get("robust")
    seen = winsorise(X, result.outlier_samples_) if robust else X.copy()
    seen[result.outlier_samples_] = np.nan
    return seen


def _selected_by_effect(result: Result) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return values and description of the selected features, those of largest effect first."""
    selected = set(result.selected.columns)
    names = [name for name in result.features.index if name in selected]
    return result.selected[names], result.features.loc[names]


@dataclass(frozen=True, kw_only=True, eq=False)
class ContrastMarkers:
    """What is told apart by some features."""

    kind: str  # "cluster" or "split"
    inside: str  # clusters
    outside: str
    rows: pd.DataFrame  # its markers, the largest effect first


def marker_contrasts(result: Result) -> list[ContrastMarkers]:
    """Return each cluster against all others, marked or not, and the splits that are marked."""
    keys = ["contrast", "inside", "outside"]
    found = dict(list(result.markers.groupby(keys, sort=False)))
    numbers = [str(k) for k in range(1, result.n_clusters_ + 1)]
    clusters = [("cluster", k, ", ".join(n for n in numbers if n != k)) for k in numbers]
    splits = [key for key in found if key[0] == "split"]
    return [
        ContrastMarkers(
            kind=kind,
            inside=inside,
            outside=outside,
            rows=found.get((kind, inside, outside), result.markers.iloc[:0]),
        )
        for kind, inside, outside in [*clusters, *splits]
    ]


def max_markers_per_contrast(n_contrasts: int) -> int:
    """Return how many markers of each contrast the page holds."""
    return max(5, _MAX_MARKERS // n_contrasts)


def _marker_data(result: Result) -> dict[str, Any]:
    """Return the strongest markers; `of` says to which contrast a row belongs."""
    if result.n_clusters_ == 1:
        return {}
    told = marker_contrasts(result)
    heads = [contrast.rows.head(max_markers_per_contrast(len(told))) for contrast in told]
    shown = pd.concat(heads)
    return {
        "contrast_index": [i for i, head in enumerate(heads) for _ in range(len(head))],
        "columns": [
            {"name": name, "numeric": numeric, "values": _marker_column_values(shown[name], numeric=numeric)}
            for name, numeric in _MARKER_COLUMNS.items()
        ],
    }


# In the order in which people read them, and whether they are numbers.
_MARKER_COLUMNS = {
    "feature": False,
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
    if numeric:
        return _json_numbers(values)
    flags = {True: "yes", False: "no"}
    return [flags[bool(v)] if values.dtype == bool else str(v) for v in values]


def comparison_data(about: dict[str, Any]) -> dict[str, Any]:
    """Return what the page of a comparison draws."""
    n = len(about["samples"])
    bars = annotation_bars(about["annotations"], n)
    return {
        "kind": "comparison",
        "samples": {
            "names": about["samples"],
            "bars": [asdict(bar) for bar in bars],
            "annotations": [{"name": n, "values": v} for n, v in about["annotations"].items()],
        },
        "methods": [
            {
                "name": name,
                "linkage": method["linkage"],
                "order": _linkage_leaf_order(method["linkage"]),
                "bars": [
                    asdict(bar)
                    for bar in outlier_bars(SimpleNamespace(outlier_samples_=method["outliers"]), n)
                ],
                "curves": curve_data(columns(method["search"])),
            }
            for name, method in about["methods"].items()
        ],
        "colours": list(cluster_colours(MOST_CUTS)),
        "n_clusters": about["n_clusters"] or 2,
    }


def _linkage_leaf_order(linkage: list[list[float]]) -> list[int]:
    return Tree(linkage_matrix=np.array(linkage)).leaf_order.tolist()


def curve_data(search: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return the curves that tell why a candidate was chosen; none if nothing was tried."""
    return [
        asdict(curve) | {"values": _json_numbers(curve.values), "errors": _json_numbers_or_none(curve.errors)}
        for curve in (search_story(search).curves if search else ())
    ]


def _annotation_columns(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "name": str(name),
            "numeric": frame[name].dtype.kind in "fi",
            "values": _json_numbers(frame[name])
            if frame[name].dtype.kind in "fi"
            else [None if pd.isna(value) else str(value) for value in frame[name]],
        }
        for name in frame.columns
    ]


def _json_numbers(values: Any) -> list[float | None]:
    """Return numbers as JSON holds them, with all their digits; None where there is none."""
    return [float(v) if np.isfinite(v) else None for v in np.asarray(values, dtype=np.float64)]


def _json_numbers_or_none(values: Any) -> list[float | None] | None:
    return None if values is None else _json_numbers(values)
