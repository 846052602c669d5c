"""Changes of the tables of a saved result, which loading the result must refuse."""

import csv
import io
import re

import pytest

from mrshc.errors import UserError
from mrshc.io import load_result


def check_refused(folder, sentence):
    wanted = rf"{re.escape(str(folder))} is not a complete result: {sentence}.*\. Make it again\."
    with pytest.raises(UserError, match=f"^{wanted}$"):
        load_result(folder)


def edit(path, change):
    """Change the rows of a table, the header first."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def put(row, column, value):
    """Return a change of one cell."""

    def change(rows):
        rows[row][rows[0].index(column)] = value

    return change


def rename(old, new):
    def change(rows):
        rows[0][rows[0].index(old)] = new

    return change


def drop(rows):
    del rows[-1]
