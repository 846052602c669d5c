"""Options that concern genes: their names, links and gene sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_names import SetsParameter, option_for_parameter
from mrshc.errors import UserError
from mrshc.shell.wording import Parameter

if TYPE_CHECKING:
    from mrshc.app import GeneSettings
    from mrshc.app.cli.terminal_output import TerminalOutput

_gene_option = option_factory("Genes")


@dataclass(frozen=True, kw_only=True)
class GeneOptions:
    """Options that concern genes. They do not affect the clusters.

    The value None stands for the default, which the help text gives in parentheses.
    """

    gene_column: Annotated[
        str | None,
        _gene_option(
            "--gene-column",
            help="Description column of the features with their genes, for links, gene sets and "
            "ranked lists. By default, the names of the features are the genes.",
        ),
        SetsParameter("genes"),
    ] = None
    gene_url: Annotated[
        str | None,
        _gene_option(
            "--gene-url",
            metavar="TEMPLATE",
            help="Web page of each gene, to which the report links, such as "
            "https://example.org/{gene}; {feature} stands for the name of the feature.",
        ),
    ] = None
    gene_sets: Annotated[
        Path | None,
        _gene_option(
            "--gene-sets",
            help="File with gene sets (.gmt), to find the sets that are over-represented among the "
            "markers of each cluster.",
        ),
    ] = None
    min_set_size: Annotated[
        int | None,
        _gene_option(
            "--min-set-size",
            help="Leave out gene sets with fewer tested genes (default 10).",
        ),
        SetsParameter("min_size"),
    ] = None
    max_set_size: Annotated[
        int | None,
        _gene_option(
            "--max-set-size",
            help="Leave out gene sets with more tested genes (default 500).",
        ),
        SetsParameter("max_size"),
    ] = None

    def to_settings(self, output: TerminalOutput) -> GeneSettings:
        """Read the gene sets, print how they were read, and return the settings.

        Raises UserError if the file cannot be read, or if a size was given without gene sets.
        """
        from mrshc.app import GeneSettings
        from mrshc.io import read_gene_sets

        given = {"min_size": self.min_set_size, "max_size": self.max_set_size}
        sizes: dict[str, Any] = {n: value for n, value in given.items() if value is not None}
        if sizes and self.gene_sets is None:
            option = option_for_parameter(Parameter(next(iter(sizes))))
            raise UserError(
                f"{option} has no effect without --gene-sets. Add --gene-sets, or leave {option} "
                "out."
            )
        sets = None if self.gene_sets is None else read_gene_sets(self.gene_sets)
        if sets is not None:
            output.print_sentence(f"Read {sets.source}: {' '.join(sets.notes)}")
        return GeneSettings(column=self.gene_column, url=self.gene_url, sets=sets, **sizes)
