"""The interactive report of a result or a comparison: one HTML file without external resources."""

from mrshc.optional_packages import require_packages

# The check comes first, so that its message is shown and not that of a failed import.
require_packages(["jinja2", "markupsafe"], purpose="mrshc.report", extra="report")

from mrshc.io.comparison_file_version import COMPARISON_FILE
from mrshc.report.report_file import REPORT, comparison_report, result_report, write_report

__all__ = ["COMPARISON_FILE", "REPORT", "comparison_report", "result_report", "write_report"]
