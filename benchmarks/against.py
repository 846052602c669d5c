"""Compare this code with version 0.2.0, in turns in one run.

    make against

A process of each version fits the same data in turns, so that a change of the computer's speed
affects both. Printed are the median seconds of each version, the median ratio of neighbouring fits,
and the largest ratio that is accepted.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

# What is measured: repetitions, and the largest accepted ratio.
CASES = {
    "Simulation I, q known": (25, 1.8),
    "Simulation II, q known": (25, 1.8),
    "Simulation I, 11 candidates": (7, 1.8),
    "Simulation I, nothing known": (7, 1.8),
    "Simulation I, association": (25, 1.5),
    "lymphoma, association": (9, 1.5),
    "100 x 20,000, association": (5, 1.5),
    "SHC": (9, 1.5),
    "sparse K-means": (9, 1.5),
    "COSA": (9, 1.5),
}
# The first fit with an empty cache of compiled code, as a program of its own, and the first demo.
FIRST = {
    "first fit": "from mrshc.datasets import make_simulation_1 as make; FIT(make(0).X)",
    "first demo": "import sys, mrshc.__main__ as m; sys.argv = ['mrshc', 'demo']; m.main()",
}
# Large data: shape, and limits of the seconds and of the memory beyond the data in GB.
LARGE = {
    "memory map, association": ((200, 1_000_000), 50, 1.2),
    "5,000 x 20,000, association": ((5000, 20_000), 150, None),
    "5,000 x 20,000, q known": ((5000, 20_000), 120, None),
}
N_FIRST = 5


def say(*words):
    """Print at once, also to a pipe."""
    print(*words, flush=True)  # noqa: T201


def association(**options):
    """Return the recommended estimator of this version or of 0.2.0."""
    import mrshc

    if hasattr(mrshc, "AssociationHC"):
        return mrshc.AssociationHC(**options)
    return mrshc.MrSHC(selection="association", linkage="ward", **options)


def fits(data):
    """Return a function for each case that fits the data."""
    from mrshc import COSA, SHC, MrSHC, SparseKMeans
    from mrshc.datasets import (
        make_clusters_with_own_features,
        make_simulation_1,
        make_simulation_2,
    )

    I, II = make_simulation_1(5001).X, make_simulation_2(5001).X  # noqa: E741
    many = make_clusters_with_own_features(5001).X
    counts = [10, *range(20, 201, 20)]
    found = {
        "Simulation I, q known": lambda: MrSHC(50, n_clusters=3, random_state=0).fit(I),
        "Simulation II, q known": lambda: MrSHC(50, n_clusters=3, random_state=0).fit(II),
        "Simulation I, 11 candidates": lambda: MrSHC(counts, n_clusters=3, random_state=0).fit(I),
        "Simulation I, nothing known": lambda: MrSHC(random_state=0).fit(I),
        "Simulation I, association": lambda: association().fit(I),
        "100 x 20,000, association": lambda: association().fit(many),
        "SHC": lambda: SHC(50).fit(I),
        "sparse K-means": lambda: SparseKMeans(3, n_features_to_select=50, random_state=0).fit(I),
        "COSA": lambda: COSA().fit(I),
    }
    if data:
        lymphoma = np.load(data / "lymphoma.npz", allow_pickle=False)["X"]
        found["lymphoma, association"] = lambda: association().fit(lymphoma)
    return found


def serve(data):
    """Fit what is named in each line of the standard input, and print the seconds."""
    functions = fits(data)
    say(json.dumps(sorted(functions)))
    for line in sys.stdin:
        started = time.perf_counter()
        functions[line.strip()]()
        say(time.perf_counter() - started)


def serve_large(name, path):
    """Fit large data on two cores, and print seconds, passes and the memory in GB."""
    from mrshc import MrSHC

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    if name.startswith("memory map"):
        X = np.load(path, mmap_mode="r")
        small = np.array(X[:, :2000])
    else:
        X = np.load(path)
        small = X[:60, :2000].copy()
    model = association(n_jobs=2)
    if name.endswith("q known"):
        model = MrSHC(50, n_clusters=3, random_state=0, n_jobs=2)
    model.fit(small)  # compiles
    # Pages of a file in memory belong to the system, and are counted if they were touched.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = {
        "seconds": seconds,
        "gb": (peak - before) / 1e6,
        "features": int(model.n_features_selected_),
    }
    say(json.dumps(answer))


class Version:
    """A version of the package in an environment of its own."""

    def __init__(self, python, data):
        self.python, self._data = Path(python).absolute(), ["--data", data] if data else []
        self._process = None

    def start(self):
        """Start the process that fits, and return the names of its cases."""
        self._process = subprocess.Popen(
            [self.python, __file__, "--serve", *map(str, self._data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        return json.loads(self._process.stdout.readline())

    def seconds(self, name):
        """Return the seconds of a fit."""
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def stop(self):
        """End the process."""
        self._process.communicate()

    def first(self, code):
        """Return the seconds of a program whose compiled code is not stored yet."""
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder, "HOME": folder}
            started = time.perf_counter()
            subprocess.run(
                [self.python, "-c", code],
                env=environment,
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            return time.perf_counter() - started

    def large(self, name, path):
        """Return the figures of a fit of large data."""
        command = [self.python, __file__, "--large", name, "--data", path]
        return json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )


def show(name, pairs, limit):
    """Print the medians of both versions and of their ratio."""
    new, old = (statistics.median(part) for part in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    verdict = "met" if ratio <= limit else "missed"
    say(
        f"{name:30} {old:8.3f} {new:8.3f} s  ratio {ratio:5.2f}  limit {limit:4} {verdict}",
    )


def main():
    """Measure the parts that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", nargs="?", help="interpreter of the environment of 0.2.0")
    parser.add_argument(
        "--parts", nargs="+", default=["fits", "first"], choices=["fits", "first", "large"]
    )
    parser.add_argument("--cases", nargs="+", default=[*CASES, *LARGE], help="of fits and large")
    parser.add_argument(
        "--data", type=Path, help="folder with lymphoma.npz; for large data, a file"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--large", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.serve:
        serve(options.data)
    elif options.large:
        serve_large(options.large, options.data)
    else:
        compare(options)


def compare(options):
    """Measure both versions in turns."""
    new, old = (Version(python, options.data) for python in (sys.executable, options.python))
    if "fits" in options.parts:
        names = new.start()
        old.start()
        for name, (repeats, limit) in CASES.items():
            if name in names and name in options.cases:
                for version in (new, old):
                    version.seconds(name)  # compiles
                show(name, [(new.seconds(name), old.seconds(name)) for _ in range(repeats)], limit)
        new.stop()
        old.stop()
    if "first" in options.parts:
        for name, code in FIRST.items():
            made = "import mrshc, warnings; warnings.simplefilter('ignore'); "
            fit = {
                new: "mrshc.AssociationHC().fit",
                old: "mrshc.MrSHC(selection='association', linkage='ward').fit",
            }
            pairs = [
                tuple(v.first(made + code.replace("FIT", fit[v])) for v in (new, old))
                for _ in range(N_FIRST)
            ]
            say([f"{a:.1f}" for a, _ in pairs])
            show(name, pairs, 0.4)
    if "large" in options.parts:
        compare_large(new, old, options.cases)


def compare_large(new, old, names):
    """Measure fits of large data, which are limited in seconds and in memory."""
    for name, (shape, seconds, gb) in LARGE.items():
        if name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            X = np.lib.format.open_memmap(path, "w+", np.float32, shape)
            rng = np.random.default_rng(0)
            for part in np.array_split(X, 20):  # a part of the samples at a time
                part[:] = rng.standard_normal(part.shape, dtype=np.float32)
            third = shape[0] // 3
            X[:third, :200] += 1
            X[third : 2 * third, :200] -= 1
            X.flush()
            del X
            for label, version in (("0.2.0", old), ("new", new)):
                say(
                    f"{name:30} {label:6} {version.large(name, path)}  limits {seconds} s, {gb} GB",
                )


if __name__ == "__main__":
    main()
