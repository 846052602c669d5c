"""The benchmarks run."""

import shutil
import sys
from functools import cache, partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bench  # noqa: E402
import cases  # noqa: E402
import plain_cosa  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
@pytest.mark.parametrize("in_r", ["same starts", "few starts"])
def test_sparse_k_means_in_r_solves_the_same_problem(in_r):
    figures = cases.sparse_kmeans(40, 60, in_r)
    assert min(figures["ours"], figures["peer"]) > 0


def test_exponents_are_slopes_of_the_logarithms():
    curve = [{"size": s, "seconds": 3 * s**1.5} for s in (1, 10, 100, 1000)]
    assert bench.growth_exponent(curve, 10, 1000) == pytest.approx(1.5)


@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_cases_run(monkeypatch):
    monkeypatch.setattr(cases, "UNKNOWN", (5, 10))
    # Each case runs in a process of its own elsewhere; here the first one compiles for all.
    monkeypatch.setattr(cases, "warm_up", cache(cases.warm_up))
    small_design = partial(cases.make_simulation_1, mu=3.0, sizes=(6, 5, 4))
    monkeypatch.setitem(cases.DESIGNS, "I", small_design)
    size = {"n": 20, "p": 60, "q": 5, "max_rank": 2, "n_clusters": 3, "n_jobs": 1}
    assert cases.end_to_end("I", known=True, n_jobs=1, draws=1) > 0
    assert cases.classical("I", draws=1) > 0
    assert cases.convergence("I", max_iter=5, draws=1)["recall"] > 0
    assert min(cases.beyond("I", draws=1, repeats=1).values()) > 0
    assert min(cases.profile("I").values()) > 0
    assert cases.fit_of_size(**size)["multiple_of_x"] >= 1
    # Compiling the loops would take longer than interpreting them for so few samples.
    for name in ("_distances", "_weights"):
        monkeypatch.setattr(plain_cosa, name, getattr(plain_cosa, name).py_func)
    assert cases.cosa(20, 60)["peer"] > 0
    assert cases.one_fit("HighVarianceHC", {"n_features_to_select": 5}, n=20, p=60)["seconds"] > 0
    assert cases.spike_and_slab("I", draws=1)["ours"] > 0
    for either in (True, False):
        assert cases.shc(20, 60, explicit=either)["seconds"] > 0
        assert cases.reading(30, 5, digits=5, ours=either)["seconds"] > 0
        assert cases.imputation(20, 30, share=0.1, ours=either)["seconds"] > 0
