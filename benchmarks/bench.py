"""Measure speed and memory, write benchmarks/results.json, and render it in docs/results.

Run it with `make bench`. It takes about half an hour, most of which the plain twin needs.
`bench.py --render` only renders the committed results; `bench.py NAME ...` measures some parts and
keeps the others. A part is named as in results.json and in the marks of the pages.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from mrshc.plotting import PALETTE, write_picture
from mrshc.study.config import code_version
from mrshc.study.tables import markdown_table
from mrshc.utils.atomic_files import write_text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "studies"))

from publish import replace_section  # noqa: E402 - a script, not part of the package

RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "results" / "performance.md"
GPU = HERE / "gpu.json"
LARGE_DATA = HERE.parent / "docs" / "results" / "large-data.md"
WHICH_METHOD = HERE.parent / "docs" / "guide" / "which-method.md"
PICTURE = HERE.parent / "docs" / "images" / "growth.png"

# Seconds of the original implementation (R 4.2.2 with PMA and clusGap; sparcl), on one core of a
# computer like the one where the rest was measured. Recorded once, not part of a run.
RECORDED_R = {("I", True): 7.2, ("I", False): 66.0, ("II", True): 9.3, ("II", False): 100.0}
RECORDED_SPARCL = {(60, 500): 0.048, (320, 2000): 6.927}
# Mean seconds of the R package recombine (the spike-and-slab lasso) over 6 draws, recorded on
# another computer.
RECORDED_RECOMBINE = {"I": 9.8, "II": 24.0}

# Size of a fit, in which one quantity at a time is varied over the values below.
BASE_SIZE = {"n": 100, "p": 2000, "q": 50, "max_rank": 5, "n_clusters": 3, "n_jobs": 1}
GROWTH = {
    "n": [50, 100, 200, 500, 1000, 2000, 4000, 5000],
    "p": [500, 2000, 5000, 20_000, 50_000, 100_000, 200_000],
    "q": [10, 20, 50, 100, 200, 400, 800],
    "max_rank": [1, 2, 3, 5, 8, 10],
}
# Other packages are measured on one core too; mrshc limits BLAS itself.
ONE_BLAS_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
# Keys of results.json: mrshc, and the package that it is compared with (pandas, scikit-learn).
PEERS = ("mrshc", "peer")
# Sizes of R's recorded times, and one for which the matrix of pairs does not fit into memory.
SHC_SIZES = [(60, 500), (320, 2000), (1000, 20_000)]
# Methods of the page "Which method?", as estimators with parameters, and sizes of the data.
TIMED_METHODS = {
    "MrSHC, association, Ward": ("MrSHC", {"selection": "association", "linkage": "ward"}),
    "HMV 500, Ward": ("HighVarianceHC", {"n_features_to_select": 500, "linkage": "ward"}),
    "MrSHC": ("MrSHC", {}),
    "SHC": ("SHC", {}),
    "SHC-SSL": ("SHC", {"penalty": "ssl"}),
    "sparse K-means": ("SparseKMeans", {"n_clusters": 3}),
    "COSA": ("COSA", {}),
}
TIMED_SIZES = [(60, 500), (100, 5000), (200, 5000)]
# Largest n * n * p for which the explicit matrix of pairs, of half as many cells, is made: 4 GB in
# double precision.
MAX_PAIR_CELLS = 1e9


def run_case(name, **arguments):
    """Run a function of cases.py in a process of its own and return its figures.

    A new process has neither compiled functions nor memory of earlier cases.
    """
    code = (
        "import json, sys, cases\n"
        "print(json.dumps(getattr(cases, sys.argv[1])(**json.loads(sys.argv[2]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, name, json.dumps(arguments)],
        cwd=HERE,
        env=os.environ | ONE_BLAS_THREAD,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    sys.stderr.write(f"{name} {arguments}: {done.stdout}")
    return json.loads(done.stdout)


def measure_end_to_end():
    """Return the seconds of fits of the paper's simulations, and of the plain twin."""
    rows = []
    for design in ("I", "II"):
        # Classical clustering of all features is the cheapest of the methods.
        hc = run_case("classical", design=design, draws=10)
        for known in (True, False):
            one, two = (
                run_case("end_to_end", design=design, known=known, n_jobs=jobs, draws=10)
                for jobs in (1, 2)
            )
            rows.append(
                {"design": design, "known": known, "one": one, "two": two, "hc": hc}
                | run_case("twin", design=design, known=known)
            )
    return rows


