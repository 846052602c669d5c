"""The search and SHC on a GPU, beside two CPU cores of the same machine. Run by hand.

    python benchmarks/gpu.py search shc cpu-search cpu-shc

Figures go to benchmarks/gpu.json, with what they were made with; `make bench` renders them.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections import defaultdict
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from mrshc import SHC, MrSHC, UnsupportedClustersWarning
from mrshc.core import search
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.sparse_pca import certificate_checking, l1_path
from mrshc.core.sparse_pca.certificates import CertificateBatch

RESULTS = Path(__file__).with_name("gpu.json")
SEARCH = {"n": 1000, "p": 1_000_000}
SHC_SIZE = {"n": 2000, "p": 50_000}
N_USEFUL = 200

warnings.simplefilter("ignore", UnsupportedClustersWarning)


def data(n, p, device="cuda"):
    """Three clusters on 200 of p features, one standard deviation apart, in single precision."""
    torch.manual_seed(0)
    X = torch.randn(n, p, device=device)
    X[: n // 3, :N_USEFUL] += 1
    X[n // 3 : 2 * n // 3, :N_USEFUL] -= 1
    return X


@contextmanager
def timed(spent, owner, name, part):
    """Add up the seconds that a function takes."""
    plain = getattr(owner, name)

    def run(*args, **kwargs):
        started = time.perf_counter()
        try:
            return plain(*args, **kwargs)
        finally:
            spent[part] += time.perf_counter() - started

    setattr(owner, name, run)
    try:
        yield
    finally:
        setattr(owner, name, plain)


def fitted(X, n_jobs):
    """Seconds of a search, of its parts, and what it found."""
    spent = defaultdict(float)
    model = MrSHC(max_rank=3, random_state=0, n_jobs=n_jobs)
    with (
        timed(spent, DataMatrix, "summary", "statistics"),
        timed(spent, CentredBlocks, "_sum_gram", "inner products"),
        timed(spent, l1_path, "initial_pass", "starts"),
        timed(spent, certificate_checking, "_find_violations", "proofs"),
        timed(spent, CertificateBatch, "check", "of them tests"),
        timed(spent, search, "_search_feature_sets", "components and proofs"),
        timed(spent, search, "_choose_candidate", "trees and gap tests"),
    ):
        started = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "parts": dict(spent),
        "passes": model.n_passes_,
        "n_features": model.n_features_selected_,
        "rank": model.rank_,
        "n_clusters": model.n_clusters_,
        "useful": int(model.get_support()[:N_USEFUL].sum()),
        "answer": digest(np.flatnonzero(model.get_support()), model.labels_),
    }


def digest(*arrays):
    """A short name for an answer: equal answers have equal names."""
    content = b"".join(np.asarray(a, dtype=np.int64).tobytes() for a in arrays)
    return sha256(content).hexdigest()[:16]


def warm_up():
    """Compile, and wake the device."""
    small = data(40, 3000)
    for X in (small, small.cpu().numpy()):
        MrSHC((5, 10), max_rank=2, random_state=0, n_jobs=2).fit(X)
        SHC(l1_bound=3.0).fit(X)
    fitted(data(40, 3000), 2)


def seconds_of_a_pass(X):
    """Seconds of X'u in single precision, the best of ten."""
    u = torch.randn(X.shape[0], device=X.device)
    best = np.inf
    for _ in range(10):
        torch.cuda.synchronize()
        started = time.perf_counter()
        X.T @ u
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best


def run_search():
    X = data(**SEARCH)
    found = fitted(X, n_jobs=-1)
    return SEARCH | found | {"pass_seconds": seconds_of_a_pass(X)}


def run_cpu_search():
    path = Path("/tmp/mrshc-benchmark.npy")
    np.save(path, data(**SEARCH).cpu().numpy())
    try:
        with two_cores():
            return SEARCH | fitted(np.load(path, mmap_mode="r"), n_jobs=2)
    finally:
        path.unlink()


def fitted_shc(X, n_jobs):
    model = SHC(l1_bound=12.0, n_jobs=n_jobs)
    started = time.perf_counter()
    model.fit(X)
    return {
        "seconds": time.perf_counter() - started,
        "n_iter": model.n_iter_,
        "answer": digest(np.flatnonzero(model.get_support())),
    }


def run_shc():
    return SHC_SIZE | fitted_shc(data(**SHC_SIZE), n_jobs=1)


def run_cpu_shc():
    X = data(**SHC_SIZE).cpu().numpy()
    with two_cores():
        return SHC_SIZE | fitted_shc(X, n_jobs=2)


@contextmanager
def two_cores():
    """Hold this process to two cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def made_with():
    packages = ("numpy", "scipy", "scikit-learn", "numba", "torch", "array-api-compat")
    return {
        "device": torch.cuda.get_device_name(),
        "cores": os.cpu_count(),
        "versions": {p: version(p) for p in packages} | {"python": platform.python_version()},
    }


RUNS = {"search": run_search, "cpu-search": run_cpu_search, "shc": run_shc, "cpu-shc": run_cpu_shc}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", choices=RUNS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    warm_up()
    for name in options.runs:
        torch.cuda.reset_peak_memory_stats()
        results[name] = RUNS[name]() | {"made_with": made_with()}
        results[name]["device_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        print(name, json.dumps(results[name]), flush=True)  # noqa: T201
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
