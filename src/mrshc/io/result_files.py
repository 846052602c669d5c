"""Reading of the files of a result, whose shapes, names and tree must fit together."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mrshc.core.trees import check_linkage
from mrshc.errors import UserError
from mrshc.exports import format_gct_cell
from mrshc.io.formats.gct import read_gct
from mrshc.io.streams import FlawError
from mrshc.methods import METHODS
from mrshc.shell.text_cleaning import unguard_formula
from mrshc.shell.url_templates import find_template_flaw

About = dict[str, Any]  # the content of result.json

BRANCHES_FILE, CONSENSUS_FILE = "branches.csv", "consensus.csv.gz"
GENE_SETS_FILE = "gene_sets.csv"
LINKAGE_COLUMNS = ("left", "right", "height", "size")
_ENTRIES = {
    *("command", "data", "preprocessing", "prediction", "method", "parameters", "chosen"),
    *("cluster_sizes", "supported", "n_associated", "outliers", "annotations", "n_rows", "scores"),
    *("warnings", "search", "splits", "versions"),
}
# What reading and using a damaged file may raise.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, RecursionError),
    *(TypeError, ValueError, csv.Error, zlib.error),
)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Within this context, errors say that the file is damaged or does not fit the others."""
    try:
        yield
    except UserError:
        raise
    except FlawError as flaw:
        raise FlawError(f"{name} {flaw}") from None
    except FileNotFoundError:
        raise FlawError(f"{name} is missing") from None
    except _DAMAGE:
        raise FlawError(f"{name} is damaged, or does not fit the other files") from None


def check(condition: Any, flaw: str) -> None:
    """Raise FlawError if a condition is not met."""
    if not condition:
        raise FlawError(flaw)


def read_json(path: Path, entries: Collection[str]) -> About:
    """Return the content of a JSON file that has some entries."""
    check(path.is_file(), "is not a file")  # reading from a pipe might never end
    content = json.loads(path.read_bytes())
    check(isinstance(content, dict), "is damaged")
    for entry in sorted(entries):
        check(entry in content, f"lacks {entry!r}")
    return content


def read_about(path: Path) -> About:
    """Return the content of result.json."""
    about = read_json(path, _ENTRIES)
    check(about["method"] in METHODS, f"has a method other than {' or '.join(METHODS)}")
    sizes = about["cluster_sizes"]
    check(
        len(sizes) == about["chosen"]["n_clusters"] and sum(sizes) == about["data"]["n_samples"],
        "has clusters of other sizes than it counts",
    )
    column = about.get("genes", {}).get("column")
    names = [entry["name"] for entry in about["annotations"]["features"]]
    check(column is None or column in names, "lacks the annotation with the genes")
    # The report makes links of this text, and a result may come from others.
    url = about.get("genes", {}).get("url")
    flaw = None if url is None else find_template_flaw(url)
    check(flaw is None, f"has a template of an address, but {flaw}")
    return about


def read_columns(
    path: Path,
    *,
    n_rows: int,
    index: str | None = None,
    text: Collection[str] = (),
    whole: Collection[str] = (),
    flags: Collection[str] = (),
    required: Collection[str] = (),
) -> pd.DataFrame:
    """Return a table. Missing are empty cells: None in text, NA in whole numbers and flags.

    pandas would neither keep text such as "001" and "NA" nor read all digits of numbers.
    """
    check(path.is_file(), "is missing")
    with path.open(encoding="utf-8", newline="") as file:
        titles, *rows = csv.reader(file, strict=True)
    titles = [unguard_formula(title) for title in titles]
    check(len(set(titles)) == len(titles), "has two columns of the same name")
    for title in required:
        check(title in titles, f"lacks the column {title!r}")
    check(len(rows) == n_rows, f"has {len(rows):,} rows where {n_rows:,} were expected")
    check(all(len(row) == len(titles) for row in rows), "has too many or too few cells in a row")
    columns: dict[str, Any] = {}
    for title, cells in zip(
        titles, zip(*rows, strict=True) if rows else [()] * len(titles), strict=True
    ):
        if title in text or title == index:
            texts = [unguard_formula(cell) or None for cell in cells]
            columns[title] = pd.Series(texts, dtype=object).to_numpy()
        elif title in whole:
            columns[title] = pd.array([int(cell) if cell else None for cell in cells], "Int64")
        elif title in flags:
            columns[title] = pd.array([_FLAGS[cell] for cell in cells], "boolean")
        else:
            columns[title] = _parse(cells)
    if index is None:
        return pd.DataFrame(columns)
    names = pd.Index(columns.pop(index), name=index, dtype=object)
    check(names.is_unique, "has a name twice")
    return pd.DataFrame(columns, index=names)


_FLAGS = {"True": True, "False": False, "": None}


def _parse(cells: Collection[str]) -> np.ndarray:
    """Return cells as booleans, integers or floats, whichever comes first."""
    if set(cells) <= {"True", "False"}:
        return np.array([cell == "True" for cell in cells])
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array([float(cell or "nan") for cell in cells])


