"""Cases of the benchmarks: each function runs in a process of its own and returns its figures."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from functools import partial
from hashlib import sha256
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.impute import KNNImputer
from sklearn.metrics import rand_score

import mrshc
from mrshc import (
    COSA,
    SHC,
    AssociationHC,
    HighVarianceHC,
    MrSHC,
    SparseKMeans,
    UnsupportedClustersWarning,
)
from mrshc.core import gap, sparse_components
from mrshc.core.data import as_matrix
from mrshc.core.kernels import soft_threshold
from mrshc.datasets import (
    make_noise,
    make_simulation_1,
    make_simulation_2,
)
from mrshc.io import read_table
from mrshc.metrics import feature_recall
from mrshc.preprocessing import NeighborImputer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

# The paper's simulations, its known number of features, and its candidates where it is unknown.
DESIGNS = {"I": make_simulation_1, "II": make_simulation_2}
KNOWN, UNKNOWN = 50, (10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200)
# Seed of the first draw, as in the studies of tables 1 to 3.
FIRST_SEED = 5001

# Only time and memory are of interest here, not the clusters.
warnings.simplefilter("ignore", UnsupportedClustersWarning)


def seconds_of(function, repeats=1):
    """Return the least time of some calls of a function, in seconds.

    The least, since other processes of the computer can only add to it.
    """
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def make_wide_data(n, p, seed=0):
    """Return three clusters on 50 of p features, as in Simulation I, of shape (n, p)."""
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[: n // 3, :50] += 1
    X[n // 3 : 2 * n // 3, :50] -= 1
    return X


def warm_up():
    """Compile all functions, or load them from the cache, so that no measurement includes it."""
    X = make_wide_data(20, 60)
    for model in (MrSHC(5), AssociationHC(), SHC(5)):
        model.fit(X)


def make_model(estimator, given, n_jobs=None):
    """Return an estimator with given parameters, and a random state if it has one."""
    model = getattr(mrshc, estimator)(**given)
    others = {"n_jobs": n_jobs, "random_state": 0}
    return model.set_params(**{k: v for k, v in others.items() if k in model.get_params()})


def end_to_end(design, known, n_jobs, draws):
    """Return the median over draws of the seconds of a fit."""
    warm_up()
    q = KNOWN if known else UNKNOWN
    data = [DESIGNS[design](FIRST_SEED + draw).X for draw in range(draws)]
    return statistics.median(
        seconds_of(lambda X=X: MrSHC(q, random_state=0, n_jobs=n_jobs).fit(X), repeats=3)
        for X in data
    )


def twin(design, known):
    """Return the seconds of the plain twin and of a fit on one core, and whether they agree."""
    # It is in the folder of the tests, added to the path above.
    import plain_twin

    warm_up()
    X = DESIGNS[design](FIRST_SEED).X
    targets = (KNOWN,) if known else UNKNOWN
    model = MrSHC(targets, random_state=0)
    ours = seconds_of(lambda: model.fit(X), repeats=3)
    # The seed that MrSHC draws from random_state=0, so that both use the same reference samples.
    entropy = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    started = time.perf_counter()
    _, rank, _, features, labels = plain_twin.mrshc(X, targets, (1, 2, 3, 4, 5), entropy=entropy)
    seconds = time.perf_counter() - started
    same = (
        rank == model.rank_
        and np.array_equal(features, np.flatnonzero(model.get_support()))
        # The plain twin numbers clusters by their first sample, MrSHC by the leaves of the tree.
        and rand_score(labels, model.labels_) == 1
    )
    return {"twin": seconds, "ours": ours, "same_answer": bool(same)}


def classical(design, draws):
    """Return the median seconds of hierarchical clustering on all features."""
    data = [DESIGNS[design](FIRST_SEED + draw).X for draw in range(draws)]
    HighVarianceHC(500).fit(data[0])  # compiles
    return statistics.median(
        seconds_of(lambda X=X: HighVarianceHC(500).fit(X), repeats=5) for X in data
    )


def fit_of_size(n, p, estimator, given, n_jobs=1, draws=1):
    """Return the median seconds of fits of an estimator with given parameters, and their memory.

    Memory is the peak of the process in the first fit, and that fit's memory as a multiple of the
    size of X.
    """
    warm_up()
    model = make_model(estimator, given, n_jobs)
    seconds, memory = [], {}
    for seed in range(draws):
        X = make_wide_data(n, p, seed)
        before = _reset_peak_memory()
        seconds.append(seconds_of(lambda X=X: clone(model).fit(X)))
        # Later fits may use memory that the first one has left to the process.
        if not memory:
            peak = _memory_mb("VmHWM")
            # X was made before the memory was measured: it counts as one.
            multiple = 1 + (peak - before) * 2**20 / X.nbytes
            memory = {"peak_mb": peak, "multiple_of_x": multiple}
    return {"seconds": statistics.median(seconds)} | memory


def shc(n, p, explicit):
    """Return seconds and peak memory of SHC, or of its alternation on the explicit matrix D."""
    warm_up()
    X = np.random.default_rng(0).normal(size=(n, p))
    X[: n // 3, :50] += 1
    X[n // 3 : n // 2, :50] -= 1
    solve = _shc_on_explicit_pairs if explicit else SHC(l1_bound=5.7).fit
    _reset_peak_memory()
    return {"seconds": seconds_of(lambda: solve(X)), "peak_mb": _memory_mb("VmHWM")}


def _shc_on_explicit_pairs(X, l1_bound=5.7):
    """Run the alternation of SHC as the paper states it, with the matrix D of pairs in memory."""
    i, j = np.triu_indices(len(X), 1)
    D = np.square(X[i] - X[j])
    u = D.sum(axis=1)
    u /= np.linalg.norm(u)
    weights, depths = np.empty((2, X.shape[1]))
    # Iterations and tolerance are the defaults of SHC.
    for _ in range(15):
        soft_threshold(D.T @ u, weights.size, l1_bound, weights, depths)
        indices = np.flatnonzero(weights)
        old, u = u, D[:, indices] @ weights[indices]
        u /= np.linalg.norm(u)
        if np.abs(u - old).sum() <= 1e-4 * np.abs(old).sum():
            break


def one_fit(estimator, given, n, p):
    """Return seconds and peak memory of one fit of an estimator with the given parameters."""
    X = make_wide_data(n, p)
    model = make_model(estimator, given)
    clone(model).fit(make_wide_data(30, 600))  # compiles
    _reset_peak_memory()
    return {"seconds": seconds_of(lambda: model.fit(X)), "peak_mb": _memory_mb("VmHWM")}


def sparse_kmeans(n, p, in_r):
    """Return the seconds of sparse K-means with its permutation gap, and of the same in R.

    The R script is written from the paper and uses the compiled K-means of R. Both have the same
    candidate bounds and permutations. `in_r` is "same starts" if R has the same number of random
    starts and of rounds, too, or "few starts" if it has random starts in the first K-means only,
    and at most 6 rounds.
    """
    X = make_wide_data(n, p)
    estimator = SparseKMeans(3, random_state=0)
    estimator.fit(X[:20, :60])  # compiles
    ours = seconds_of(lambda: estimator.fit(X))
    found = estimator.search_results_
    rounds = {"same starts": (estimator.n_init, 15), "few starts": (0, 6)}[in_r]
    options = [estimator.n_permutations, estimator.n_init, *rounds]
    script = Path(__file__).with_name("sparse_kmeans.R")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.csv")
        np.savetxt(file, X, delimiter=",")
        arguments = [file, "3", ",".join(map(repr, found["l1_bound"].tolist())), *map(str, options)]
        run = subprocess.run(["Rscript", script, *arguments], stdout=subprocess.PIPE, check=True)
    figures = json.loads(run.stdout)
    # Both must solve the same problem. R may end in a slightly worse local maximum.
    ratios = np.array(figures["criteria"]) / found["criterion"]
    if not np.all((ratios > 0.95) & (ratios < 1 + 1e-6)):
        raise RuntimeError(f"The criteria of R are not those of mrshc: {ratios}")
    row = {"method": "sparse K-means with 10 bounds and 10 permutations", "n": n, "p": p}
    return row | {"ours": ours, "peer": figures["seconds"], "peer_name": f"R, {in_r}"}


def cosa(n, p):
    """Return the seconds of COSA, and of plain compiled loops for the same distances."""
    from plain_cosa import plain_cosa

    X = make_wide_data(n, p)
    estimator = COSA()
    for compile_it in (estimator.fit, plain_cosa):
        compile_it(X[:20, :60])
    ours = seconds_of(lambda: estimator.fit(X))
    distances = []
    peer = seconds_of(lambda: distances.append(plain_cosa(X)))
    if not np.allclose(estimator.dissimilarity_, distances[0], rtol=1e-9, atol=0):
        raise RuntimeError("The distances differ.")
    row = {"method": "COSA", "n": n, "p": p, "ours": ours, "peer": peer}
    return row | {"peer_name": "compiled loops over pairs and features"}


def spike_and_slab(design, draws):
    """Return the mean seconds of SHC with the spike-and-slab lasso over some draws."""
    warm_up()
    data = [DESIGNS[design](FIRST_SEED + draw).X for draw in range(draws)]
    ours = statistics.mean(
        seconds_of(lambda X=X: SHC(penalty="ssl", random_state=0).fit(X)) for X in data
    )
    n, p = data[0].shape
    return {"method": f"SHC-SSL, Simulation {design}", "n": n, "p": p, "ours": ours}


def early_stopping(first, draws):
    """Compare decisions by early stopping and by all reference samples, on many nodes.

    Returns the numbers of searches, nodes, different decisions, and reference samples drawn.
    """
    test, is_decided = gap.gap_test, gap._is_decided
    counts = {"searches": 0, "nodes": 0, "other_verdict": 0, "drawn": 0}

    def compare_both(X, distances, is_second, rng, **options):
        state = rng.bit_generator.state
        early = test(X, distances, is_second, rng, **options)
        # Both draw the same reference samples, the second all of them.
        rng.bit_generator.state = state
        gap._is_decided = lambda *_: False
        full = test(X, distances, is_second, rng, **options)
        gap._is_decided = is_decided
        counts["nodes"] += 1
        counts["other_verdict"] += early.is_split != full.is_split
        counts["drawn"] += len(early.reference)
        return full

    # Replaced for good: the process ends after this case.
    gap.gap_test = compare_both
    # Clear and weak clusters, unequal sizes, heavy tails and pure noise: many kinds of nodes.
    for draw in range(first, first + draws):
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
            counts["searches"] += 1
    return counts


def convergence(design, max_iter, draws):
    """Return time, share of searches that hit q, and recall for a number of alternations."""
    warm_up()
    fits = []
    limited = partial(sparse_components.ComponentPath, max_iter=max_iter)
    for draw in range(draws):
        data = DESIGNS[design](FIRST_SEED + draw)
        model = MrSHC(KNOWN, random_state=0)
        with mock.patch.object(sparse_components, "ComponentPath", limited):
            seconds = seconds_of(lambda X=data.X, model=model: model.fit(X))
        reached = model.search_results_["reached"].mean()
        fits.append((seconds, reached, feature_recall(data.support, model.get_support())))
    seconds, reached, recall = np.mean(fits, axis=0)
    return {"seconds": seconds, "reached": reached, "recall": recall}


def _values_of(design, draw):
    """Return the data matrix of a draw of a simulation, or of the lymphomas of the paper.

    The lymphomas are read from the folder that the environment variable MRSHC_DATA names.
    """
    if design != "lymphoma":
        return DESIGNS[design](FIRST_SEED + draw).X
    with np.load(Path(os.environ["MRSHC_DATA"]) / "lymphoma.npz", allow_pickle=False) as content:
        return content["X"].astype(np.float64)


def beyond(design, draws, repeats):
    """Return the seconds of a search and of options beyond the paper, on one core.

    `design` is "I", "II" or "lymphoma", which has a single draw.
    All are measured on the same draws and in turn, so that other processes affect all of them
    alike.
    """
    warm_up()
    paper = MrSHC(random_state=0)
    # By name: share of missing values, estimator.
    cases = {
        "search": (0.0, paper),
        "association": (0.0, AssociationHC()),
        "robust": (0.0, clone(paper).set_params(robust=True)),
        "5 % missing": (0.05, paper),
        "20 % missing": (0.2, paper),
    }
    seconds = {name: [] for name in cases}
    for draw in range(draws):
        complete = _values_of(design, draw)
        order = np.random.default_rng(draw).uniform(size=complete.shape)
        best = dict.fromkeys(cases, np.inf)
        # The best of several rounds: other processes can only add to the time.
        for _ in range(repeats):
            for name, (share, model) in cases.items():
                X = np.where(order < share, np.nan, complete)
                best[name] = min(best[name], seconds_of(lambda m=model, X=X: m.fit(X)))
        for name in cases:
            seconds[name].append(best[name])
    return {name: statistics.median(s) for name, s in seconds.items()}


def out_of_core(n, p, storage, estimator="MrSHC", seed=0):
    """Return figures of a fit in single precision; MrSHC with all candidates and three ranks.

    Parameters
    ----------
    n, p : int
        Numbers of samples and features.
    storage : {"memory", "map", "cluster"}
        An array in memory, a memory map, or a Dask array on two worker processes, one of which is
        killed during the search.
    estimator : {"MrSHC", "AssociationHC"}
        The method.
    seed : int, default=0
        Seed of the data.

    Returns
    -------
    dict
        Seconds, peak memory without the page cache, number of passes, seconds until the worker was
        killed, and a hash of features and labels, by which results are compared.
    """
    warm_up()
    if storage == "memory":  # the standard of comparison: all features, without a working set
        sparse_components._ALL_VALUES = np.inf
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        _write_wide_data(path, n, p, seed)
        # Three ranks keep the largest case within minutes.
        model = make_model(estimator, {"max_rank": 3} if estimator == "MrSHC" else {}, n_jobs=2)
        with _PeakAnonymousMemory() as peak:
            if storage == "cluster":
                seconds, passes, killed_after = _fit_on_cluster(model, path, p)
            else:
                X = np.load(path, mmap_mode=None if storage == "memory" else "r")
                (seconds, passes), killed_after = _fit_and_count(model, X), None
    answer = np.concatenate([np.flatnonzero(model.get_support()), model.labels_])
    return {
        "seconds": seconds,
        "peak_mb": peak.mb,
        "passes": passes,
        "killed_after": killed_after,
        "answer": sha256(answer.astype(np.int64).tobytes()).hexdigest()[:16],
    }


def _fit_and_count(model, X):
    """Return the seconds of a fit, and the number of passes; None for an array in memory."""
    matrix, passes = as_matrix(X), []
    if matrix is None:
        return seconds_of(lambda: model.fit(X)), None
    original = matrix.map
    matrix.map = lambda function: (passes.append(function), original(function))[1]
    return seconds_of(lambda: model.fit(matrix)), len(passes)


def _write_wide_data(path, n, p, seed):
    """Write three clusters on 200 of p features to a file, one sample at a time."""
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, p))
    rng = np.random.default_rng(seed)
    for i in range(n):
        X[i] = rng.standard_normal(p, dtype=np.float32)
        # The first third of the samples one standard deviation up, the second one down.
        X[i, :200] += (1, -1, 0)[3 * i // n]
    X.flush()


def _fit_on_cluster(model, path, p):
    """Return seconds and passes of a fit to a Dask array, and when a worker was killed."""
    import dask.array
    import distributed

    # 16 chunks for each worker: the loss of one worker costs few of them.
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
                    dask.delayed(_load_columns)(str(path), start, start + chunk),
                    shape=(len(np.load(path, mmap_mode="r")), chunk),
                    dtype=np.float32,
                )
                for start in range(0, p, chunk)
            ],
            axis=1,
        )
        pids = list(client.run(os.getpid).values())
        # Seconds after which a worker is killed: in the middle of the search.
        delay = 5.0
        killer = threading.Timer(delay, os.kill, (pids[0], signal.SIGKILL))
        killer.start()
        seconds, passes = _fit_and_count(model, X)
        killer.cancel()
        assert seconds > delay, "the fit was over before a worker was killed"
    return seconds, passes, delay


def _load_columns(path, start, stop):
    """Return some columns of an array in a file; workers call it."""
    return np.array(np.load(path, mmap_mode="r")[:, start:stop])


class _PeakAnonymousMemory:
    """Measures the peak memory of the process without pages of files, in MB. Linux only."""

    def __enter__(self):
        self.mb = 0.0
        self._done = threading.Event()
        # The kernel records the peak of all memory, but not of anonymous memory: sample it.
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self):
        while not self._done.wait(0.05):
            self.mb = max(self.mb, _memory_mb("RssAnon"))

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


def start_up():
    """Return the seconds that importing mrshc adds, and those of the help text."""
    # mrshc needs numpy and scikit-learn anyway: only the time on top of them counts.
    base = "import numpy, sklearn.base"

    def run_seconds(*command):
        return seconds_of(
            lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), repeats=3
        )

    python = sys.executable
    of_base = run_seconds(python, "-c", base)
    imports = ("import mrshc", "from mrshc import MrSHC")
    return {code: run_seconds(python, "-c", f"{base}; {code}") - of_base for code in imports} | {
        "mrshc --help": run_seconds(str(Path(python).with_name("mrshc")), "--help"),
    }


# Runs the command line and prints, on stderr, the seconds until the end of the fit.
_TIMED_FIT = """
import sys, time
begun = time.perf_counter()
import mrshc.app
from mrshc.app.cli import main
def timed(*args, **options):
    from mrshc.app.plan_execution import fit_estimator
    fitted = fit_estimator(*args, **options)
    print("seconds", time.perf_counter() - begun, file=sys.stderr)
    return fitted
