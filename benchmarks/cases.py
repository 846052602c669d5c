"""What is measured. Each function runs in a process of its own and returns plain figures."""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.impute import KNNImputer

from mrshc import SHC, HighVarianceHC, MrSHC, UnsupportedClustersWarning
from mrshc.datasets import (
    make_noise,
    make_simulation_1,
    make_simulation_2,
    with_missing_cells,
)
from mrshc.io import read_table
from mrshc.metrics import feature_recall
from mrshc.preprocessing import NeighborImputer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

DESIGNS = {"I": make_simulation_1, "II": make_simulation_2}
KNOWN, UNKNOWN = 50, (10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200)
FIRST_SEED = 5001

warnings.simplefilter("ignore", UnsupportedClustersWarning)


def seconds_of(function, repeats=1):
    """Best of some runs: what else the machine does only ever adds to it."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def wide(n, p, seed=0):
    """Three clusters on 50 of p features, as in Simulation I."""
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[: n // 3, :50] += 1
    X[n // 3 : 2 * n // 3, :50] -= 1
    return X


def warm_up():
    """Compile, or load what was compiled."""
    X = wide(20, 60)
    for data in (X, np.asfortranarray(X)):
        MrSHC(5, random_state=0).fit(data)
    SHC(5).fit(X)


def end_to_end(design, known, n_jobs, draws):
    """Median over draws of the seconds of a fit."""
    warm_up()
    q = KNOWN if known else UNKNOWN
    data = [DESIGNS[design](FIRST_SEED + draw).X for draw in range(draws)]
    return statistics.median(
        seconds_of(lambda X=X: MrSHC(q, random_state=0, n_jobs=n_jobs).fit(X), repeats=3)
        for X in data
    )


def twin(design, known):
    """Seconds of the plain twin, and of a fit, on the same draw and one core; same answer."""
    import plain_twin

    warm_up()
    X = DESIGNS[design](FIRST_SEED).X
    targets = (KNOWN,) if known else UNKNOWN
    model = MrSHC(targets, random_state=0)
    ours = seconds_of(lambda: model.fit(X), repeats=3)
    entropy = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    started = time.perf_counter()
    _, rank, _, features, labels = plain_twin.mrshc(X, targets, (1, 2, 3, 4, 5), entropy=entropy)
    seconds = time.perf_counter() - started
    same = (
        rank == model.rank_
        and np.array_equal(features, np.flatnonzero(model.get_support()))
        and np.array_equal(labels, model.labels_)
    )
    return {"twin": seconds, "ours": ours, "same_answer": bool(same)}


def classical(design, draws):
    """Median seconds of hierarchical clustering on all features."""
    data = [DESIGNS[design](FIRST_SEED + draw).X for draw in range(draws)]
    HighVarianceHC(500).fit(data[0])
    return statistics.median(
        seconds_of(lambda X=X: HighVarianceHC(500).fit(X), repeats=5) for X in data
    )


def profile(design):
    """Seconds that a fit with unknown q spends in each part, on one core."""
    from mrshc.core import search
    from mrshc.core.sparse_pca import l1_path as sparsity
    from mrshc.core.trees import pruning

    warm_up()
    spent = dict.fromkeys(("components", "gap tests", "distances and trees", "silhouettes"), 0.0)

    def timed(part, function):
        def run(*args, **kwargs):
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - started

        return run

    sparsity.next_component = timed("components", sparsity.next_component)
    pruning.gap_curve = timed("gap tests", pruning.gap_curve)
    search.pairwise_distances = timed("distances and trees", search.pairwise_distances)
    search.agglomerate = timed("distances and trees", search.agglomerate)
    search.average_silhouette = timed("silhouettes", search.average_silhouette)
    whole = seconds_of(lambda: MrSHC(UNKNOWN, random_state=0).fit(DESIGNS[design](FIRST_SEED).X))
    return spent | {"rest": whole - sum(spent.values())}


def fit_of_size(n, p, q, max_rank, n_clusters, n_jobs, seed=0):
    """Seconds of a fit, and what it added to the memory of the process, as a multiple of X."""
    warm_up()
    X = wide(n, p, seed)
    model = MrSHC(
        "auto" if q is None else q,
        max_rank=max_rank,
        n_clusters="auto" if n_clusters is None else n_clusters,
        random_state=0,
        n_jobs=n_jobs,
    )
    before = _forget_peak()
    seconds = seconds_of(lambda: model.fit(X))
    peak = _memory_mb("VmHWM")
    return {
        "seconds": seconds,
        "peak_mb": peak,
        "multiple_of_x": 1 + (peak - before) * 2**20 / X.nbytes,
    }


def shc(n, p, explicit):
    """Seconds and peak memory of one fit of SHC or of the alternation on the explicit matrix D."""
    warm_up()
    X = np.random.default_rng(0).normal(size=(n, p))
    X[: n // 3, :50] += 1
    X[n // 3 : n // 2, :50] -= 1
    solve = _shc_on_explicit_pairs if explicit else SHC(l1_bound=5.7).fit
    _forget_peak()
    return {"seconds": seconds_of(lambda: solve(X)), "peak_mb": _memory_mb("VmHWM")}


def _shc_on_explicit_pairs(X, l1_bound=5.7):
    """The alternation as it is written down, D held in memory."""
    from mrshc.core.kernels.sparse_direction import sparse_direction

    i, j = np.triu_indices(len(X), 1)
    D = np.square(X[i] - X[j])
    u = D.sum(axis=1)
    u /= np.linalg.norm(u)
    for _ in range(15):
        indices, weights = sparse_direction(D.T @ u, l1_bound)
        old, u = u, D[:, indices] @ weights
        u /= np.linalg.norm(u)
        if np.abs(u - old).sum() <= 1e-4 * np.abs(old).sum():
            break


def early_stopping(draws):
    """Verdicts of early stopping and of all reference samples, on every node of many searches."""
    from mrshc.core.trees import pruning

    plain = pruning.gap_curve
    counts = {"nodes": 0, "other_verdict": 0, "drawn": 0}

    def both(X, distances, *, partitions, rng, settings):
        state = rng.bit_generator.state
        early = plain(X, distances, partitions=partitions, rng=rng, settings=settings)
        rng.bit_generator.state = state
        everything = type(settings)(
            linkage=settings.linkage,
            metric=settings.metric,
            n_references=settings.n_references,
            stop_early=False,
        )
        full = plain(X, distances, partitions=partitions, rng=rng, settings=everything)
        counts["nodes"] += 1
        counts["other_verdict"] += early.n_clusters != full.n_clusters
        counts["drawn"] += len(early.reference)
        return full

    pruning.gap_curve = both
    for draw in range(draws):
        seed = 9000 + draw
        linkage = ("complete", "average", "ward")[draw % 3]
        for X in (
            make_simulation_1(seed).X,
            make_simulation_2(seed).X,
            make_simulation_1(seed, mu=0.7).X,
            make_simulation_2(seed, mu=0.8).X,
            make_simulation_1(seed, sizes=(40, 15, 5)).X,
            make_simulation_1(seed, noise="t3").X,
            make_noise(seed).X,
            make_noise(seed, noise="t3").X,
        ):
            MrSHC(random_state=seed, linkage=linkage).fit(X)
    return counts


def convergence(design, max_iter, draws):
    """What at most so many alternations make of known q: time, and how q and recall fare."""
    warm_up()
    fits = []
    for draw in range(draws):
        data = DESIGNS[design](FIRST_SEED + draw)
        model = _WithIterations(KNOWN, random_state=0)
        model.max_iter = max_iter
        seconds = seconds_of(lambda X=data.X, model=model: model.fit(X))
        reached = model.search_results_["reached"].mean()
        fits.append((seconds, reached, feature_recall(data.support, model.get_support())))
    seconds, reached, recall = np.mean(fits, axis=0)
    return {"seconds": seconds, "reached": reached, "recall": recall}


class _WithIterations(MrSHC):
    """MrSHC with another number of alternations than its own."""

    max_iter = 20

    def _search_plan(self, matrix, gap):
        return replace(super()._search_plan(matrix, gap), max_iter=self.max_iter)


def beyond(design, draws):
    """Seconds of a search with the default candidates, and of what goes beyond, on one core.

    All on the same draws and in turns, so that what else the machine does hits all of them.
    Refining follows the search: it is timed by itself, as the difference of two fits would be
    that of their noise.
    """
    from mrshc.core import search

    warm_up()
    plain, steps = search._refine_result, []

    def refined(*args):
        started = time.perf_counter()
        result = plain(*args)
        steps.append(time.perf_counter() - started)
        return result

    search._refine_result = refined
    cases = {
        "search": (0.0, {}),
        "refine": (0.0, {"refine": True}),
        "evidence": (0.0, {"selection": "evidence"}),
        "robust": (0.0, {"robust": True}),
        "5 % missing": (0.05, {}),
        "20 % missing": (0.2, {}),
    }
    seconds = {name: [] for name in cases}
    for draw in range(draws):
        data = DESIGNS[design](FIRST_SEED + draw)
        best = dict.fromkeys(cases, np.inf)
        steps.clear()
        for _ in range(3):
            for name, (share, options) in cases.items():
                X = with_missing_cells(data, draw, share=share).X
                model = MrSHC(random_state=0, n_jobs=1, **options)
                best[name] = min(best[name], seconds_of(lambda m=model, X=X: m.fit(X)))
        best["refine"] = best["search"] + min(steps)
        for name in cases:
            seconds[name].append(best[name])
    return {name: statistics.median(s) for name, s in seconds.items()}


def far(n, p, where, seed=0):
    """A search with all candidates and three ranks, in data of single precision that live there.

    `where`: "memory" (all columns are looked at in each step, as in smaller data), "map" (a memory
    map) or "cluster" (a dask array on two worker processes, one of which is killed on the way).
    Peak of what the process holds beside the page cache.
    """
    from mrshc.core.data import centre_data

    centre_data._MANY_FEATURES = np.inf
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        _write_wide(path, n, p, seed)
        model = MrSHC(max_rank=3, random_state=0, n_jobs=2)
        with _PeakOfOwnMemory() as peak:
            if where == "cluster":
                seconds, killed = _fit_on_a_cluster(model, path, p)
            else:
                X = np.load(path, mmap_mode=None if where == "memory" else "r")
                seconds, killed = seconds_of(lambda: model.fit(X)), None
    found = np.concatenate([np.flatnonzero(model.get_support()), model.labels_])
    return {
        "seconds": seconds,
        "peak_mb": peak.mb,
        "passes": getattr(model, "n_passes_", None),
        "killed_after": killed,
        "answer": sha256(found.astype(np.int64).tobytes()).hexdigest()[:16],
    }


def _write_wide(path, n, p, seed):
    """Write three clusters on 200 of p features, a sample at a time."""
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, p))
    rng = np.random.default_rng(seed)
    for i in range(n):
        X[i] = rng.standard_normal(p, dtype=np.float32)
        X[i, :200] += (1, -1, 0)[3 * i // n]
    X.flush()


def _fit_on_a_cluster(model, path, p):
    """Seconds of a fit to a dask array, and after how many of them a worker was killed."""
    import dask.array
    import distributed

    chunk = p // 32
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        X = dask.array.concatenate(
            [
                dask.array.from_delayed(
                    dask.delayed(_columns_of_file)(str(path), start, start + chunk),
                    shape=(len(np.load(path, mmap_mode="r")), chunk),
                    dtype=np.float32,
                )
                for start in range(0, p, chunk)
            ],
            axis=1,
        )
        pids = list(client.run(os.getpid).values())
        wait = 20.0
        murder = threading.Timer(wait, os.kill, (pids[0], signal.SIGKILL))
        murder.start()
        seconds = seconds_of(lambda: model.fit(X))
        murder.cancel()
        assert seconds > wait, "the fit was over before a worker was killed"
    return seconds, wait


def _columns_of_file(path, start, stop):
    return np.array(np.load(path, mmap_mode="r")[:, start:stop])


class _PeakOfOwnMemory:
    """The most memory that the process held, files in the page cache not counted. Linux only."""

    def __enter__(self):
        self.mb = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._done.wait(0.05):
            self.mb = max(self.mb, _memory_mb("RssAnon"))

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


def start_up():
    """Seconds that importing mrshc adds, and that the command's help takes."""
    base = "import numpy, sklearn.base"

    def of(*command):
        return seconds_of(
            lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), repeats=5
        )

    python = sys.executable
    return {
        "import mrshc": of(python, "-c", f"{base}; import mrshc") - of(python, "-c", base),
        "from mrshc import MrSHC": of(python, "-c", f"{base}; from mrshc import MrSHC")
        - of(python, "-c", base),
        "mrshc --help": of(str(Path(python).with_name("mrshc")), "--help"),
    }


