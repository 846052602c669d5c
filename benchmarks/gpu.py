"""Measure the search and SHC on a GPU and on two CPU cores of the same computer. Run by hand.

    python benchmarks/gpu.py search recommended shc cpu-search cpu-recommended cpu-shc

Measurements and versions of packages are written to benchmarks/gpu.json; `make bench` renders them.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from cases import RECOMMENDED

from mrshc import SHC, MrSHC, UnsupportedClustersWarning
from mrshc.core import search
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.sparse_pca import certificate_checking, l1_path
from mrshc.core.sparse_pca.certificates import CertificateBatch

RESULTS = Path(__file__).with_name("gpu.json")
# Sizes for which the CPU needs minutes and the data fit into the memory of common devices: 4 GB and
# 0.4 GB in single precision.
SEARCH_SIZE = {"n": 1000, "p": 1_000_000}
SHC_SIZE = {"n": 2000, "p": 50_000}
# Number of features that separate the clusters.
N_INFORMATIVE = 200
# Settings of the search of the paper; the recommended ones are those of the other benchmarks.
PAPER = {"max_rank": 3}

warnings.simplefilter("ignore", UnsupportedClustersWarning)


def make_data(n, p, device="cuda"):
    """Return three clusters on 200 of p features, one standard deviation apart, as float32."""
    torch.manual_seed(0)
    X = torch.randn(n, p, device=device)
    X[: n // 3, :N_INFORMATIVE] += 1
    X[n // 3 : 2 * n // 3, :N_INFORMATIVE] -= 1
    return X


@contextmanager
def time_calls(seconds, owner, name, part):
    """Add the seconds of all calls of `owner.name` to `seconds[part]`, within a `with` block."""
    original = getattr(owner, name)

    def run(*args, **kwargs):
        started = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            seconds[part] += time.perf_counter() - started

    setattr(owner, name, run)
    try:
        yield
    finally:
        setattr(owner, name, original)


def measure_search(X, parameters, n_jobs):
    """Return the seconds of a search and of its parts, and a summary of its result."""
    parts = defaultdict(float)
    model = MrSHC(**parameters, random_state=0, n_jobs=n_jobs)
    # Keys are names of columns in gpu.json. "proofs" is the certification of components, "of them
    # tests" its part on the device.
    with (
        time_calls(parts, DataMatrix, "summary", "statistics"),
        time_calls(parts, CentredBlocks, "_sum_gram", "inner products"),
        time_calls(parts, l1_path, "initial_pass", "starts"),
        time_calls(parts, certificate_checking, "_find_violations", "proofs"),
        time_calls(parts, CertificateBatch, "check", "of them tests"),
        time_calls(parts, search, "_search_feature_sets", "components and proofs"),
        time_calls(parts, search, "refine_feature_sets", "association tests"),
        time_calls(parts, search, "_choose_candidate", "trees and gap tests"),
    ):
        started = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "parts": dict(parts),
        "passes": model.n_passes_,
        "n_features": model.n_features_selected_,
        "rank": model.rank_,
        "n_clusters": model.n_clusters_,
        "useful": int(model.get_support()[:N_INFORMATIVE].sum()),
        "answer": hash_arrays(np.flatnonzero(model.get_support()), model.labels_),
    }


def hash_arrays(*arrays):
    """Return a short hash of arrays of integers, by which results are compared."""
    content = b"".join(np.asarray(a, dtype=np.int64).tobytes() for a in arrays)
    return sha256(content).hexdigest()[:16]


def warm_up():
    """Compile all functions and initialise the device, so that no measurement includes it."""
    small = make_data(40, 3000)
    for X in (small, small.cpu().numpy()):
        MrSHC((5, 10), max_rank=2, random_state=0, n_jobs=2).fit(X)
        SHC(l1_bound=3.0).fit(X)
    for parameters in (PAPER, RECOMMENDED):
        measure_search(small, parameters, 2)


def seconds_of_pass(X):
    """Return the least of ten times, in seconds, of computing X'u in single precision."""
    u = torch.randn(X.shape[0], device=X.device)
    best = np.inf
    for _ in range(10):
        torch.cuda.synchronize()  # calls return before the device has finished
        started = time.perf_counter()
        X.T @ u
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best


def run_search(parameters):
    """Return measurements of a search on the device."""
    X = make_data(**SEARCH_SIZE)
    figures = measure_search(X, parameters, n_jobs=-1)
    return SEARCH_SIZE | figures | {"pass_seconds": seconds_of_pass(X)}


def run_cpu_search(parameters):
    """Return measurements of the same search on two cores, with X in a memory map."""
    # The search on the CPU reads a memory map, as users with data of this size would.
    path = Path("/tmp/mrshc-benchmark.npy")
    np.save(path, make_data(**SEARCH_SIZE).cpu().numpy())
    try:
        with limit_to_two_cores():
            return SEARCH_SIZE | measure_search(np.load(path, mmap_mode="r"), parameters, n_jobs=2)
    finally:
        path.unlink()


def measure_shc(X, n_jobs):
    """Return the seconds, the number of iterations and a hash of the features of one fit of SHC."""
    # A fixed bound, so that one solution is measured and not a choice among several.
    model = SHC(l1_bound=12.0, n_jobs=n_jobs)
    model.fit(X[:, :2_000])  # compiles functions for this number of samples
    started = time.perf_counter()
    model.fit(X)
    return {
        "seconds": time.perf_counter() - started,
        "n_iter": model.n_iter_,
        "answer": hash_arrays(np.flatnonzero(model.get_support())),
    }


def run_shc():
    """Return measurements of SHC on the device."""
    return SHC_SIZE | measure_shc(make_data(**SHC_SIZE), n_jobs=1)


def run_cpu_shc():
    """Return measurements of SHC on two cores."""
    X = make_data(**SHC_SIZE).cpu().numpy()
    with limit_to_two_cores():
        return SHC_SIZE | measure_shc(X, n_jobs=2)


@contextmanager
def limit_to_two_cores():
    """Run this process on two cores within a `with` block."""
    before = os.sched_getaffinity(0)
    # Two cores are what the other benchmarks use.
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def describe_environment():
    """Return the device, the number of cores and the versions of packages."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "torch", "array-api-compat")
    return {
        "device": torch.cuda.get_device_name(),
        "cores": os.cpu_count(),
        "versions": {p: version(p) for p in packages} | {"python": platform.python_version()},
    }


RUNS = {
    "search": partial(run_search, PAPER),
    "recommended": partial(run_search, RECOMMENDED),
    "shc": run_shc,
    "cpu-search": partial(run_cpu_search, PAPER),
    "cpu-recommended": partial(run_cpu_search, RECOMMENDED),
    "cpu-shc": run_cpu_shc,
}


def main():
    """Measure the parts named on the command line, and keep the others of gpu.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", choices=RUNS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    warm_up()
    for name in options.runs:
        # The peak is recorded for each part.
        torch.cuda.reset_peak_memory_stats()
        results[name] = RUNS[name]() | {"made_with": describe_environment()}
        results[name]["device_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        print(name, json.dumps(results[name]), flush=True)  # noqa: T201
        # After each part: a long measurement that fails must not lose the others.
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