def measure_profile():
    """Return the seconds of the parts of a fit, for each simulation."""
    return {design: run_case("profile", design=design) for design in ("I", "II")}


def measure_growth():
    """Return seconds and memory of fits of growing size, the median of three draws each."""
    # A median, since the number of bounds that a search solves depends on the draw.
    curves = {}
    for quantity, sizes in GROWTH.items():
        curves[quantity] = []
        for size in sizes:
            draws = [
                run_case("fit_of_size", **(BASE_SIZE | {quantity: size, "seed": seed}))
                for seed in range(3)
            ]
            median = sorted(draws, key=lambda draw: draw["seconds"])[1]
            curves[quantity].append({"size": size} | median)
    return curves


def measure_large():
    """Return seconds and memory of two large fits on two cores."""
    # Many features with every choice left to the method, and many samples.
    common = {"max_rank": 5, "n_jobs": 2}
    return {
        "n = 100, p = 20,000, everything unknown": run_case(
            "fit_of_size", n=100, p=20_000, q=None, n_clusters=None, **common
        ),
        "n = 4,000, p = 2,000, q and K known": run_case(
            "fit_of_size", n=4000, p=2000, q=50, n_clusters=3, **common
        ),
    }


def measure_shc():
    """Return seconds and memory of SHC, with and without the explicit matrix of pairs."""
    rows = []
    for n, p in SHC_SIZES:
        row = {"n": n, "p": p, "lean": run_case("shc", n=n, p=p, explicit=False)}
        if n**2 * p < MAX_PAIR_CELLS:
            row["explicit"] = run_case("shc", n=n, p=p, explicit=True)
        rows.append(row)
    return rows


def measure_other_methods():
    """Return the seconds of methods of other authors, ours and of plain implementations."""
    rows = []
    if shutil.which("Rscript") is None:
        sys.stderr.write("R is not installed, so sparse K-means is not compared with R.\n")
    else:
        rows += [
            run_case("sparse_kmeans", n=n, p=p, in_r=in_r)
            for n, p in ((60, 500), (100, 5000))
            for in_r in ("same starts", "few starts")
        ]
    rows += [run_case("cosa", n=n, p=p) for n, p in ((60, 500), (200, 2000))]
    for design, recorded in RECORDED_RECOMBINE.items():
        row = run_case("spike_and_slab", design=design, draws=6)
        rows.append(row | {"peer": recorded, "peer_name": "R package recombine, recorded"})
    return rows


def measure_methods():
    """Return the seconds and the memory of one fit of each method, for three sizes."""
    return [
        {"label": label, "n": n, "p": p}
        | run_case("one_fit", estimator=name, given=given, n=n, p=p)
        for label, (name, given) in TIMED_METHODS.items()
        for n, p in TIMED_SIZES
    ]


def measure_early_stopping():
    """Return how often early stopping decides otherwise than all reference samples."""
    return run_case("early_stopping", draws=12)


def measure_convergence():
    """Return the effect of 20 and of 500 alternations on time, number of features and recall."""
    return [
        {"design": design, "max_iter": m}
        | run_case("convergence", design=design, max_iter=m, draws=50)
        for design in ("I", "II")
        for m in (20, 500)
    ]


def measure_start_up():
    """Return the seconds of imports and of the help text."""
    return run_case("start_up")


def measure_first_run():
    """Return the seconds of first and later runs of the command line, five times each."""
    return [run_case("first_run", seed=seed) for seed in range(5)]


def measure_reading():
    """Return seconds and memory of reading a table, for mrshc and for pandas."""
    table = {"rows": 20_000, "columns": 500}
    # Few digits, as in rounded tables, and all digits of a double.
    return [
        {"digits": digits}
        | {
            name: run_case("reading", **table, digits=digits, ours=name == "mrshc")
            for name in PEERS
        }
        for digits in (5, 17)
    ]


def measure_imputation():
    """Return seconds and memory of imputation, for mrshc and for scikit-learn."""
    size = {"n": 100, "p": 20_000, "share": 0.05}
    return {name: run_case("imputation", **size, ours=name == "mrshc") for name in PEERS}


def measure_beyond():
    """Return the seconds of options that go beyond the paper."""
    figures = {
        f"Simulation {design}": run_case("beyond", design=design, draws=5) for design in ("I", "II")
    }
    if "MRSHC_DATA" in os.environ:
        figures["lymphoma"] = run_case("beyond", design="lymphoma", draws=1)
    return figures


