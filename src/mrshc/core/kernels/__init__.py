"""Compiled functions, with one module for each topic.

Numba is imported when a compiled function is first called. Machine code is cached on disk
(:mod:`~mrshc.core.kernels.compilation_cache`). A change in any file of this folder invalidates the
cached code of all functions in the folder, so a compiled function may call functions from other
files of the folder. Named tuples and enumerations that are used by compiled functions must also be
defined in this folder, since a change outside the folder does not invalidate the cached code.
"""
