"""Build the report of a result or of a comparison, and write it to its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrshc.io.comparison_file_version import COMPARISON_FILE
from mrshc.io.result import Result, load_result
from mrshc.report.comparison_reading import read_comparison
from mrshc.report.comparison_sections import comparison_content
from mrshc.report.html_page import render_page
from mrshc.report.page_data import comparison_data, result_data
from mrshc.report.result_sections import result_content
from mrshc.utils.atomic_files import write_text

REPORT = "report.html"


def write_report(folder: Path) -> Path:
    """Write the report of a result or a comparison to its folder.

    Parameters
    ----------
    folder : Path
        Folder that holds a result or a comparison.

    Returns
    -------
    path : Path
        File of the report, in the same folder.

    Raises
    ------
    UserError
        If the folder holds neither, or one of its files is damaged. An earlier report is kept.
    """
    # Only the folder of a comparison has this file; load_result reports all other problems.
    if (folder / COMPARISON_FILE).exists():
        html = comparison_report(read_comparison(folder))
    else:
        html = result_report(load_result(folder))
    write_text(folder / REPORT, html)
    return folder / REPORT


def result_report(result: Result) -> str:
    """Return the page of a result as HTML.

    Parameters
    ----------
    result : Result
        Result to show.

    Returns
    -------
    html : str
        The whole page.
    """
    data = result_data(result)
    # The page states the precision of its values, which follows from how they are packed.
    content = result_content(result, values=data["values"])
    return render_page("result.html", content=content, data=data)


def comparison_report(about: dict[str, Any]) -> str:
    """Return the page of a comparison as HTML.

    Parameters
    ----------
    about : dict
        Content of comparison.json; see :func:`mrshc.report.comparison_reading.read_comparison`.

    Returns
    -------
    html : str
        The whole page.
    """
    content = comparison_content(about)
    return render_page("comparison.html", content=content, data=comparison_data(about))
