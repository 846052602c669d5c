"""Kinds of studies: each says its tasks, runs one of them and renders the results."""
