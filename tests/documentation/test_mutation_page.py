"""The page on mutation tests shows the committed results."""

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.documentation


def test_the_page_shows_the_share_and_every_mutant_that_was_not_noticed():
    with (ROOT / "mutation" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    survivors = [row for row in rows if row["outcome"] == "survived"]
    page = (ROOT / "docs" / "developer" / "mutation.md").read_text(encoding="utf-8")
    n_noticed = len(rows) - len(survivors)
    assert f"{n_noticed} of {len(rows)} mutants were noticed ({n_noticed / len(rows):.1%})" in page
    table = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert len(table) == len(survivors)
    for line, row in zip(table, survivors, strict=True):
        assert f"`{row['after'].replace('|', chr(92) + '|')}`" in line
