"""Measure fits on a GPU and on two CPU cores of the same computer. Run by hand.

    python benchmarks/gpu.py search recommended shc cpu-search cpu-recommended cpu-shc

Measurements and versions of packages are written to benchmarks/gpu.json; `make bench` renders them.
"""

import argparse
import json
import os
import platform
import time
import warnings
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from mrshc.estimators import SHC, AssociationHC, MrSHC, UnsupportedClustersWarning

RESULTS = Path(__file__).with_name("gpu.json")
# Sizes for which the CPU needs minutes and the data fit into the memory of common devices: 4 GB and
# 0.4 GB in single precision.
LARGE, MANY_PAIRS = (1000, 1_000_000), (2000, 50_000)
# Number of features that separate the clusters.
N_INFORMATIVE = 200
# The fits: size of the data, and a function that returns the estimator for a number of threads. SHC
# has a fixed bound, so that one solution is measured and not a choice among several.
FITS = {
    "search": (LARGE, lambda n_jobs: MrSHC(max_rank=3, random_state=0, n_jobs=n_jobs)),
    "recommended": (LARGE, lambda n_jobs: AssociationHC(n_jobs=n_jobs)),
    "shc": (MANY_PAIRS, lambda n_jobs: SHC(l1_bound=12.0, n_jobs=n_jobs)),
}

warnings.simplefilter("ignore", UnsupportedClustersWarning)


def make_data(n, p):
    """Return three clusters on 200 of p features, one standard deviation apart, as float32."""
    torch.manual_seed(0)
    X = torch.randn(n, p, device="cuda")
    X[: n // 3, :N_INFORMATIVE] += 1
    X[n // 3 : 2 * n // 3, :N_INFORMATIVE] -= 1
    return X


def measure(model, X):
    """Return the seconds of a fit, and a summary of its result."""
    started = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - started
    features = np.flatnonzero(model.get_support())
    parts = (features, getattr(model, "labels_", features))
    content = b"".join(np.asarray(part, dtype=np.int64).tobytes() for part in parts)
    return {
        "seconds": seconds,
        "n_features": model.n_features_selected_,
        "rank": getattr(model, "rank_", None),
        "n_clusters": getattr(model, "n_clusters_", None),
        "useful": int(model.get_support()[:N_INFORMATIVE].sum()),
        "answer": sha256(content).hexdigest()[:16],  # by which results are compared
    }


def run(name):
    """Return the measurements of a fit on the device or, for cpu-..., on two cores.

    On the CPU, the fits of large data read a memory map, as users with data of this size would.
    """
    size, make = FITS[name.removeprefix("cpu-")]
    X = make_data(*size)
    small = make_data(size[0], 3000)
    if name in FITS:
        make(-1).fit(small)  # compiles, and initialises the device
        return measure(make(-1), X)
    path = Path("/tmp/mrshc-benchmark.npy")
    np.save(path, X.cpu().numpy())
    del X
    try:
        with limit_to_two_cores():
            make(2).fit(small.cpu().numpy())
            return measure(make(2), np.load(path, mmap_mode="r" if size == LARGE else None))
    finally:
        path.unlink()


@contextmanager
def limit_to_two_cores():
    """Run this process on two cores within a `with` block, as the other benchmarks do."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def seconds_of_pass():
    """Return the least of ten times, in seconds, of computing X'u in single precision."""
    X = make_data(*LARGE)
    u = torch.randn(X.shape[0], device=X.device)
    best = np.inf
    for _ in range(10):
        torch.cuda.synchronize()  # calls return before the device has finished
        started = time.perf_counter()
        X.T @ u
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best


def describe_environment():
    """Return the device, the number of cores and the versions of packages."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "torch", "array-api-compat")
    return {
        "device": torch.cuda.get_device_name(),
        "cores": os.cpu_count(),
        "versions": {p: version(p) for p in packages} | {"python": platform.python_version()},
    }


def main():
    """Measure the fits named on the command line, and keep the others of gpu.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", choices=[*FITS, *(f"cpu-{name}" for name in FITS)])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in options.runs:
        torch.cuda.reset_peak_memory_stats()
        n, p = FITS[name.removeprefix("cpu-")][0]
        results[name] = {"n": n, "p": p} | run(name) | {"made_with": describe_environment()}
        results[name]["device_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        if name in ("search", "recommended"):
            results[name]["pass_seconds"] = seconds_of_pass()
        print(name, json.dumps(results[name]), flush=True)  # noqa: T201
        # After each part: a long measurement that fails must not lose the others.
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
