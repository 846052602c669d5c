"""Read and validate comparison.json, the file of a comparison of methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrshc.core.trees import check_linkage
from mrshc.errors import UserError
from mrshc.io.comparison_file_version import COMPARISON_FILE, COMPARISON_VERSION
from mrshc.io.result_table_checks import check_candidates, check_condition
from mrshc.io.saved_file_reading import COMPARISON_SCHEMA, check_schema, load_schema, read_json
from mrshc.io.streams import FlawError


def read_comparison(folder: Path) -> dict[str, Any]:
    """Return the validated content of the file of a comparison of methods."""
    path = folder / COMPARISON_FILE
    try:
        about = read_json(path)
        _refuse_other_version(about, folder)
        check_schema(about, load_schema(COMPARISON_SCHEMA))
        _check_comparison(about)
    except FlawError as flaw:
        raise UserError(f"{path} is damaged: it {flaw}. Run the comparison again.") from None
    checked: dict[str, Any] = about
    return checked


def _refuse_other_version(about: Any, folder: Path) -> None:
    version = about.get("format_version") if isinstance(about, dict) else None
    # Only a positive integer can be the number of another version of the format. If the value is
    # not a positive integer, the file is damaged, and the later check of the schema reports the
    # damage. The limit of a million excludes numbers that no version will reach.
    if type(version) is int and 0 < version < 10**6 and version != COMPARISON_VERSION:
        raise UserError(
            f"{folder} is written in version {version} of the format, but this mrshc reads version "
            f"{COMPARISON_VERSION}. Install a newer mrshc, or run the comparison again."
        )


def _check_comparison(about: dict[str, Any]) -> None:
    """Raise FlawError if the entries of a comparison contradict each other.

    The comparison must already conform to its schema.
    """
    samples, annotations, scores = about["samples"], about["annotations"], about["scores"]
    n, k = about["data"]["n_samples"], about["n_clusters"]
    check_condition(len(samples) == n, "names more or fewer samples than there are")
    check_condition(len(set(samples)) == n, "names a sample twice")
    check_condition(
        all(len(values) == n for values in annotations.values()), "has incomplete annotations"
    )
    truth = about["truth"]
    check_condition(
        truth is None or truth in annotations, "lacks the annotation that holds the classes"
    )
    check_condition(k is None or k <= n, "has more clusters than samples")
    check_condition(all(row.keys() == scores[0].keys() for row in scores), "has incomplete scores")
    counts = {row["method"]: row["n_features"] for row in scores}
    check_condition(len(counts) == len(scores), "has a method twice")
    # Each method with a tree must have a row of scores. A row of scores without a tree is valid and
    # means that the method failed or has no tree.
    for name, method in about["methods"].items():
        check_condition(counts.get(name) is not None, "has a tree of a method without scores")
        check_candidates(method["search"])
        check_condition(
            all(i < n for i in method["outliers"]), "has an outlying sample that does not exist"
        )
        check_condition(
            len(set(method["outliers"])) == len(method["outliers"]), "has an outlier twice"
        )
        try:
            check_linkage(method["linkage"], n_samples=n)
        except ValueError as error:
            raise FlawError(f"holds no tree: {str(error).rstrip('.')}") from None
