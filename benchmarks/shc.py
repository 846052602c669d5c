"""Time and peak memory of one fit of SHC, against the same alternation on the explicit matrix D.

Each case runs in a process of its own, BLAS on one thread. Run: python benchmarks/shc.py
"""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# Shape, whether D fits in memory, and what R's sparcl took for one fit on a machine of this kind
# (recorded: seconds, GiB); it has no figure where D does not fit.
CASES = [
    {"n": 60, "p": 500, "explicit": True, "recorded_r": (0.048, None)},
    {"n": 320, "p": 2000, "explicit": True, "recorded_r": (6.927, 2.4)},
    {"n": 1000, "p": 20000, "explicit": False, "recorded_r": None},
]


def simulate(n, p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    X[: n // 3, :50] += 1
    X[n // 3 : n // 2, :50] -= 1
    return X


def lean(X, bound):
    from mrshc.core.pairs import PairDistances
    from mrshc.core.shc import WeightPath

    WeightPath(PairDistances(X, "sqeuclidean"), max_iter=15, tol=1e-4).solve(bound)


def explicit(X, bound):
    """The alternation as it is written down, D held in memory."""
    from mrshc.core.spc import sparse_direction

    i, j = np.triu_indices(len(X), 1)
    D = np.square(X[i] - X[j])
    u = D.sum(axis=1)
    u /= np.linalg.norm(u)
    for _ in range(15):
        indices, weights = sparse_direction(D.T @ u, bound)
        old, u = u, D[:, indices] @ weights
        u /= np.linalg.norm(u)
        if np.abs(u - old).sum() <= 1e-4 * np.abs(old).sum():
            break


def measure(which, n, p):
    """Run in a process of its own: print seconds of the second fit and peak memory of all."""
    X = simulate(n, p)
    solve = {"lean": lean, "explicit": explicit}[which]
    solve(X[:10, :20], 3.0)  # compiles
    started = time.perf_counter()
    solve(X, 5.7)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"seconds": seconds, "peak_mb": peak}))


def in_own_process(which, n, p):
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, which, str(n), str(p)]
    done = subprocess.run(
        command, env=os.environ | threads, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main():
    rows = []
    for case in CASES:
        n, p = case["n"], case["p"]
        row = {"n": n, "p": p, "mrshc": in_own_process("lean", n, p)}
        if case["explicit"]:
            row["explicit D"] = in_own_process("explicit", n, p)
            row["times faster than explicit D"] = (
                row["explicit D"]["seconds"] / row["mrshc"]["seconds"]
            )
        if case["recorded_r"]:
            row["R, recorded seconds and GiB"] = case["recorded_r"]
            row["times faster than R, recorded"] = case["recorded_r"][0] / row["mrshc"]["seconds"]
        rows.append(row)
        sys.stdout.write(json.dumps(row) + "\n")
    result = {"python": platform.python_version(), "numpy": np.__version__, "cases": rows}
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
