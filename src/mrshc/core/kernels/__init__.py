"""Compiled functions, one module for each concern. Numba is imported at the first call.

A change in any file of this folder invalidates the cached machine code of all of them
(:mod:`~mrshc.core.kernels.compilation_cache`), so that compiled functions may call each other
across files. Named tuples and enumerations that compiled functions share are therefore defined in
this folder too.
"""
