"""The interactive report of a result or a comparison: one HTML file without external resources."""

from mrshc.io.comparison_file_version import COMPARISON_FILE
from mrshc.report.report_file import REPORT, comparison_report, result_report, write_report

__all__ = ["COMPARISON_FILE", "REPORT", "comparison_report", "result_report", "write_report"]
