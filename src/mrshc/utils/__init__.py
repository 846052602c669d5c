"""Utilities without statistics: atomic files, locks, journals, text, progress, sample names."""
