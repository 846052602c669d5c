"""Compiled functions, one module for each concern; numba is imported with the first call.

A change in any file of this folder makes the cached machine code of all of them stale (`jit`), so
that they may call each other across files. Types that they share belong here, too.
"""