def measure_out_of_core():
    """Return seconds, memory and passes of searches in out-of-core data."""
    largest = {"n": 200, "p": 1_000_000}
    return {
        "growth": [
            largest | {"p": p} | run_case("out_of_core", n=200, p=p, storage="map")
            for p in (10_000, 100_000, 1_000_000)
        ],
        "memory": largest | run_case("out_of_core", **largest, storage="memory"),
        "cluster": largest | run_case("out_of_core", **largest, storage="cluster"),
    }


def read_gpu():
    """Return the committed measurements on a GPU, which gpu.py makes by hand."""
    return json.loads(GPU.read_text(encoding="utf-8"))


def fit_cost_model():
    """Return seconds of one core for a unit of each part of the work, to predict other sizes."""
    measured = read_gpu()["cpu-search"]
    n, cells, parts = measured["n"], measured["n"] * measured["p"], measured["parts"]
    # Three passes are for statistics, inner products and starts; the others certify components.
    n_certifying = measured["passes"] - 3
    # Seconds were measured on two cores, hence the factor 2. The keys are those of results.json, in
    # which certification is called "proofs".
    return {
        "statistics": 2 * (parts["statistics"] + parts["starts"]) / cells,
        "inner products": 2 * parts["inner products"] / (n * cells),
        "proofs": 2 * parts["proofs"] / (n_certifying * cells),
        "components": 2 * (parts["components and proofs"] - parts["proofs"]) / n,
        "trees": 2 * parts["trees and gap tests"] / n**2,
        "passes": measured["passes"],
        "map": json.loads(RESULTS.read_text(encoding="utf-8"))["far"]["figures"]["growth"],
    }


def predict_seconds(unit, n, p, *, cores, machines=1, bandwidth=None):
    """Return the seconds of each part of a search by the cost model.

    Parameters
    ----------
    unit : dict
        Result of `fit_cost_model`.
    n, p : int
        Numbers of samples and features.
    cores, machines : int
        Cores of each computer, and number of computers. Components are computed only where the
        search was started.
    bandwidth : float or None
        Bytes per second at which a computer reads; None if the data are in memory.
    """
    cells, all_cores = n * p, cores * machines
    summary = (unit["statistics"] + unit["inner products"] * n) * cells / all_cores
    n_certifying = unit["passes"] - 3
    # Four bytes for each value: data of this size are stored in single precision.
    reading = unit["passes"] * 4 * cells / (bandwidth * machines) if bandwidth else 0.0
    return {
        "reading": reading,
        "statistics, inner products": summary,
        "certification": unit["proofs"] * n_certifying * cells / all_cores,
        "components": unit["components"] * n / cores,
        "trees and gap tests": unit["trees"] * n**2 / all_cores,
    }


def show_end_to_end(rows):
    """Return a table of end-to-end times, with those of R and of the plain twin."""
    headings = ["", "1 core", "2 cores", "ratio", "R, recorded", "R / 2 cores"]
    headings += ["plain twin / 1 core", "1 core / classical HC"]
    cells = []
    for row in rows:
        r = RECORDED_R[row["design"], row["known"]]
        name = f"Simulation {row['design']}, {'q known' if row['known'] else '11 candidate q'}"
        # A twin with another result would make the comparison of times meaningless.
        same = "" if row["same_answer"] else " (another answer)"
        cells.append(
            [
                name,
                f"{row['one']:.3f} s",
                f"{row['two']:.3f} s",
                f"{row['one'] / row['two']:.2f}",
                f"{r:g} s",
                f"{r / row['two']:.0f}",
                f"{row['twin'] / row['ours']:.0f}{same}",
                f"{row['one'] / row['hc']:.0f}",
            ]
        )
    return markdown_table(headings, cells)


def show_profile(shares):
    """Return a table of the shares of time that parts of a fit take."""
    parts = list(next(iter(shares.values())))
    rows = []
    for design, seconds in shares.items():
        total = sum(seconds.values())
        rows.append([f"Simulation {design}", *(f"{seconds[p] / total:.0%}" for p in parts)])
    return markdown_table(["share of the time", *parts], rows)


def growth_exponent(rows, low, high):
    """Return the slope of log seconds on log size, for sizes from `low` to `high`."""
    chosen = [(r["size"], r["seconds"]) for r in rows if low <= r["size"] <= high]
    size, seconds = np.log(np.array(chosen)).T
    return float(np.polyfit(size, seconds, 1)[0])


