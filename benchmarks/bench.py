"""Measure speed and memory, write benchmarks/results.json, and render it in docs/results.

Run it with `make bench`. `bench.py --render` only renders the committed results, and
`bench.py NAME ...` measures some parts and keeps the others. A part is named as in results.json and
in the marks of the pages. Each part prints how long it took.

Comparisons with other programs need those programs: Rscript with the package cluster, and the
packages of the extra `bench`. Those that are missing are left out, and a sentence says so.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from mrshc.plotting import PALETTE, write_picture
from mrshc.shell.atomic_files import write_text

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from growth import (  # noqa: E402 - scripts, not part of the package
    GROWTH,
    PAPER,
    TERMS,
    fit_model,
    growth_exponent,
    size_of,
)
from studies.pages import replace_section  # noqa: E402
from studies.tables import markdown_table  # noqa: E402

RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "results" / "performance.md"
GPU = HERE / "gpu.json"
MANY_SAMPLES = HERE / "many_samples.json"
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

# Largest numbers of clusters that a gap test in R evaluates, and numbers of draws, by whether q is
# known. Two clusters are sufficient for the decision; 8 is what a user of clusGap might choose.
# With 11 candidates, R needs up to a minute for a fit.
FITS_IN_R = {True: [(2, 2), (8, 1)], False: [(2, 1)]}
# Other packages are measured on one core too; mrshc limits BLAS itself.
ONE_BLAS_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
# Keys of results.json: mrshc, and the package that it is compared with (pandas, scikit-learn).
PEERS = ("mrshc", "peer")
# Packages of the extra `bench`, and the cases that need them.
PEER_PACKAGES = {
    "seaborn": "peers.heat_map_in_seaborn",
    "consensusclustering": "peers.consensus",
}
# Sizes of R's recorded times, and one for which the matrix of pairs does not fit into memory.
SHC_SIZES = [(60, 500), (320, 2000), (1000, 20_000)]
# Methods of the page "Which method?", as estimators with parameters, and sizes of the data.
TIMED_METHODS = {
    "AssociationHC": ("AssociationHC", {}),
    "HMV 500, Ward": ("HighVarianceHC", {"n_features_to_select": 500, "linkage": "ward"}),
    "MrSHC": ("MrSHC", {}),
    "SHC": ("SHC", {}),
    "SHC-SSL": ("SHC", {"penalty": "ssl"}),
    "sparse K-means": ("SparseKMeans", {"n_clusters": 3}),
    "COSA": ("COSA", {}),
}
TIMED_SIZES = [(60, 500), (100, 1000), (200, 2000)]
# These take from 40 seconds to two minutes.
NOT_TIMED = {("SHC", 200, 2000), ("SHC-SSL", 200, 2000)}
# Largest n * n * p for which the explicit matrix of pairs, of half as many cells, is made: 4 GB in
# double precision.
MAX_PAIR_CELLS = 1e9

# Curves of the paper's procedure and of the recommended settings.
PAPER_STYLE, RECOMMENDED_STYLE = "o-", "s--"

_LOCAL = threading.local()
# Processor time of the cases of the part that is being measured.
CPU_SECONDS: list[float] = []


def run_case(name, **arguments):
    """Run a function of cases.py in a process of its own and return its figures.

    Functions of another module are named with it, as in "peers.consensus".
    """
    module, _, function = name.rpartition(".")
    server = server_of_this_thread()
    server.stdin.write(json.dumps([module or "cases", function, arguments]) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    cpu_seconds = server.stdout.readline()
    if not cpu_seconds:
        sys.exit(f"The case {name} failed.")
    CPU_SECONDS.append(float(cpu_seconds))
    sys.stderr.write(f"{name} {arguments}: {answer}")
    return json.loads(answer)


def server_of_this_thread():
    """Return a running case_server.py, which answers one request after the other."""
    if not hasattr(_LOCAL, "server"):
        _LOCAL.server = subprocess.Popen(
            [sys.executable, "case_server.py"],
            cwd=HERE,
            env=os.environ | ONE_BLAS_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    return _LOCAL.server


def has_r(*packages):
    """Return whether Rscript and the packages of R are installed; if not, say so on stderr."""
    if shutil.which("Rscript") is None:
        sys.stderr.write("R is not installed, so it is not measured.\n")
        return False
    for package in packages:
        code = f"quit(status = !requireNamespace('{package}', quietly = TRUE))"
        if subprocess.run(["Rscript", "-e", code], check=False).returncode:
            sys.stderr.write(f"The R package {package} is not installed: R is not measured.\n")
            return False
    return True


def measure_end_to_end():
    """Return the seconds of fits of the paper's simulations, of the plain twin, and of R."""
    rows, in_r = [], has_r("cluster")
    for design in ("I", "II"):
        # Classical clustering of all features is the cheapest of the methods.
        hc = run_case("classical", design=design, draws=10)
        for known in (True, False):
            case = {"design": design, "known": known}
            one, two = (run_case("end_to_end", **case, n_jobs=jobs, draws=6) for jobs in (1, 2))
            fits_in_r = [
                run_case("peers.paper_in_r", **case, n_tested=n_tested, draws=draws)
                for n_tested, draws in (FITS_IN_R[known] if in_r else ())
            ]
            rows.append(
                case
                | {"one": one, "two": two, "hc": hc, "in_r": fits_in_r}
                # With 11 candidates, the plain twin needs more than half a minute.
                | (run_case("twin", **case) if known else {})
            )
    return rows