mrshc.app.fit_estimator = timed
main()
"""


def first_run(seed=0):
    """Return the seconds of a first run of the demo with an empty cache, and of later runs.

    Returns
    -------
    dict
        Seconds until the end of the first fit, of the whole demo, of a second demo, and of a
        command until its error and until its first sentence.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
        mrshc_command = str(Path(sys.executable).with_name("mrshc"))
        table = pd.DataFrame(make_simulation_1(seed).X)
        table.to_csv(folder / "table.csv")

        def run(*command):
            begun = time.perf_counter()
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=folder, env=environment, check=False
            )
            return time.perf_counter() - begun, done.stderr

        first, stderr = run(sys.executable, "-c", _TIMED_FIT, "demo", "--seed", str(seed))
        lines = [line for line in stderr.splitlines() if line.startswith("seconds ")]
        second, _ = run(mrshc_command, "demo", "--seed", str(seed))
        error, _ = run(mrshc_command, "cluster", "absent.csv")
        begun = time.perf_counter()
        with subprocess.Popen(
            [mrshc_command, "cluster", "table.csv"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
        ) as process:
            process.stdout.readline()
            sentence = time.perf_counter() - begun
            process.kill()
    return {
        "first fit": float(lines[0].split()[1]),
        "first demo": first,
        "second demo": second,
        "error": error,
        "first sentence": sentence,
    }


def write_table(path, rows, columns, digits):
    """Write a TSV file of normal numbers with some digits."""
    rng = np.random.default_rng(0)
    # Row by row: the table of texts would need much memory.
    with Path(path).open("w", encoding="utf-8") as file:
        file.write("\t".join(["gene", *(f"s{i}" for i in range(columns))]) + "\n")
        for i in range(rows):
            cells = (f"{x:.{digits}g}" for x in rng.normal(size=columns))
            file.write("\t".join([f"g{i}", *cells]) + "\n")


def reading(path, rows, columns, ours):
    """Return the seconds of reading a TSV file with mrshc or pandas, and its relative memory.

    Memory is the peak as a multiple of the size of the numbers.
    """
    read = read_table if ours else partial(pd.read_csv, sep="\t", index_col=0)
    before = _reset_peak_memory()
    seconds = seconds_of(lambda: read(Path(path)))
    peak = _memory_mb("VmHWM") - before
    return {"seconds": seconds, "multiple_of_x": peak * 2**20 / (8 * rows * columns)}


def imputation(n, p, share, ours):
    """Return seconds and memory of imputing from 5 neighbours, by mrshc or by scikit-learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    X[rng.random(X.shape) < share] = np.nan
    fill = NeighborImputer().fit_transform if ours else _impute_transposed
    before = _reset_peak_memory()
    seconds = seconds_of(lambda: fill(X))
    return {"seconds": seconds, "peak_mb": _memory_mb("VmHWM") - before}


def _impute_transposed(X):
    """Return X imputed from the nearest features; KNNImputer searches among rows."""
    return KNNImputer().fit_transform(X.T).T


def _reset_peak_memory():
    """Reset the peak memory of the process, and return the memory in use in MB. Linux only."""
    # The kernel resets VmHWM when 5 is written to this file; see proc(5).
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory_mb("VmRSS")


def _memory_mb(entry):
    """Return an entry of /proc/self/status, which counts in kB, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, value = line.split(":")
        if name == entry:
            return int(value.split()[0]) / 1024
    raise KeyError(entry)
