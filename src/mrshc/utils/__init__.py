"""Utilities that are not statistical: files, locks, journals, text, progress, sample names."""
