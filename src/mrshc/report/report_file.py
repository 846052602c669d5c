"""Build the report of a result or a comparison, and write the report to its folder."""

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
from mrshc.shell.atomic_files import write_text

REPORT = "report.html"


def write_report(folder: Path) -> Path:
    """Write the report of a result or a comparison to its folder."""
    # Only the folder of a comparison contains this file. Any other folder should contain a result;
    # if it does not, `load_result` raises an error.
    if (folder / COMPARISON_FILE).exists():
        html = comparison_report(read_comparison(folder))
    else:
        html = result_report(load_result(folder))
    write_text(folder / REPORT, html)
    return folder / REPORT


def result_report(result: Result) -> str:
    """Return the report of a result as an HTML page."""
    data = result_data(result)
    # The page states the precision of the values, which depends on how the values are encoded.
    content = result_content(result, values=data["values"])
    return render_page("result.html", content=content, data=data)


def comparison_report(about: dict[str, Any]) -> str:
    """Return the report of a comparison as an HTML page."""
    content = comparison_content(about)
    return render_page("comparison.html", content=content, data=comparison_data(about))
