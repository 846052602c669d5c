"""Tables in; results in and out."""

from mrshc.io.result import Result, ResultError, load_result
from mrshc.io.streams import TableError
from mrshc.io.table import Table
from mrshc.io.table_reading import can_stay, read_table

__all__ = ["Result", "ResultError", "Table", "TableError", "can_stay", "load_result", "read_table"]