def show_growth(curves):
    """Return a table of growth rates, and write the picture of the curves."""
    # Slopes are fitted to larger sizes, where constant costs no longer matter.
    ranges = {"n": (500, 4000), "p": (20_000, 200_000), "q": (50, 800), "max_rank": (2, 10)}
    names = {"n": "samples n", "p": "features p", "q": "selected q", "max_rank": "largest rank R"}
    draw_growth(curves, names)
    rows = []
    for quantity, curve in curves.items():
        low, high = ranges[quantity]
        # The whole range of sizes is shown, also where the slope is not fitted.
        first, last = curve[0], curve[-1]
        rows.append(
            [
                names[quantity],
                f"{first['size']:,} to {last['size']:,}",
                f"{first['seconds']:.3f} s to {last['seconds']:.2f} s",
                f"{growth_exponent(curve, low, high):.2f} (from {low:,} to {high:,})",
                f"{first['multiple_of_x']:.1f} to {last['multiple_of_x']:.1f}",
            ]
        )
    return markdown_table(["growing", "range", "seconds", "exponent", "memory / X"], rows)


def draw_growth(curves, names):
    """Write a picture of seconds against size, one panel for each quantity."""
    figure = Figure(figsize=(10, 3), layout="constrained")
    # One scale of seconds, so that the panels can be compared.
    axes = figure.subplots(1, len(curves), sharey=True)
    for axis, color, (quantity, curve) in zip(axes, PALETTE, curves.items(), strict=False):
        sizes, seconds = ([row[key] for row in curve] for key in ("size", "seconds"))
        axis.loglog(sizes, seconds, "o-", color=color, markersize=4)
        axis.set_title(names[quantity], fontsize=10)
        axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds of a fit, one core")
    write_picture(figure, PICTURE, dpi=150)


def show_large(rows):
    """Return a table of large fits."""
    cells = [
        [name, f"{r['seconds']:.1f} s", f"{r['peak_mb']:.0f} MB", f"{r['multiple_of_x']:.1f}"]
        for name, r in rows.items()
    ]
    headings = ["2 cores", "time", "peak memory of the process", "of the fit, as a multiple of X"]
    return markdown_table(headings, cells)


def show_shc(rows):
    """Return a table of fits of SHC, with those on the explicit matrix and of R."""
    cells = []
    for row in rows:
        n, p = row["n"], row["p"]
        seconds = row["lean"]["seconds"]
        # R was measured on the two smaller sizes only.
        explicit, r = row.get("explicit"), RECORDED_SPARCL.get((n, p))
        cells.append(
            [
                f"n = {n}, p = {p:,}",
                f"{seconds:.3f} s",
                f"{row['lean']['peak_mb']:.0f} MB",
                f"{explicit['seconds'] / seconds:.0f}" if explicit else "D does not fit",
                f"{explicit['peak_mb']:.0f} MB" if explicit else "",
                f"{r / seconds:.0f}" if r else "",
            ]
        )
    headings = ["one fit of SHC", "time", "peak memory", "explicit D / ours", "its memory"]
    return markdown_table([*headings, "R, recorded / ours"], cells)


def show_other_methods(rows):
    """Return a table of methods of other authors, and of the times of other implementations."""
    cells = []
    for row in rows:
        size = f"{row['method']}, n = {row['n']}, p = {row['p']:,}"
        ours, peer = row["ours"], row["peer"]
        cells.append(
            [size, f"{ours:.2f} s", row["peer_name"], f"{peer:.2f} s", f"{peer / ours:.0f}"]
        )
    headings = ["method, on one core", "ours", "compared with", "its time", "its time / ours"]
    return markdown_table(headings, cells)


def show_methods(rows):
    """Return a table with a row for each method and a column for each size."""
    by_label = {}
    for row in rows:
        by_label.setdefault(row["label"], []).append(
            f"{row['seconds']:.2f} s, {row['peak_mb']:.0f} MB"
        )
    headings = ["method"] + [f"n = {n}, p = {p:,}" for n, p in TIMED_SIZES]
    return markdown_table(headings, [[label, *cells] for label, cells in by_label.items()])


def show_early_stopping(counts):
    """Return a sentence on how often early stopping decides otherwise."""
    nodes = counts["nodes"]
    return (
        f"{nodes:,} nodes of 96 searches: {counts['other_verdict']} verdicts differ from those of "
        f"all 50 reference samples; {counts['drawn'] / nodes:.1f} samples are drawn on average.\n"
    )


