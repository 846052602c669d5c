"""Cases of the benchmarks that compare mrshc with other programs for the same task.

Each function runs in a process of its own and returns its figures. Packages are imported where they
are used, since none of them is required.
"""

import io
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from cases import DESIGNS, FIRST_SEED, KNOWN, UNKNOWN, make_wide_data, seconds_of, warm_up
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import rand_score

from mrshc import HighVarianceHC, MrSHC, stability
from mrshc.metrics import classification_error_rate
from mrshc.plotting import heatmap

# Settings that the R script takes as arguments: the defaults of MrSHC.
_SETTINGS = {"max_rank": 5, "n_references": 50}
# Fits with other reference samples, among which the result of R is looked up, and fits of which the
# fastest counts.
_N_SEEDS, _REPEATS = 10, 3
# The usual first step of an analysis of gene expression.
_N_VARIABLE = 500
_CONSENSUS = {"n_resamples": 50, "fraction": 0.8}


def paper_in_r(design, known, n_tested, draws):
    """Return the seconds of the paper's procedure in R and of MrSHC, on the same draws.

    Parameters
    ----------
    design : {"I", "II"}
        Simulation of the paper.
    known : bool
        Whether the number of features is known; otherwise there are 11 candidates.
    n_tested : int
        Largest number of clusters that a gap test in R evaluates.
    draws : int
        Number of draws. All times are medians over the draws.

    Returns
    -------
    dict
        Seconds of R (`r`) and of MrSHC on one and two cores (`one`, `two`); the mean CER between
        the labels of both (`cer`) and the mean Jaccard index of their features (`features`); the
        number of fits of MrSHC with several random states (`n_seeds`), and of those with exactly
        the result of R (`n_same`), over all draws; the versions of R and of its packages.
    """
    warm_up()
    targets = (KNOWN,) if known else UNKNOWN
    rows = [
        _compare_with_r(DESIGNS[design](FIRST_SEED + draw).X, targets, n_tested)
        for draw in range(draws)
    ]
    means = {name: statistics.mean(row[name] for row in rows) for name in ("cer", "features")}
    return (
        {name: statistics.median(row[name] for row in rows) for name in ("r", "one", "two")}
        | means
        | {"n_same": sum(row["n_same"] for row in rows), "n_seeds": _N_SEEDS * draws}
        | {"n_tested": n_tested, "draws": draws, "versions": rows[0]["versions"]}
    )


def _compare_with_r(X, targets, n_tested):
    """Return the seconds of R and of MrSHC for one data set, and the agreement of the results."""
    result = _run_r(X, targets, n_tested)
    features, labels = np.array(result["features"]) - 1, np.array(result["labels"])
    seconds = {}
    for name, n_jobs in (("one", 1), ("two", 2)):
        model = MrSHC(targets, random_state=0, n_jobs=n_jobs, **_SETTINGS)
        seconds[name] = seconds_of(lambda model=model: model.fit(X), repeats=_REPEATS)
    selected = np.flatnonzero(model.get_support())
    common, either = np.intersect1d(selected, features), np.union1d(selected, features)
    n_same = 0
    for seed in range(_N_SEEDS):
        other = MrSHC(targets, random_state=seed, n_jobs=2, **_SETTINGS).fit(X)
        n_same += bool(
            np.array_equal(np.flatnonzero(other.get_support()), features)
            and rand_score(other.labels_, labels) == 1
        )
    return seconds | {
        "r": result["seconds"],
        "versions": result["versions"],
        "cer": classification_error_rate(model.labels_, labels),
        "features": common.size / either.size,
        "n_same": n_same,
    }


def _run_r(X, targets, n_tested):
    """Return what the R script prints for a data matrix."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.csv")
        np.savetxt(file, X, delimiter=",")
        options = [_SETTINGS["max_rank"], _SETTINGS["n_references"], n_tested]
        arguments = [file, ",".join(map(str, targets)), *map(str, options)]
        script = Path(__file__).with_name("mrshc.R")
        run = subprocess.run(["Rscript", script, *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def variable_features_in_scipy(n, p):
    """Return the seconds of Ward's tree of the most variable features, here and with scipy."""
    X = make_wide_data(n, p)
    model = HighVarianceHC(_N_VARIABLE, linkage="ward", n_clusters=3)
    model.fit(X)  # compiles
    ours = seconds_of(lambda: model.fit(X), repeats=5)
    peer = seconds_of(lambda: _cluster_in_scipy(X), repeats=5)
    if rand_score(model.labels_, _cluster_in_scipy(X)) < 1:
        raise RuntimeError("The clusters differ.")
    row = {"method": "500 most variable features, Ward", "n": n, "p": p, "ours": ours}
    return row | {"peer": peer, "peer_name": "numpy and scipy"}


def _most_variable(X):
    return X[:, np.argsort(-X.var(axis=0), kind="stable")[:_N_VARIABLE]]


def _cluster_in_scipy(X):
    return fcluster(linkage(_most_variable(X), "ward"), 3, "maxclust")


def heat_map_in_seaborn(n, p):
    """Return the seconds from the data to the PNG of a heat map with two trees."""
    import seaborn

    X = make_wide_data(n, p)
    # One size and resolution for both.
    inches, dpi = 10, 100

    def draw_ours():
        model = HighVarianceHC(_N_VARIABLE, linkage="ward", n_clusters=3).fit(X)
        heatmap(model, X, size=(inches, inches)).savefig(io.BytesIO(), dpi=dpi)

    def draw_peer():
        values = _most_variable(X).T
        grid = seaborn.clustermap(values, method="ward", z_score=0, figsize=(inches, inches))
        grid.figure.savefig(io.BytesIO(), dpi=dpi)

    for draw in (draw_ours, draw_peer):
        draw()  # compiles, and loads fonts
    row = {"method": "heat map of the 500 most variable features", "n": n, "p": p}
    row |= {"ours": seconds_of(draw_ours, repeats=3), "peer": seconds_of(draw_peer, repeats=3)}
    return row | {"peer_name": "seaborn.clustermap"}


def consensus(n, p):
    """Return the seconds of the consensus matrix of subsamples, for Ward's linkage, three clusters.

    mrshc selects the features again in each subsample and computes the support of branches, too.
    """
    from consensusclustering import ConsensusClustering
    from sklearn.cluster import AgglomerativeClustering

    X = make_wide_data(n, p)
    model = HighVarianceHC(_N_VARIABLE, linkage="ward", n_clusters=3).fit(X)
    peer = ConsensusClustering(
        AgglomerativeClustering(linkage="ward"),
        min_clusters=3,
        max_clusters=3,
        n_resamples=_CONSENSUS["n_resamples"],
        resample_frac=_CONSENSUS["fraction"],
        rng=0,
    )
    result = stability(model, X, **_CONSENSUS, random_state=0)  # compiles
    ours = seconds_of(lambda: stability(model, X, **_CONSENSUS, random_state=0), repeats=3)
    seconds = seconds_of(lambda: peer.fit(_most_variable(X)))
    pairs = np.triu_indices(n, 1)
    # Both draw other subsamples, and ours other features in each.
    agreement = np.corrcoef(result.consensus[pairs], peer.consensus_k(3)[pairs])[0, 1]
    if agreement < 0.8:
        raise RuntimeError(f"The consensus matrices differ: correlation {agreement:.2f}.")
    row = {"method": "consensus of 50 subsamples", "n": n, "p": p, "ours": ours, "peer": seconds}
    return row | {"peer_name": "package consensusclustering"}