def reading(rows, columns, digits, ours):
    """Read a table of text, with ours or with pandas; the peak as a multiple of the numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.tsv")
        rng = np.random.default_rng(0)
        with path.open("w", encoding="utf-8") as file:
            file.write("\t".join(["gene", *(f"s{i}" for i in range(columns))]) + "\n")
            for i in range(rows):
                cells = (f"{x:.{digits}g}" for x in rng.normal(size=columns))
                file.write("\t".join([f"g{i}", *cells]) + "\n")
        read = read_table if ours else partial(pd.read_csv, sep="\t", index_col=0)
        before = _forget_peak()
        seconds = seconds_of(lambda: read(path))
        peak = _memory_mb("VmHWM") - before
    return {"seconds": seconds, "multiple_of_x": peak * 2**20 / (8 * rows * columns)}


def imputation(n, p, share, ours):
    """Fill gaps from the 5 nearest features, with ours or with scikit-learn's imputer."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    X[rng.random(X.shape) < share] = np.nan
    fill = NeighborImputer().fit_transform if ours else _impute_transposed
    before = _forget_peak()
    seconds = seconds_of(lambda: fill(X))
    return {"seconds": seconds, "peak_mb": _memory_mb("VmHWM") - before}


def _impute_transposed(X):
    return KNNImputer().fit_transform(X.T).T


def _forget_peak():
    """Let the peak of memory begin anew, and return what is in use. Linux only."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory_mb("VmRSS")


def _memory_mb(entry):
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, value = line.split(":")
        if name == entry:
            return int(value.split()[0]) / 1024
    raise KeyError(entry)
