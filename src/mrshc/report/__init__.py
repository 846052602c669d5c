"""The report: one HTML file that lets people look at a result."""

from mrshc.report.write import comparison_report, result_report, write_report

__all__ = ["comparison_report", "result_report", "write_report"]
