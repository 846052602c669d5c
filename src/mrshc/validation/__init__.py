"""Validation of arguments: parameters, tables of numbers, and the data passed to an estimator."""
