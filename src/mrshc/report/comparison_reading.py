"""Read comparison.json, the file of a comparison of methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrshc.core.trees import check_linkage
from mrshc.errors import UserError
from mrshc.io.comparison_file_version import COMPARISON_FILE, COMPARISON_FORMAT, COMPARISON_VERSION
from mrshc.io.result_files import check, read_json, reading
from mrshc.io.streams import FlawError

_ENTRIES = {
    *("command", "data", "preprocessing", "samples", "truth", "annotations", "n_clusters"),
    *("notes", "scores", "methods", "versions", "format", "format_version"),
}


def read_comparison(folder: Path) -> dict[str, Any]:
    """Return the content of the file of a comparison of methods."""
    try:
        with reading(COMPARISON_FILE):
            about = read_json(folder / COMPARISON_FILE, _ENTRIES)
            check(about["format"] == COMPARISON_FORMAT, "does not describe a comparison of mrshc")
            check(
                about["format_version"] == COMPARISON_VERSION,
                f"is written in version {about['format_version']} of the format, this mrshc reads "
                f"version {COMPARISON_VERSION}",
            )
            n = about["data"]["n_samples"]
            check(len(set(about["samples"])) == n, "names other samples than there are")
            lengths = {len(values) for values in about["annotations"].values()}
            check(lengths <= {n}, "has incomplete annotations")
            scored = {row["method"] for row in about["scores"]}
            check(about["methods"].keys() <= scored, "has a tree of a method without scores")
            for method in about["methods"].values():
                check_linkage(method["linkage"], n_samples=n)
    except FlawError as flaw:
        raise UserError(f"In {folder}, {flaw}. Run the comparison again.") from None
    return about