def measure_growth():
    """Return seconds and memory of fits of growing size."""
    curves, measured = {name: [] for name in GROWTH}, {}
    for name, growth in GROWTH.items():
        for size in growth.sizes:
            shape, given = growth.fit_at(size)
            # A median, since the number of bounds that a search solves depends on the draw.
            draws = 3 if shape["n"] * shape["p"] <= growth.three_draws else 1
            case = shape | {"estimator": growth.estimator, "given": given, "draws": draws}
            # The curves of a procedure meet in one size.
            if repr(case) not in measured:
                measured[repr(case)] = run_case("fit_of_size", **case)
            curves[name].append({"size": size} | measured[repr(case)])
    return curves


def measure_large():
    """Return seconds and memory of two large fits on two cores."""
    # Many features with every choice left to the method, and many samples.
    return {
        "n = 100, p = 20,000, everything unknown": run_case(
            "fit_of_size", n=100, p=20_000, estimator="MrSHC", given={}, n_jobs=2
        ),
        "n = 4,000, p = 2,000, q and K known": run_case(
            "fit_of_size", n=4000, p=2000, estimator="MrSHC", given=PAPER, n_jobs=2
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
    """Return the seconds of methods of other authors, ours and of other implementations."""
    rows = []
    if has_r():
        rows += [
            run_case("sparse_kmeans", n=n, p=p, in_r=in_r)
            for n, p in ((60, 500), (100, 1000))
            for in_r in ("same starts", "few starts")
        ]
    rows += [run_case("cosa", n=n, p=p) for n, p in ((60, 500), (100, 1000))]
    for design, recorded in RECORDED_RECOMBINE.items():
        row = run_case("spike_and_slab", design=design, draws=2)
        rows.append(row | {"peer": recorded, "peer_name": "R package recombine, recorded"})
    return rows + measure_peers()


def measure_peers():
    """Return the seconds of Python packages for the same tasks, where they are installed."""
    rows = [run_case("peers.variable_features_in_scipy", n=200, p=5000)]
    for package, case in PEER_PACKAGES.items():
        if find_spec(package) is None:
            sys.stderr.write(f"{package} is not installed, so it is not measured.\n")
        else:
            rows.append(run_case(case, n=200, p=5000))
    return rows


def measure_methods():
    """Return the seconds and the memory of one fit of each method, for three sizes."""
    return [
        {"label": label, "n": n, "p": p}
        | run_case("one_fit", estimator=name, given=given, n=n, p=p)
        for label, (name, given) in TIMED_METHODS.items()
        for n, p in TIMED_SIZES
        if (label, n, p) not in NOT_TIMED
    ]


def measure_early_stopping():
    """Return how often early stopping decides otherwise than all reference samples."""
    # No times are measured here, so two processes run at once.
    with ThreadPoolExecutor(2) as pool:
        halves = pool.map(lambda first: run_case("early_stopping", first=first, draws=4), (0, 4))
    totals = dict.fromkeys(("searches", "nodes", "other_verdict", "drawn"), 0)
    for counts in halves:
        totals = {name: totals[name] + counts[name] for name in totals}
    return totals


def measure_convergence():
    """Return the effect of 20 and of 500 alternations on time, number of features and recall."""
    return [
        {"design": design, "max_iter": m}
        | run_case("convergence", design=design, max_iter=m, draws=30)
        for design in ("I", "II")
        for m in (20, 500)
    ]


def measure_start_up():
    """Return the seconds of imports and of the help text."""
    return run_case("start_up")


def measure_first_run():
    """Return the seconds of first and later runs of the command line, twice each."""
    return [run_case("first_run", seed=seed) for seed in range(2)]


def measure_reading():
    """Return seconds and memory of reading a table, for mrshc and for pandas."""
    rows = []
    # Few digits, as in rounded tables, and all digits of a double.
    for digits in (5, 17):
        with tempfile.TemporaryDirectory() as folder:
            table = {"path": str(Path(folder, "table.tsv")), "rows": 20_000, "columns": 500}
            run_case("write_table", **table, digits=digits)
            times = {name: run_case("reading", **table, ours=name == "mrshc") for name in PEERS}
        rows.append({"digits": digits} | times)
    return rows


def measure_imputation():
    """Return seconds and memory of imputation, for mrshc and for scikit-learn."""
    size = {"n": 100, "p": 10_000, "share": 0.05}
    return size | {name: run_case("imputation", **size, ours=name == "mrshc") for name in PEERS}


def measure_beyond():
    """Return the seconds of options that go beyond the paper."""
    figures = {
        f"Simulation {design}": run_case("beyond", design=design, draws=2, repeats=2)
        for design in ("I", "II")
    }
    if "MRSHC_DATA" in os.environ:
        figures["lymphoma"] = run_case("beyond", design="lymphoma", draws=1, repeats=2)
    return figures


def measure_out_of_core():
    """Return seconds, memory and passes of searches in out-of-core data."""
    sizes = [{"n": 200, "p": p} for p in (100_000, 1_000_000)]
    # The storage backends are compared at a size that takes less than a minute.
    compared = sizes[0]
    return {
        "growth": [size | run_case("out_of_core", **size, storage="map") for size in sizes],
        "recommended": sizes[-1]
        | run_case("out_of_core", **sizes[-1], storage="map", estimator="AssociationHC"),
        "memory": compared | run_case("out_of_core", **compared, storage="memory"),
        "cluster": compared | run_case("out_of_core", **compared, storage="cluster"),
    }


def read_gpu():
    """Return the committed measurements on a GPU, which gpu.py makes by hand."""
    return json.loads(GPU.read_text(encoding="utf-8"))


def read_many_samples():
    """Return the committed measurements with many samples, which many_samples.py makes by hand."""
    return json.loads(MANY_SAMPLES.read_text(encoding="utf-8"))


def show_end_to_end(rows):
    """Return a table of end-to-end times with those of the plain twin, and one of those of R."""
    headings = ["", "1 core", "2 cores", "ratio", "plain twin / 1 core", "1 core / classical HC"]
    cells = []
    for row in rows:
        twin = "not measured"
        if "twin" in row:
            # A twin with another result would make the comparison of times meaningless.
            same = "" if row["same_answer"] else " (another answer)"
            twin = f"{row['twin'] / row['ours']:.0f}{same}"
        cells.append(
            [
                name_simulation(row),
                f"{row['one']:.3f} s",
                f"{row['two']:.3f} s",
                f"{row['one'] / row['two']:.2f}",
                twin,
                f"{row['one'] / row['hc']:.0f}",
            ]
        )
    return f"{markdown_table(headings, cells)}\n{show_r(rows)}"


def name_simulation(row):
    """Return the name of a design in a table."""
    return f"Simulation {row['design']}, {'q known' if row['known'] else '11 candidate q'}"


def show_r(rows):
    """Return a table of times of R and of mrshc for the same draws in the same run."""
    headings = ["R and mrshc on the same draws", "draws", "clusters tested", "R", "mrshc, 2 cores"]
    headings += ["R / 1 core", "R / 2 cores", "CER between both", "features in common"]
    headings += ["same result with other seeds", "R with PMA, recorded earlier"]
    cells = []
    for row in rows:
        recorded = f"{RECORDED_R[row['design'], row['known']]:g} s"
        cells += [[name_simulation(row), *show_fit_in_r(fit), recorded] for fit in row["in_r"]]
        if not row["in_r"]:
            # Recorded times are of another computer and program: no ratio is computed with them.
            cells.append(
                [
                    *(name_simulation(row), "", "", "not measured", ""),
                    *("not measured", "not measured", "", "", "", recorded),
                ]
            )
    versions = {fit["versions"] for row in rows for fit in row["in_r"]}
    sentence = f"\nMeasured with {'; '.join(sorted(versions))}.\n" if versions else ""
    return markdown_table(headings, cells) + sentence


def show_fit_in_r(fit):
    """Return the cells of a table for fits in R and of mrshc."""
    return [
        str(fit["draws"]),
        f"1 to {fit['n_tested']}",
        f"{fit['r']:.1f} s",
        f"{fit['two']:.3f} s",
        f"{fit['r'] / fit['one']:.0f}",
        f"{fit['r'] / fit['two']:.0f}",
        f"{fit['cer']:.3f}",
        f"{fit['features']:.0%}",
        f"{fit['n_same']} of {fit['n_seeds']}",
    ]


def show_growth(curves):
    """Return tables of growth rates and of the cost model, and write the picture of the curves."""
    draw_growth(curves)
    models = {label: fit_model(terms, curves) for label, terms in TERMS.items()}
    models = {label: model for label, model in models.items() if model is not None}
    rows = []
    for name, curve in curves.items():
        growth = GROWTH[name]
        model = next(m for m in models.values() if m.terms.estimator == growth.estimator)
        predicted = [
            {"size": r["size"], "seconds": model.predict_seconds(size_of(name, r["size"]))}
            for r in curve
        ]
        low, high = growth.fitted
        # The whole range of sizes is shown, also where the slope is not fitted.
        first, last = curve[0], curve[-1]
        rows.append(
            [
                growth.label,
                f"{first['size']:,} to {last['size']:,}",
                f"{first['seconds']:.3f} s to {last['seconds']:.2f} s",
                f"{growth_exponent(curve, low, high):.2f} (from {low:,} to {high:,})",
                f"{growth_exponent(predicted, low, high):.2f}",
                f"{first['multiple_of_x']:.1f} to {last['multiple_of_x']:.1f}",
            ]
        )
    headings = ["growing", "range", "seconds", "exponent", "of the cost model", "memory / X"]
    return f"{markdown_table(headings, rows)}\n{show_costs(models)}"


def show_costs(models):
    """Return a table of the fitted cost models."""
    cells = [
        [
            label,
            " + ".join(f"{c:.1e} {name}".strip() for name, c in model.seconds.items()),
            f"{model.seconds_error:.0%}",
            " + ".join(f"{c:.2g} {name}" for name, c in model.memory.items()),
            f"{model.memory_error:.0%}",
        ]
        for label, model in models.items()
    ]
    headings = ["cost model", "seconds on one core", "median error", "memory in addition to X"]
    return markdown_table([*headings, "median error"], cells)


def draw_growth(curves):
    """Write a picture of seconds against size, one panel for each quantity."""
    panels = {}
    for name, curve in curves.items():
        panels.setdefault(GROWTH[name].quantity, []).append((GROWTH[name], curve))
    figure = Figure(figsize=(10, 3), layout="constrained")
    # One scale of seconds, so that the panels can be compared.
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, color, drawn in zip(axes, PALETTE, panels.values(), strict=False):
        for growth, curve in drawn:
            sizes, seconds = ([row[key] for row in curve] for key in ("size", "seconds"))
            style = PAPER_STYLE if growth.estimator == "MrSHC" else RECOMMENDED_STYLE
            axis.loglog(sizes, seconds, style, color=color, markersize=4)
        axis.set_title(drawn[0][0].label, fontsize=10)
        axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds of a fit, one core")
    # The colours are those of the panels, so the legend is grey.
    procedures = {"paper, q and K known": PAPER_STYLE, "recommended": RECOMMENDED_STYLE}
    for label, style in procedures.items():
        axes[0].plot([], [], style, color="#555555", markersize=4, label=label)
    axes[0].legend(frameon=False, fontsize=8)
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
        # Two digits, also where another program is faster.
        cells.append(
            [size, f"{ours:.2f} s", row["peer_name"], f"{peer:.2f} s", f"{peer / ours:.2g}"]
        )
    headings = ["method, on one core", "ours", "compared with", "its time", "its time / ours"]
    return markdown_table(headings, cells)


def show_methods(rows):
    """Return a table with a row for each method and a column for each size."""
    cells = {
        (row["label"], row["n"], row["p"]): f"{row['seconds']:.2f} s, {row['peak_mb']:.0f} MB"
        for row in rows
    }
    labels = dict.fromkeys(row["label"] for row in rows)
    sizes = dict.fromkeys((row["n"], row["p"]) for row in rows)
    headings = ["method"] + [f"n = {n}, p = {p:,}" for n, p in sizes]
    return markdown_table(
        headings,
        [
            [label, *(cells.get((label, *size), "not measured") for size in sizes)]
            for label in labels
        ],
    )


def show_early_stopping(counts):
    """Return a sentence on how often early stopping decides otherwise."""
    nodes = counts["nodes"]
    return (
        f"{nodes:,} nodes of {counts['searches']} searches: {counts['other_verdict']} verdicts "
        f"differ from those of all 50 reference samples; {counts['drawn'] / nodes:.1f} samples are "
        "drawn on average.\n"
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
    headings = ["q = 50 known", "alternations at most", "time", "searches that hit q"]
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
    size = f"n = {rows['n']}, p = {rows['p']:,}, {rows['share']:.0%} missing".replace("%", " %")
    return markdown_table([size, "peak", "KNNImputer", "peak", "faster"], [cells])


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
    answers = {row["p"]: row["answer"] for row in growth}
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
    row = figures["recommended"]
    cells.append(
        [
            f"memory map, p = {row['p']:,}, recommended settings",
            f"{row['seconds']:.0f} s",
            f"{row['peak_mb']:.0f} MB",
            str(row["passes"]),
            "",
        ]
    )
    for name, storage in (("memory", "in memory"), ("cluster", "dask, 2 workers, one killed")):
        row = figures[name]
        # In capitals: a different result would be a bug, which nobody must overlook.
        same = "the same" if row["answer"] == answers[row["p"]] else "ANOTHER"
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


def show_many_samples(figures):
    """Return a table of fits with many samples."""
    names = {"recommended": "recommended settings", "known": "q known"}
    cells = [
        [
            f"n = {row['n']:,}, p = {row['p']:,}, {names[case.split('_')[0]]}",
            f"{row['seconds']:.0f} s",
            f"{row['cpu_seconds']:.0f} s",
            f"{row['peak_mb'] / 1000:.2f} GB",
            f"X and {row['n_matrices']:.1f} matrices",
        ]
        for case, row in figures.items()
    ]
    headings = ["2 threads", "time", "processor time", "peak memory", "in units of the data"]
    return markdown_table(headings, cells)


def show_gpu(figures):
    """Return a table of times on the device and on two cores."""
    cells = []
    methods = {"search": "MrSHC", "recommended": "AssociationHC", "shc": "SHC, one bound"}
    for name, method in methods.items():
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
    return markdown_table([*headings, "memory of the device"], cells)


class Part(NamedTuple):
    """A part of the benchmarks: a function that measures it, and one that renders its figures."""

    measure: Callable[[], Any]
    show: Callable[[Any], str]


# By the names in results.json and in the marks of the pages.
PARTS = {
    "end_to_end": Part(measure_end_to_end, show_end_to_end),
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
    "many_samples": Part(read_many_samples, show_many_samples),
    "gpu": Part(read_gpu, show_gpu),
}


def render(results):
    """Insert the tables of all parts into the pages."""
    # Each table is on one of the pages; a page without its marks is left unchanged.
    for path in (PAGE, LARGE_DATA, WHICH_METHOD):
        page = path.read_text(encoding="utf-8")
        for name, part in PARTS.items():
            if name in results:
                page = replace_section(page, name, part.show(results[name]["figures"]))
        write_text(path, page)


def describe_environment():
    """Return the version of the code, the versions of packages and the computer."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    # Packages on which speed depends.
    versions = {p: version(p) for p in packages} | {"python": platform.python_version()}
    computer = {"architecture": platform.machine(), "cores": os.cpu_count()}
    return {"versions": versions, "computer": computer}


def main(names):
    """Measure the named parts, all by default, and render the results."""
    # Parts that are not measured now keep their earlier results.
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    begun = time.perf_counter()
    for name, part in PARTS.items() if names != ["--render"] else ():
        if not names or name in names:
            results[name] = {"figures": measure_part(name, part)} | describe_environment()
            # After each part: a long measurement that fails must not lose the others.
            write_text(RESULTS, json.dumps(results, indent=2) + "\n")
            sys.stderr.write(f"{time.perf_counter() - begun:.0f} s since the start.\n")
    render(results)


def measure_part(name, part):
    """Return the figures of a part, and say how long it took."""
    begun = time.perf_counter()
    CPU_SECONDS.clear()
    figures = part.measure()
    # On a computer with other work, a part takes longer than its processor time.
    cpu = sum(CPU_SECONDS)
    seconds = time.perf_counter() - begun
    sys.stderr.write(f"{name} took {seconds:.0f} s, and {cpu:.0f} s of processor time.\n")
    return figures


if __name__ == "__main__":
    main(sys.argv[1:])
