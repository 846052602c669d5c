"""Rebuilt package."""
