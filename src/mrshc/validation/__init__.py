"""Validation of arguments: parameters, tables of numbers, and the data of an estimator."""
