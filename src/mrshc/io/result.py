"""Results as files: written, read back, and checked by the version of their format."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.selection import SelectionRule, rule_of
from mrshc.errors import UserError
from mrshc.exports import gct
from mrshc.io.result_table_checks import LINKAGE, check_about, naming, read_tables
from mrshc.io.saved_file_reading import check_schema, load_schema, read_json
from mrshc.io.streams import FlawError
from mrshc.utils.text_cleaning import guard_formula

FORMAT = "mrshc result"
# To be raised when files change their meaning; a reader refuses what is newer than itself.
FORMAT_VERSION = 4

ABOUT = "result.json"
SCHEMA = Path(__file__).with_name("result.schema.json")
# Files that are read back, whose checksums are kept.
TABLES = (
    *("clusters.csv", "features.csv", "linkage.csv", "markers.csv", "selected.gct"),
    "silhouettes.csv",
)
# Clusters, up to which the silhouettes of cuts are kept: colours of more cannot be told apart.
MOST_CUTS = 20
# Names in a sentence, and the share of cells from which on their absence is worth one.
_NAMED, _MANY_MISSING = 5, 0.2
# Bars beside a tree, and their levels, that a reader can still take in.
_MOST_BARS, _MOST_LEVELS = 5, 20


class ResultError(UserError):
    """A folder that holds no result, or none that can be read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What a run found.

    It carries the attributes of a fitted estimator under their names, so that the functions of
    :mod:`mrshc.plotting` take either.
    """

    # Parameters, data, what was chosen and why: content of result.json but for the checksums.
    about: dict[str, Any]
    samples: pd.DataFrame  # (n, any), by name: cluster (1, 2, ...), leaf, silhouette, annotations
    features: pd.DataFrame  # (p, any), by name, those that separate the clusters most first
    selected: pd.DataFrame  # (n, q), values of the selected features, NaN where missing
    silhouettes: pd.DataFrame  # (n, any), of the samples if the tree is cut: cut_2, cut_3, ...
    markers: pd.DataFrame  # (any, 13), features with q-values up to 0.05, clusters from one
    linkage_matrix_: NDArray[np.float64]  # (n - 1, 4), scipy's format

    @property
    def sample_names_in_(self) -> NDArray[Any]:
        """Names of the samples, to which plots match annotations."""
        return self.samples.index.to_numpy()

    @property
    def labels_(self) -> NDArray[np.intp]:
        """Clusters of the samples, counted from zero as estimators do."""
        return self.samples["cluster"].to_numpy(dtype=np.intp) - 1

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        return int(self.about["chosen"]["n_clusters"])

    @property
    def n_features_selected_(self) -> int:
        """Number of selected features."""
        return self.selected.shape[1]

    @property
    def search_results_(self) -> dict[str, NDArray[Any]]:
        """What was tried: a column for each property, an entry for each candidate."""
        return columns(self.about["search"])

    @property
    def split_tests_(self) -> dict[str, NDArray[Any]]:
        """The gap test of each node, as in :class:`mrshc.MrSHC`; empty for other methods."""
        rows = self.about["splits"]
        table = {name: np.empty(len(rows), dtype=object) for name in (rows[0] if rows else ())}
        for name, column in table.items():
            for i, row in enumerate(rows):
                column[i] = np.array(row[name]) if name == "reference_drops" else row[name]
        drops = {"reference_drops"}
        return {n: c if n in drops else np.array(c.tolist()) for n, c in table.items()}

    @property
    def outlier_samples_(self) -> NDArray[np.intp]:
        """Rows of the samples that were set apart; none unless that was asked for."""
        outliers = set(self.about["outliers"])
        return np.flatnonzero([name in outliers for name in self.samples.index])

    @property
    def chosen_row(self) -> dict[str, Any]:
        """What the search chose, as it stands in its table."""
        return next((row for row in self.about["search"] if row["chosen"]), {})

    @property
    def n_features_searched(self) -> int:
        """Number of features that the search chose; refining may have found others."""
        return int(self.chosen_row.get("n_features", self.n_features_selected_))

    @property
    def selection_rule(self) -> SelectionRule | None:
        """The rule by which the search chose; None for methods without one."""
        return rule_of(self.chosen_row)

    @property
    def evidence(self) -> float | None:
        """What the chosen tree says of other features; None if it was not chosen by that."""
        value: float | None = self.chosen_row.get("evidence")
        return value

    @property
    def n_missing(self) -> int:
        """Cells of the selected features that are missing."""
        return int(self.selected.isna().to_numpy().sum())

    @property
    def sample_annotations(self) -> pd.DataFrame:
        """Annotations of the samples."""
        return self.samples[[entry["name"] for entry in self.about["annotations"]["samples"]]]

    @property
    def concerns(self) -> list[str]:
        """What a reader should know before believing the result, in sentences."""
        found = list(self.about["warnings"])
        if self.about["parameters"].get("refine") and self.about["supported"] is None:
            found.append(
                "The search chose too few features to say whether others support its clusters: "
                "they are left as they are."
            )
        chosen = self.chosen_row
        if chosen.get("reached") is False:
            found.append(
                f"No bound gives exactly {chosen['n_features_target']:,} features: the closest, "
                f"{chosen['n_features']:,}, were taken."
            )
        if outliers := self.about["outliers"]:
            found.append(outlying(outliers))
        if self.n_missing > _MANY_MISSING * self.selected.size:
            found.append(
                f"{self.n_missing / self.selected.size:.0%} of the cells of the selected features "
                "are missing: distances rest on what is expected of them."
            )
        alone = [k for k, size in enumerate(self.about["cluster_sizes"], start=1) if size == 1]
        if alone and self.n_clusters_ > 1:
            found.append(
                f"A cluster of a single sample ({', '.join(map(str, alone))}) may be an outlier, "
                "not a group."
            )
        return found

    @property
    def shown_annotations(self) -> dict[str, NDArray[Any]]:
        """Annotations worth drawing: the truth first, then others with few levels."""
        annotations = self.sample_annotations
        truth = (self.about["scores"] or {}).get("truth")
        few = [
            name
            for name in annotations
            if annotations[name].dtype.kind in "fi" or annotations[name].nunique() <= _MOST_LEVELS
        ]
        wanted = [*(name for name in annotations if name == truth), *few]
        return {str(n): annotations[n].to_numpy() for n in list(dict.fromkeys(wanted))[:_MOST_BARS]}

    @property
    def loadings(self) -> pd.DataFrame:
        """Loadings (or weights) of the features, a column for each component."""
        known = {entry["name"] for entry in self.about["annotations"]["features"]}
        names = [name for name in self.features if re.fullmatch(r"loading_\d+", str(name))]
        return self.features[[name for name in names if name not in known]]


def outlying(names: list[str]) -> str:
    """Say which samples were set apart, the first few by name."""
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    subject = f"Sample {names[0]} is" if len(names) == 1 else "Samples {}{} are"
    return (
        subject.format(", ".join(names[:_NAMED]), rest)
        + " outlying: set apart, and attached to the nearest cluster at the end."
    )


def columns(rows: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return the rows of a table as its columns."""
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}


