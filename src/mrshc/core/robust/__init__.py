"""Robustness against missing values and outliers."""
