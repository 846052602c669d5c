"""Settings that concern genes: their column, links to web pages, and gene sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.enrichment import (
    MAX_SET_SIZE,
    MIN_SET_SIZE,
    GenesOfFeatures,
    gene_set_enrichment,
    sets_in_universe,
)
from mrshc.errors import UserError
from mrshc.io.gene_sets import GeneSets
from mrshc.io.table import Table
from mrshc.shell.url_templates import PLACEHOLDERS, find_template_flaw
from mrshc.shell.wording import ParameterError, invalid_parameter_error


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneSettings:
    """What is known about genes, for links and gene sets. Nothing of it affects the fit.

    Attributes
    ----------
    column : str or None, default=None
        Title of the annotation of the features that contains their genes. If None, the names of
        the features are the genes.
    url : str or None, default=None
        Template of a web address with {gene} or {feature} in it; None for no links.
    sets : GeneSets or None, default=None
        Gene sets that are compared with the markers; None for no comparison.
    min_size, max_size : int, default=10, 500
        Smallest and largest number of tested genes of a set.
    """

    column: str | None = None
    url: str | None = None
    sets: GeneSets | None = None
    min_size: int = MIN_SET_SIZE
    max_size: int = MAX_SET_SIZE

    @property
    def is_given(self) -> bool:
        """Whether any of the settings was given."""
        return self.column is not None or self.url is not None or self.sets is not None

    def check(self, table: Table, kept: NDArray[np.intp]) -> None:
        """Raise UserError if a setting cannot be used with a table.

        `kept` contains the positions of the features that are left after preprocessing. The check
        is made before the fit, which may take hours.
        """
        if self.url is not None and (flaw := find_template_flaw(self.url)) is not None:
            names = " or ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise invalid_parameter_error(
                "gene_url",
                self.url,
                allowed=f"be a web address (http or https) with {names} after the host",
                advice=f"It was refused because {flaw}.",
            )
        annotations = table.feature_annotations
        if self.column is not None and self.column not in annotations:
            available = ", ".join(map(str, annotations.columns)) or "none"
            raise UserError(
                f"There is no description column {self.column!r} of the features; there are: "
                f"{available}."
            )
        if self.sets is None:
            return
        column = None if self.column is None else annotations[self.column].iloc[kept]
        tested = GenesOfFeatures.from_names(table.feature_names[kept].tolist(), column).genes
        sets_in_universe(self.sets, tested, min_size=self.min_size, max_size=self.max_size)
        _refuse_missing_descriptions(self.sets, tested)


def _refuse_missing_descriptions(sets: GeneSets, tested: set[str]) -> None:
    """Raise UserError if the second column of the gene sets contains genes.

    The first gene of every set would otherwise be lost without a message.
    """
    suspicious = [name for name in sets if sets.descriptions[name] in tested]
    # A description may happen to be the name of a gene, but not in most of the sets.
    if 2 * len(suspicious) > len(sets):
        first = suspicious[0]
        raise UserError(
            f"{sets.source} has genes in its second column, such as "
            f"{sets.descriptions[first]!r} in line {sets.lines.get(first, 1)}, where a .gmt file "
            "has a description. Insert a second column, which may be empty."
        )


def gene_set_table(
    settings: GeneSettings, markers: pd.DataFrame, *, features: pd.DataFrame, column: str | None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of gene sets, and its description for result.json."""
    sets = settings.sets
    if sets is None:
        raise TypeError("there are no gene sets")
    # The effect size of a constant feature is not defined. Such a feature was not tested. If there
    # is only one cluster, no effect size is defined, and no feature was tested.
    is_tested = features["effect_size"].notna()
    tested = features[is_tested] if is_tested.any() else features
    universe = list(tested.index)
    genes = None if column is None else list(tested[column])
    limits: Any = {"min_size": settings.min_size, "max_size": settings.max_size}
    names = GenesOfFeatures.from_names(universe, genes).genes
    notes = [*sets.notes, *matching_notes(sets, names)]
    try:
        n_tested = len(sets_in_universe(sets, names, **limits))
        table = gene_set_enrichment(markers, sets, universe=universe, genes=genes, **limits)
    except ParameterError as error:
        # The settings were checked before the fit, but a robust fit may leave out samples, so that
        # further features are constant. The fit must not be lost because of that.
        n_tested, notes = 0, [*notes, str(error)]
        table = gene_set_enrichment(
            markers.iloc[:0],
            {"": list(names)},
            universe=universe,
            genes=genes,
            min_size=1,
            max_size=max(1, len(names)),
        )
    return table, {
        "source": sets.source,
        "n_sets": len(sets),
        "n_tested_sets": n_tested,
        "n_genes": max(1, len(names)),
        "min_size": settings.min_size,
        "max_size": settings.max_size,
        "n_rows": len(table),
        "notes": notes,
    }


def matching_notes(sets: Mapping[str, Sequence[str]], tested: set[str]) -> list[str]:
    """Return sentences on how many genes of the sets were tested, and on differences in case."""
    in_sets = {gene for members in sets.values() for gene in members}
    n_common = len(in_sets & tested)
    notes = [
        f"{n_common:,} of the {len(in_sets):,} genes in the sets are among the {len(tested):,} "
        "tested genes."
    ]
    capitals = {gene.upper(): gene for gene in sorted(tested - in_sets)}
    alike = sorted(gene for gene in in_sets - tested if gene.upper() in capitals)
    if alike:
        notes.append(
            f"{len(alike):,} further genes would be if upper and lower case were ignored, such as "
            f"{alike[0]!r} in the sets and {capitals[alike[0].upper()]!r} in the data; they do not "
            "count."
        )
    return notes
