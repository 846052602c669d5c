"""Functions that read tables and gene sets, and load clustering results."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mrshc.optional_packages import require_packages

require_packages(["pandas", "psutil"], purpose="mrshc.io", extra="tables")

if TYPE_CHECKING:
    from mrshc.io.gene_sets import GeneSets, read_gene_sets
    from mrshc.io.prediction import predict_clusters
    from mrshc.io.result import Result, ResultError, load_result
    from mrshc.io.streams import TableError
    from mrshc.io.table import Table
    from mrshc.io.table_reading import can_read_in_blocks, read_table

__all__ = [
    "GeneSets",
    "Result",
    "ResultError",
    "Table",
    "TableError",
    "can_read_in_blocks",
    "load_result",
    "predict_clusters",
    "read_gene_sets",
    "read_table",
]

# Each name is imported when it is first used. The command-line help needs only the list of table
# formats, so it should not load pandas and the other libraries that results need.
_NAMES_OF_MODULES = {
    "prediction": ("predict_clusters",),
    "gene_sets": ("GeneSets", "read_gene_sets"),
    "result": ("Result", "ResultError", "load_result"),
    "streams": ("TableError",),
    "table": ("Table",),
    "table_reading": ("can_read_in_blocks", "read_table"),
}


def __getattr__(name: str) -> Any:
    """Return the public object called `name`, which is imported when it is first used.

    Raise AttributeError if there is no public object of this name.
    """
    for module, names in _NAMES_OF_MODULES.items():
        if name in names:
            # The value is stored as an attribute of this module, so Python does not call this
            # function for the same name again.
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names in this module, including names that have not been imported yet."""
    return sorted({*globals(), *__all__})
