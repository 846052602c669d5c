"""Tables in; results in and out."""

from mrshc.io.result import Result, ResultError, load_result
from mrshc.io.source import TableError
from mrshc.io.table import Table, read_table

__all__ = ["Result", "ResultError", "Table", "TableError", "load_result", "read_table"]
