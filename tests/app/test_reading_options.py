"""The options for reading refuse a table of annotations that is the table of values."""

import pytest

from mrshc.app.cli.reading_options import ReadingOptions
from mrshc.errors import UserError


@pytest.mark.parametrize(
    ("sheet", "samples_sheet", "is_refused"),
    [
        (None, None, True),
        (None, "1", True),
        ("values", "values", True),
        (None, "clinic", False),
        ("values", "clinic", False),
        ("values", "1", False),
    ],
)
def test_only_another_sheet_of_the_table_may_hold_the_annotations(
    tmp_path, sheet, samples_sheet, is_refused
):
    path = tmp_path / "study.xlsx"
    path.touch()
    options = ReadingOptions(samples=path, sheet=sheet, samples_sheet=samples_sheet)
    if not is_refused:
        options.refuse_missing_files(str(path))
        return
    with pytest.raises(UserError, match=r"is the table of values\. .* with --samples-sheet"):
        options.refuse_missing_files(str(path))