def write_result(result: Result, folder: Path) -> None:
    """Write the files from which a result can be loaded again."""
    tree = pd.DataFrame(result.linkage_matrix_, columns=LINKAGE)
    tree = tree.astype({"left": int, "right": int, "size": int})
    _write_table(result.samples, folder / "clusters.csv", names="sample")
    _write_table(result.features, folder / "features.csv", names="feature")
    _write_table(pd.DataFrame(result.about["search"]), folder / "search.csv")
    _write_table(result.silhouettes, folder / "silhouettes.csv", names="sample")
    _write_table(result.markers, folder / "markers.csv")
    _write_table(tree, folder / "linkage.csv")
    (folder / "selected.gct").write_bytes(_selected(result).encode())
    about = {**result.about, "files": {name: _checksum(folder / name) for name in TABLES}}
    text = json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False)
    # As bytes: line breaks are the same on every system.
    (folder / ABOUT).write_bytes((text + "\n").encode())


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_table(table: pd.DataFrame, path: Path, *, names: str | None = None) -> None:
    """Write a table as CSV; its index is a column if that has a name.

    Texts that a spreadsheet would take for formulas are guarded; `read_columns` undoes it.
    """
    table = _guarded(table)
    given: Any = {"index": names is not None, "index_label": names, "lineterminator": "\n"}
    text = table.to_csv(**given)
    if "\r" in text:  # which is quoted only if all texts are, and else reads as the end of a row
        text = table.to_csv(**given, quoting=csv.QUOTE_NONNUMERIC)
    path.write_bytes(text.encode())