def show_convergence(rows):
    """Return a table of the effect of the number of alternations."""
    cells = [
        [
            f"Simulation {row['design']}",
            str(row["max_iter"]),
            f"{row['seconds']:.3f} s",
            f"{row['reached']:.1%}",
            f"{row['recall']:.3f}",
        ]
        for row in rows
    ]
    headings = ["q = 50 known, 50 draws", "alternations at most", "time", "searches that hit q"]
    return markdown_table([*headings, "recall"], cells)


def show_start_up(seconds):
    """Return a table of the seconds of imports and of the help text."""
    return markdown_table(list(seconds), [[f"{s:.2f} s" for s in seconds.values()]])


def show_first_run(runs):
    """Return a table of the median and the largest seconds of first and later runs."""
    headings = {
        "first fit": "end of the first fit",
        "first demo": "first demo",
        "second demo": "second demo",
        "error": "error",
        "first sentence": "first sentence",
    }
    rows = []
    for label, summarise in (("median", np.median), ("largest", max)):
        times = [summarise([run[name] for run in runs]) for name in headings]
        rows.append([label, *(f"{seconds:.2f} s" for seconds in times)])
    return markdown_table([f"{len(runs)} runs", *headings.values()], rows)


def show_reading(rows):
    """Return a table of reading times, of mrshc and of pandas."""
    cells = []
    for row in rows:
        ours, theirs = row["mrshc"], row["peer"]
        cells.append(
            [
                f"{row['digits']} digits",
                f"{ours['seconds']:.1f} s",
                f"{ours['multiple_of_x']:.1f}",
                f"{theirs['seconds']:.1f} s",
                f"{theirs['multiple_of_x']:.1f}",
            ]
        )
    headings = ["20,000 x 500, TSV", "mrshc", "peak, as copies of X", "pandas", "peak"]
    return markdown_table(headings, cells)


def show_imputation(rows):
    """Return a table of imputation times, of mrshc and of scikit-learn."""
    ours, theirs = rows["mrshc"], rows["peer"]
    ratio = f"{theirs['seconds'] / ours['seconds']:.0f} times"
    cells = [f"{ours['seconds']:.1f} s", f"{ours['peak_mb']:.0f} MB"]
    cells += [f"{theirs['seconds']:.1f} s", f"{theirs['peak_mb']:.0f} MB", ratio]
    headings = ["n = 100, p = 20,000, 5 % missing", "peak", "KNNImputer", "peak", "faster"]
    return markdown_table(headings, [cells])


def show_beyond(seconds):
    """Return a table of times relative to the paper's procedure."""
    cells = []
    for design, times in seconds.items():
        search = times["search"]
        others = [f"{s / search:.2f}" for name, s in times.items() if name != "search"]
        cells.append([design, f"{search:.3f} s", *others])
    return markdown_table(["", *next(iter(seconds.values()))], cells)


def show_out_of_core(figures):
    """Return a table of searches in out-of-core data."""
    growth = figures["growth"]
    largest = growth[-1]
    cells = [
        [
            f"memory map, p = {row['p']:,}",
            f"{row['seconds']:.0f} s",
            f"{row['peak_mb']:.0f} MB",
            str(row["passes"]),
            "",
        ]
        for row in growth
    ]
    for name, storage in (("memory", "in memory"), ("cluster", "dask, 2 workers, one killed")):
        row = figures[name]
        # In capitals: a different result would be a bug, which nobody must overlook.
        same = "the same" if row["answer"] == largest["answer"] else "ANOTHER"
        cells.append(
            [
                f"{storage}, p = {row['p']:,}",
                f"{row['seconds']:.0f} s",
                f"{row['peak_mb']:.0f} MB",
                str(row["passes"] or ""),
                same,
            ]
        )
    headings = ["n = 200, single precision", "time", "peak without the page cache", "passes"]
    return markdown_table([*headings, "answer, against the map"], cells)


