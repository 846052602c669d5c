"""Compile numerical loops in another process while a fit is being prepared.

Numba compiles one function at a time, so a first fit would use only one core while it waits for the
compiler. Here, another process compiles functions that the fit needs late, and stores the machine
code in the cache (:mod:`~mrshc.core.kernels.compilation_cache`). A fit that needs a function which
the other process is compiling waits for it.

The functions are called directly, with small arrays of the types that occur in a fit, since the
modules above :mod:`mrshc.core.kernels` take another second to import.
"""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.kernels.cache_folder import KERNELS, cache_folder, has_cached_code


def start_compiler_process(*parts: str) -> None:
    """Start a process that compiles numerical loops, unless compiled code is cached already.

    The process ends when it has compiled its parts, or when the present process ends. Nothing is
    started if there is only one core, or if no folder for the code is writable.

    Parameters
    ----------
    *parts : str
        What is compiled, in this order; keys of `PARTS`.
    """
    if has_cached_code() or cache_folder(KERNELS) is None or _n_cores() < 2:
        return
    # The option -P keeps modules in the current directory from being imported. The process reads
    # from the pipe, and ends when the pipe is closed, which happens in whatever way the present
    # process ends.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, *parts],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # The process ends when the pipe is closed, which also happens when its object is deleted. The
    # registered function keeps the object.
    atexit.register(_end_process, process)


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process, and wait for its end."""
    process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile_association() -> None:
    """Compile the functions that build trees and test features for association with clusters."""
    from mrshc.core.kernels.agglomerated_dispersions import dispersion
    from mrshc.core.kernels.agglomeration import linkage_matrix
    from mrshc.core.kernels.association import analyse_variance, rank_by_comparison
    from mrshc.core.kernels.fold_distances import distances_without
    from mrshc.core.kernels.leaf_positions import first_leaf_positions
    from mrshc.core.kernels.linkage_codes import LinkageMethod
    from mrshc.core.kernels.p_values import write_cauchy_combinations
    from mrshc.core.kernels.silhouettes import write_silhouette_widths
    from mrshc.core.kernels.tree_cuts import cut_into_clusters

    # The functions are called in the order in which a fit needs them.
    X, distances = _small_data()
    n = len(X)
    features = np.ascontiguousarray(X.T)
    tree = linkage_matrix(distances, LinkageMethod.ward.value)
    children = tree[:, :2].astype(np.intp)
    partitions = cut_into_clusters(children, np.array([2, 3]))
    p_values, _ = analyse_variance(features, rank_by_comparison(features), partitions)
    write_cauchy_combinations(p_values, np.empty(len(p_values)))
    distances_without(distances, features, True)
    dispersion(distances, partitions[0], 1)
    write_silhouette_widths(distances, partitions[0], np.empty(n))
    first_leaf_positions(children, np.ones(2 * n - 1, np.intp))


def _compile_gap_test() -> None:
    """Compile the functions of the gap test for two clusters and Euclidean distances."""
    from mrshc.core.kernels.gap import GapTestSettings
    from mrshc.core.kernels.linkage_codes import LinkageMethod
    from mrshc.core.kernels.split_test import split_test

    X, distances = _small_data()
    n = len(X)
    settings = GapTestSettings(
        linkage=LinkageMethod.complete.value,
        power=2,
        max_clusters=None,
        n_references=2,
        first_check=2,
        check_interval=1,
        n_standard_errors=4.0,
    )
    partitions = np.stack([np.zeros(n, np.intp), np.arange(n) % 2])
    split_test(X, distances, partitions, np.random.default_rng(0), settings)


def _small_data() -> tuple[Float, Float]:
    """Return data of a few samples, and their squared distances."""
    X = np.random.default_rng(0).normal(size=(8, 5))
    return X, ((X[:, None] - X) ** 2).sum(axis=2)


PARTS: dict[str, Callable[[], None]] = {
    "association": _compile_association,
    "gap_test": _compile_gap_test,
}


def _exit_with_parent() -> None:
    """Wait until the process that has started this process ends, then end this process."""
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Compile the parts that are named in the arguments of the command."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    # The compiler makes millions of objects, few of which can be freed before it has finished. To
    # search for those would take a tenth of the time.
    gc.disable()
    for name in sys.argv[1:]:
        PARTS[name]()


if __name__ == "__main__":
    main()
