"""Time and peak memory of fits with many samples. Run by hand.

Usage: python benchmarks/many_samples.py [CASE ...]

The cases are those of `CASES`; without an argument, all are run. Each case runs in a process of its
own, with two threads. It needs up to 6 GB of memory and, on two cores, up to half an hour. Linux is
required, since the peak of the memory is read from /proc. The results are written to
benchmarks/many_samples.json, and `make bench` renders them. The fields are:

- case, n, p: name of the case, and the number of samples and features;
- seconds, cpu_seconds: wall-clock time and processor time of the fit;
- peak_mb: largest memory of the process, without the memory before the data were made;
- data_mb, matrix_mb: size of the data, and of one matrix of the distances between the samples;
- n_matrices: (peak_mb - data_mb) / matrix_mb;
- n_features, n_clusters, digest: the result, and a hash of its features, labels and tree.
"""

import json
import subprocess
import sys
import time
import warnings
from hashlib import sha256
from pathlib import Path

import numpy as np
from cases import make_model

# For each case: the number of samples, of features, the estimator and its parameters.
KNOWN = {"n_features_to_select": 50}
CASES = {
    "recommended_5000": (5_000, 20_000, "AssociationHC", {}),
    "known_5000": (5_000, 20_000, "MrSHC", KNOWN),
    "recommended_10000": (10_000, 20_000, "AssociationHC", {}),
    "known_10000": (10_000, 20_000, "MrSHC", KNOWN),
}
RESULTS = Path(__file__).with_name("many_samples.json")
N_CLUSTERS, N_INFORMATIVE = 4, 50
N_JOBS = 2


def simulate(n, p):
    """Return standard normal data, in which some features have different means in the clusters."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p))
    labels = rng.integers(N_CLUSTERS, size=n)
    centres = rng.standard_normal((N_CLUSTERS, N_INFORMATIVE))
    X[:, rng.choice(p, N_INFORMATIVE, replace=False)] += centres[labels]
    return X


def memory_mb(field):
    """Return a field of the status of this process, such as VmHWM, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith(field))
    return int(line.split()[1]) / 1000


def run(case):
    """Fit the estimator of a case, and return the line of results as a dict."""
    n, p, *model = CASES[case]
    estimator = make_model(*model, n_jobs=N_JOBS)
    # The first fit compiles or loads all functions, including those for many samples. Its data are
    # small; their memory is part of the memory before the fit.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(simulate(2_000, 2_100))
    before = memory_mb("VmRSS")
    X = simulate(n, p)
    started, cpu_started = time.perf_counter(), time.process_time()
    estimator.fit(X)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    peak, data, matrix = memory_mb("VmHWM") - before, X.nbytes / 1e6, 8 * n * n / 1e6
    features = estimator.get_support(indices=True)
    result = (features, estimator.labels_, estimator.linkage_matrix_)
    return {
        "case": case,
        "n": n,
        "p": p,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "peak_mb": round(peak),
        "data_mb": round(data),
        "matrix_mb": round(matrix),
        "n_matrices": round((peak - data) / matrix, 2),
        "n_features": len(features),
        "n_clusters": int(estimator.labels_.max()) + 1,
        "digest": sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in result)).hexdigest(),
    }


def main(names):
    """Run each case in a process of its own, and keep the results of the others."""
    for name in names or CASES:
        command = [sys.executable, __file__, "--here", name]
        line = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        sys.stdout.write(line)
        results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        results[name] = json.loads(line)
        ordered = {case: results[case] for case in CASES if case in results}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        sys.stdout.write(json.dumps(run(sys.argv[2])) + "\n")
    else:
        main(sys.argv[1:])