def read_tables(folder: Path, about: About) -> dict[str, Any]:
    """Return the tables of a result, by the names of the fields of `Result`."""
    with reading("result.json"):
        n, p = about["data"]["n_samples"], about["n_rows"]["features"]
        of_samples, of_features = (
            {
                dtype: [
                    entry["name"] for entry in about["annotations"][side] if entry["kind"] == dtype
                ]
                for dtype in ("text", "whole")
            }
            for side in ("samples", "features")
        )
    with reading("linkage.csv"):
        tree = read_columns(folder / "linkage.csv", n_rows=n - 1)
        linkage_matrix = check_linkage(tree[[*LINKAGE_COLUMNS]].to_numpy(), n_samples=n)
    with reading("clusters.csv"):
        samples = read_columns(
            folder / "clusters.csv",
            n_rows=n,
            index="sample",
            text=of_samples["text"],
            whole=[*of_samples["whole"], "significant_cluster"],
            required=["sample", "cluster", "leaf", "silhouette"],
        )
        sizes = [(samples["cluster"] == k).sum() for k in range(1, len(about["cluster_sizes"]) + 1)]
        check(sizes == about["cluster_sizes"], "has other clusters than result.json")
        _as_integers(samples, of_samples["whole"])
    with reading("silhouettes.csv"):
        silhouettes = read_columns(folder / "silhouettes.csv", n_rows=n, index="sample")
        check(silhouettes.index.equals(samples.index), "names other samples than clusters.csv")
    with reading("features.csv"):
        path, texts = folder / "features.csv", of_features["text"]
        features = read_columns(
            path,
            n_rows=p,
            index="feature",
            text=texts,
            whole=of_features["whole"],
            required=["feature", "position", "selected", "effect_size"],
        )
        _as_integers(features, of_features["whole"])
        is_selected = features["selected"].to_numpy(dtype=bool)
        check(is_selected.sum() == about["chosen"]["n_features"], "has other selected features")
        names = features.index[is_selected]
        names = names[np.argsort(features["position"][is_selected].to_numpy())]
    with reading("selected.gct"):
        check((folder / "selected.gct").is_file(), "is missing")
        text = (folder / "selected.gct").read_bytes().decode()
        table = read_gct(io.StringIO(text, newline=""))
        for given, wanted in ((table.column_names, samples.index), (table.row_names, names)):
            expected = [unguard_formula(format_gct_cell(name)) for name in wanted]
            check(given == expected, "names other samples or features")
        values = np.asarray(table.values, dtype=np.float64).T
        selected = pd.DataFrame(values, samples.index, pd.Index(names, name="feature"))
    with reading("markers.csv"):
        texts = ["contrast", "inside", "outside", "feature", "direction", *of_features["text"]]
        path, n_rows = folder / "markers.csv", about["n_rows"]["markers"]
        markers = read_columns(path, n_rows=n_rows, text=texts, whole=of_features["whole"])
        _as_integers(markers, of_features["whole"])
        check(markers["feature"].isin(features.index).all(), "names other features")
    with reading("centers.csv"):
        n_rows = about["n_rows"]["centers"]
        of_clusters = [f"center_{k + 1}" for k in range(len(about["cluster_sizes"]))]
        required = ["feature", "n_same", "n_steps", "used", "weight", *of_clusters]
        path = folder / "centers.csv"
        centers = read_columns(path, n_rows=n_rows, index="feature", required=required)
        compared = centers.index[centers["used"]]
        check(compared.size and compared.isin(features.index).all(), "names other features")
    tables = {
        "samples": samples,
        "features": features,
        "selected": selected,
        "silhouettes": silhouettes,
        "markers": markers,
        "linkage_matrix_": linkage_matrix,
        "centers": centers,
    }
    if "significance" in about or "stability" in about:
        with reading(BRANCHES_FILE):
            branches = read_columns(
                folder / BRANCHES_FILE,
                n_rows=n - 1,
                whole=["n_simulations"],
                flags=["significant"],
            )
            # From the root downwards, in the reverse order of the merges.
            check((branches["height"] == linkage_matrix[::-1, 2]).all(), "is of another tree")
            tables["branches"] = branches
    if "stability" in about:
        with reading(CONSENSUS_FILE):
            path = folder / CONSENSUS_FILE
            check(path.is_file(), "is missing")
            tables["consensus"] = np.empty((n, n))
            with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
                (_, *names), *rows = csv.reader(file, strict=True)
            for given in (names, [name for name, *_ in rows]):
                are_same = [unguard_formula(name) for name in given] == list(samples.index)
                check(are_same, "has other samples than clusters.csv")
            for i, (_, *cells) in enumerate(rows):
                check(len(cells) == n, "has too many or too few cells in a row")
                tables["consensus"][i] = [float(cell or "nan") for cell in cells]
    if about.get("genes", {}).get("sets") is not None:
        with reading(GENE_SETS_FILE):
            texts = ["direction", "gene_set", "description", "genes"]
            n_rows = about["genes"]["sets"]["n_rows"]
            sets = read_columns(folder / GENE_SETS_FILE, n_rows=n_rows, text=texts)
            sets[texts] = sets[texts].fillna("")
            tables["gene_sets"] = sets
    return tables


def _as_integers(frame: pd.DataFrame, titles: Collection[str]) -> None:
    """Turn nullable integers without missing values into integers, in place."""
    for title in titles:
        if not frame[title].isna().any():
            frame[title] = frame[title].astype(np.int64)


def learnt_column(step: int, name: str) -> str:
    """Return the title of the column of centers.csv with the values that a step has learnt."""
    return f"step_{step}_{name.rstrip('_')}"