def _guarded(table: pd.DataFrame) -> pd.DataFrame:
    def guard(value: Any) -> Any:
        return guard_formula(value) if isinstance(value, str) else value

    texts = [name for name in table if table[name].dtype.kind not in "fiub"]
    guarded = table.assign(**{name: table[name].map(guard) for name in texts})
    return guarded.rename(index=guard, columns=guard)


def _selected(result: Result) -> str:
    features = result.features.loc[result.selected.columns]
    about = [entry["name"] for entry in result.about["annotations"]["features"]]
    notes = features[[*about, "effect_size", *result.loadings.columns]]
    flags = [name for name in ("cluster", "outlying") if name in result.samples]
    samples = result.samples[[*flags, *result.sample_annotations.columns]]
    return gct(
        result.selected.to_numpy(),
        feature_names=list(result.selected.columns),
        sample_names=list(result.selected.index),
        feature_annotations={str(name): list(notes[name]) for name in notes},
        sample_annotations={str(name): list(samples[name]) for name in samples},
    )


def load_result(folder: str | os.PathLike[str]) -> Result:
    """Load a result that was written as a folder.

    Parameters
    ----------
    folder : str or path
        The folder, as :func:`write_result` or the command line wrote it.

    Returns
    -------
    Result
        With `about`, `samples`, `features`, `selected`, `markers` and the tree; functions of
        :mod:`mrshc.plotting` take it in place of a fitted estimator.
    """
    folder = Path(folder)
    try:
        about = _about(folder)
        tables = read_tables(folder, about, most_cuts=MOST_CUTS)
        # Last: what can be said about a table that is damaged is more useful.
        _refuse_changed(folder, about.pop("files"))
    except FlawError as flaw:
        raise ResultError(f"{folder} is not a whole result: {flaw}. Make it again.") from None
    return Result(
        about=about,
        samples=tables.samples,
        features=tables.features,
        selected=tables.selected,
        silhouettes=tables.silhouettes,
        markers=tables.markers,
        linkage_matrix_=tables.linkage_matrix,
    )


def _about(folder: Path) -> dict[str, Any]:
    if not (folder / ABOUT).exists():
        raise ResultError(
            f"{folder} holds no result: there is no {ABOUT} in it. Name a folder that holds the "
            "result of a clustering."
        )
    with naming(ABOUT):
        about = read_json(folder / ABOUT)
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise ResultError(f"{folder / ABOUT} is not about a result of mrshc.")
        _refuse_other_version(about.get("format_version"), folder)
        check_schema(about, load_schema(SCHEMA))
        check_about(about)
    return about


def _refuse_changed(folder: Path, checksums: dict[str, str]) -> None:
    """Refuse files other than those that were written with result.json: they may contradict it."""
    for name in TABLES:
        if _checksum(folder / name) != checksums[name]:
            raise FlawError(
                f"{name} is not the file that was written with this result. Tables that were "
                "edited are refused: correct names and annotations in the input, or work on a copy "
                "of the table"
            )


def _refuse_other_version(version: Any, folder: Path) -> None:
    # Other types are damage, not another version.
    if type(version) is int and 0 < version < 10**6 and version != FORMAT_VERSION:
        raise ResultError(
            f"{folder} is written in version {version} of the format, this mrshc reads version "
            f"{FORMAT_VERSION}. Install a newer mrshc, or make the result again."
        )