def show_gpu(figures):
    """Return tables of times on the device and on two cores."""
    cells = []
    for name, method in (("search", "MrSHC"), ("shc", "SHC, one bound")):
        ours, peer = figures[name], figures[f"cpu-{name}"]
        same = "the same" if ours["answer"] == peer["answer"] else "ANOTHER"
        cells.append(
            [
                f"{method}, n = {ours['n']:,}, p = {ours['p']:,}",
                f"{ours['seconds']:.1f} s",
                f"{peer['seconds']:.0f} s",
                f"{peer['seconds'] / ours['seconds']:.0f}",
                same,
                f"{ours['device_memory_gb']:.1f} GB",
            ]
        )
    headings = ["", figures["search"]["made_with"]["device"], "2 cores", "ratio", "answer"]
    table = markdown_table([*headings, "memory of the device"], cells)
    rows = []
    for name, hardware in (("search", "device"), ("cpu-search", "2 cores")):
        parts = figures[name]["parts"]
        components = parts["components and proofs"] - parts["proofs"]
        seconds = {
            "statistics, inner products, starts": sum(
                parts[p] for p in ("statistics", "inner products", "starts")
            ),
            "certification": parts["proofs"],
            # On a device, threads certify at the same time: their times may exceed the total.
            "components": max(components, 0.0),
            "trees and gap tests": parts["trees and gap tests"],
        }
        rows.append([hardware, *(f"{s:.1f} s" for s in seconds.values())])
    return f"{table}\n\n{markdown_table(['MrSHC', *seconds], rows)}"


def show_model(unit):
    """Return tables of predictions: where measurements exist, and for large data."""
    cells = []
    for row in unit["map"]:
        seconds = predict_seconds(unit | {"passes": row["passes"]}, row["n"], row["p"], cores=2)
        cells.append(
            [
                f"n = {row['n']}, p = {row['p']:,}, 2 cores",
                f"{sum(seconds.values()):.0f} s",
                f"{row['seconds']:.0f} s",
            ]
        )
    check = markdown_table(["checked", "model", "measured"], cells)
    rows = []
    # 400 GB in single precision, on computers with 16 cores that read 1 GB a second each.
    for machines in (10, 100):
        seconds = predict_seconds(
            unit, 10_000, 10_000_000, cores=16, machines=machines, bandwidth=1_000_000_000
        )
        shown = [f"{s / 60:.1f} min" for s in (*seconds.values(), sum(seconds.values()))]
        rows.append([f"{machines} machines", *shown])
    return f"{check}\n\n{markdown_table(['n = 10,000, p = 10,000,000', *seconds, 'all'], rows)}"


class Part(NamedTuple):
    """A part of the benchmarks: a function that measures it, and one that renders its figures."""

    measure: Callable[[], Any]
    show: Callable[[Any], str]


# By the names in results.json and in the marks of the pages. The cost model comes last, since it is
# fitted to other parts.
PARTS = {
    "end_to_end": Part(measure_end_to_end, show_end_to_end),
    "profile": Part(measure_profile, show_profile),
    "growth": Part(measure_growth, show_growth),
    "large": Part(measure_large, show_large),
    "shc": Part(measure_shc, show_shc),
    "other_methods": Part(measure_other_methods, show_other_methods),
    "methods": Part(measure_methods, show_methods),
    "early_stopping": Part(measure_early_stopping, show_early_stopping),
    "convergence": Part(measure_convergence, show_convergence),
    "start_up": Part(measure_start_up, show_start_up),
    "first_run": Part(measure_first_run, show_first_run),
    "reading": Part(measure_reading, show_reading),
    "imputation": Part(measure_imputation, show_imputation),
    "beyond": Part(measure_beyond, show_beyond),
    "far": Part(measure_out_of_core, show_out_of_core),
    "gpu": Part(read_gpu, show_gpu),
    "model": Part(fit_cost_model, show_model),
}


def render(results):
    """Insert the tables of all parts into the pages."""
    # Each table is on one of the pages; a page without its marks is left unchanged.
    for path in (PAGE, LARGE_DATA, WHICH_METHOD):
        page = path.read_text(encoding="utf-8")
        for name, part in results.items():
            page = replace_section(page, name, PARTS[name].show(part["figures"]))
        write_text(path, page)


def describe_environment():
    """Return the version of the code, the versions of packages and the computer."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    # Packages on which speed depends.
    versions = {p: version(p) for p in packages} | {"python": platform.python_version()}
    computer = {"architecture": platform.machine(), "cores": os.cpu_count()}
    return {"code": code_version(), "versions": versions, "computer": computer}


def main(names):
    """Measure the named parts, all by default, and render the results."""
    # Parts that are not measured now keep their earlier results.
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name, part in PARTS.items() if names != ["--render"] else ():
        if not names or name in names:
            results[name] = {"figures": part.measure()} | describe_environment()
            # After each part: a long measurement that fails must not lose the others.
            write_text(RESULTS, json.dumps(results, indent=2) + "\n")
    render(results)


if __name__ == "__main__":
    main(sys.argv[1:])
