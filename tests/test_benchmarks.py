"""The benchmarks run."""

import shutil
import sys
import threading
from functools import cache, partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bench  # noqa: E402
import cases  # noqa: E402
import growth  # noqa: E402
import peers  # noqa: E402
import plain_cosa  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
@pytest.mark.parametrize("in_r", ["same starts", "few starts"])
def test_sparse_k_means_in_r_solves_the_same_problem(in_r):
    figures = cases.sparse_kmeans(40, 60, in_r)
    assert min(figures["ours"], figures["peer"]) > 0


def test_the_procedure_in_r_has_the_result_of_mrshc(monkeypatch):
    if not bench.has_r("cluster"):
        pytest.skip("R or its package cluster is not installed")
    clear = cases.make_simulation_1(0, mu=2.0, sizes=(15, 14, 13)).X[:, :80]
    monkeypatch.setattr(peers, "_N_SEEDS", 1)
    monkeypatch.setattr(peers, "_REPEATS", 1)
    monkeypatch.setattr(peers, "_SETTINGS", {"max_rank": 2, "n_references": 20})
    figures = peers._compare_with_r(clear, (20,), n_tested=3)
    assert (figures["cer"], figures["features"], figures["n_same"]) == (0.0, 1.0, 1)
    assert figures["versions"].startswith("R ")
    assert figures["r"] > 0


def test_times_of_r_are_shown_only_if_they_were_measured_in_the_same_run():
    fit = {"r": 6.0, "one": 0.3, "two": 0.2, "cer": 0.0, "features": 1.0, "n_same": 19}
    fit |= {"n_seeds": 20, "draws": 1, "n_tested": 2, "versions": "R 4"}
    design = {"design": "I", "known": True}
    measured = bench.show_r([design | {"in_r": [fit]}])
    assert "| 6.0 s | 0.200 s | 20 | 30 | 0.000 | 100% | 19 of 20 | 7.2 s |" in measured
    absent = bench.show_r([design | {"in_r": []}])
    assert absent.count("not measured") == 3
    assert "7.2 s" in absent


def test_a_case_runs_in_a_fork_and_its_failure_ends_the_measurement(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "_LOCAL", threading.local())
    monkeypatch.setattr(bench, "CPU_SECONDS", [])
    table = {"path": str(tmp_path / "table.tsv"), "rows": 30, "columns": 5}
    assert bench.run_case("write_table", **table, digits=5) is None
    assert bench.run_case("reading", **table, ours=False)["seconds"] > 0
    assert len(bench.CPU_SECONDS) == 2
    with pytest.raises(SystemExit, match="The case reading failed"):
        bench.run_case("reading", **table | {"path": "absent"}, ours=False)
    with bench.server_of_this_thread() as server:
        assert server.wait(timeout=60) == 1


def test_programs_that_are_not_installed_are_left_out_with_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(bench.shutil, "which", lambda _: None)
    monkeypatch.setattr(bench, "find_spec", lambda _: None)
    monkeypatch.setattr(bench, "run_case", lambda name, **_: name)
    assert not bench.has_r("cluster")
    assert bench.measure_peers() == ["peers.variable_features_in_scipy"]
    sentences = capsys.readouterr().err
    assert sentences.count("not installed") == 3


def test_exponents_are_slopes_of_the_logarithms():
    curve = [{"size": s, "seconds": 3 * s**1.5} for s in (1, 10, 100, 1000)]
    assert growth.growth_exponent(curve, 10, 1000) == pytest.approx(1.5)


def test_the_cost_model_finds_the_terms_that_the_costs_have():
    def measure(name, size):
        fit = growth.size_of(name, size)
        n, p, q, rank = (fit[key] for key in ("n", "p", "q", "R"))
        seconds = 0.01 * rank + 1e-8 * rank * n * p + 1e-9 * rank * n**2 * q
        memory = 2 * 2**20 + 3 * 8 * n**2
        return {"size": size, "seconds": seconds, "multiple_of_x": 1 + memory / (8 * n * p)}

    terms = growth.TERMS["q and K known"]
    curves = {
        name: [measure(name, size) for size in curve.sizes]
        for name, curve in growth.GROWTH.items()
        if curve.estimator == terms.estimator
    }
    model = growth.fit_model(terms, curves)
    assert model.seconds == pytest.approx({"R": 0.01, "R n p": 1e-8, "R n² q": 1e-9})
    assert model.memory == pytest.approx({"MB": 2.0, "n² numbers": 3.0})
    assert model.predict_seconds({"n": 10, "p": 20, "q": 2, "R": 3}) == pytest.approx(0.0300066)
    assert growth.fit_model(growth.TERMS["recommended"], curves) is None


@pytest.mark.filterwarnings("ignore::mrshc.UnsupportedClustersWarning")
def test_cases_run(monkeypatch, tmp_path):
    monkeypatch.setattr(cases, "UNKNOWN", (5, 10))
    # Each case runs in a process of its own elsewhere; here the first one compiles for all.
    monkeypatch.setattr(cases, "warm_up", cache(cases.warm_up))
    small_design = partial(cases.make_simulation_1, mu=3.0, sizes=(6, 5, 4))
    monkeypatch.setitem(cases.DESIGNS, "I", small_design)
    given = {"n_features_to_select": 5, "max_rank": 2, "n_clusters": 3}
    assert cases.end_to_end("I", known=True, n_jobs=1, draws=1) > 0
    assert cases.classical("I", draws=1) > 0
    assert cases.convergence("I", max_iter=5, draws=1)["recall"] > 0
    assert min(cases.beyond("I", draws=1, repeats=1).values()) > 0
    for name, parameters in (("MrSHC", given), ("AssociationHC", {})):
        figures = cases.fit_of_size(n=20, p=60, estimator=name, given=parameters, draws=2)
        assert figures["multiple_of_x"] >= 1
    # Compiling the loops would take longer than interpreting them for so few samples.
    for name in ("_distances", "_weights"):
        monkeypatch.setattr(plain_cosa, name, getattr(plain_cosa, name).py_func)
    assert cases.cosa(20, 60)["peer"] > 0
    assert cases.one_fit("HighVarianceHC", {"n_features_to_select": 5}, n=20, p=60)["seconds"] > 0
    assert cases.spike_and_slab("I", draws=1)["ours"] > 0
    assert peers.variable_features_in_scipy(20, 600)["peer"] > 0
    table = tmp_path / "table.tsv"
    cases.write_table(table, 30, 5, digits=5)
    for either in (True, False):
        assert cases.shc(20, 60, explicit=either)["seconds"] > 0
        assert cases.reading(table, 30, 5, ours=either)["seconds"] > 0
        assert cases.imputation(20, 30, share=0.1, ours=either)["seconds"] > 0
