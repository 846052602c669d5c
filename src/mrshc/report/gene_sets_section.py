"""Section "Gene sets": sets of genes that are over-represented among the markers."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from mrshc.enrichment import DIRECTIONS
from mrshc.io.result import Result

# Sets with a q-value of at most this value are counted in sentences. Markers have the same limit.
_ALPHA = 0.05
# Largest number of sets that a sentence names for a list. The table has all of them.
_N_NAMED = 3
# Largest number of rows of the table on the page, which keeps the page small enough for e-mail. The
# value is not tuned: it does not affect any result.
_MAX_ROWS = 1000

P_VALUE_MEANING = (
    "p_value: probability that a list of as many genes, drawn at random from the tested genes, has "
    "at least as many genes in common with the set (hypergeometric distribution). q_value: p-value "
    "adjusted for the number of tested sets (Benjamini and Hochberg), separately for each cluster "
    "and direction."
)
CAVEAT = (
    "These values describe the markers; they are not evidence for the clusters. The clusters were "
    "found in the same data as their markers, so genes that vary together, such as those of one "
    "pathway, become markers together, even if there are no clusters. The calculation treats "
    "genes as independent of each other, which genes of a set are not, so the p-values are "
    "usually too small. Use them to rank sets, and confirm a finding in other data."
)


@dataclass(frozen=True, kw_only=True)
class GeneSetsSection:
    """Section "Gene sets": the lists of markers that the reader can select."""

    sentences: list[str]
    notes: list[str]  # how the file was read, and how many of its genes were tested
    meaning: str
    caveat: str
    lists: list[str]
    first: int  # position of the list that is shown when the page is opened
    omission: str  # sentence on rows that the page omits; empty if it omits none


def gene_sets_section(result: Result) -> GeneSetsSection | None:
    """Return the section; None if no gene sets were given."""
    if result.gene_sets is None:
        return None
    counts = [(_list_name(*key), _count_small(rows)) for key, rows in marker_lists(result)]
    n_most = max_rows_per_list(len(counts))
    is_truncated = any(len(rows) > n_most for _, rows in marker_lists(result))
    return GeneSetsSection(
        sentences=[_sets_sentence(result), result_sentence(result)],
        notes=result.genes["sets"]["notes"],
        meaning=P_VALUE_MEANING,
        caveat=CAVEAT,
        lists=[
            f"{name}: {n:,} {'set' if n == 1 else 'sets'} with a q-value of at most {_ALPHA}"
            for name, n in counts
        ],
        # A list with a small q-value is shown first, since it is the one of interest.
        first=next((i for i, (_, n) in enumerate(counts) if n), 0),
        omission=f"The table shows the {n_most} sets with the smallest p-values for each cluster "
        f"and direction; the file gene_sets.csv has all {len(result.gene_sets):,} rows."
        if is_truncated
        else "",
    )


def marker_lists(result: Result) -> list[tuple[tuple[int, str], pd.DataFrame]]:
    """Return the rows of the table of gene sets for each cluster and direction.

    Lists that have no gene in common with any set are included, without rows.
    """
    table = result.gene_sets
    if table is None:
        return []
    return [
        ((k, direction), table[(table["cluster"] == k) & (table["direction"] == direction)])
        for k in range(1, result.n_clusters_ + 1)
        for direction in DIRECTIONS
    ]


def max_rows_per_list(n_lists: int) -> int:
    """Return the largest number of rows that the page contains for each list."""
    return max(5, _MAX_ROWS // max(1, n_lists))


def _list_name(cluster: int, direction: str) -> str:
    return f"cluster {cluster}, {direction}"


def _count_small(rows: pd.DataFrame) -> int:
    return int((rows["q_value"] <= _ALPHA).sum())


def _sets_sentence(result: Result) -> str:
    """Return a sentence on the sets that were tested."""
    sets = result.genes["sets"]
    return (
        f"{sets['n_tested_sets']:,} of the {sets['n_sets']:,} sets in {sets['source']} were "
        f"tested: those with {sets['min_size']:,} to {sets['max_size']:,} of the "
        f"{sets['n_genes']:,} genes that were tested for markers."
    )


def result_sentence(result: Result) -> str:
    """Return a sentence that names the sets with small q-values, for the report and the terminal.

    It is empty if no gene sets were given.
    """
    if result.gene_sets is None:
        return ""
    if result.n_clusters_ == 1:
        return "There is only one cluster, so there are no markers to compare with gene sets."
    parts = []
    for key, rows in marker_lists(result):
        small = rows.loc[rows["q_value"] <= _ALPHA, "gene_set"].tolist()
        if small:
            more = f" and {len(small) - _N_NAMED:,} more" if len(small) > _N_NAMED else ""
            parts.append(f"{_list_name(*key)}: {', '.join(small[:_N_NAMED])}{more}")
    listed = "; ".join(parts) or "none"
    return (
        f"Gene sets over-represented among the markers (q-value at most {_ALPHA}; a ranking, not "
        f"evidence for the clusters): {listed}."
    )
