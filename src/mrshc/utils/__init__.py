"""Helpers without statistics: files, locks, journals, text, progress."""
