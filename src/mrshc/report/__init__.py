"""The report: one HTML file that lets people look at a result."""

from mrshc.io.comparison_file_version import ABOUT_COMPARISON
from mrshc.report.report_file import REPORT, comparison_report, result_report, write_report

__all__ = ["ABOUT_COMPARISON", "REPORT", "comparison_report", "result_report", "write_report"]
