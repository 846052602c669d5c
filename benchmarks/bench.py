"""Speed and memory: measures, writes benchmarks/results.json, and shows it in docs/performance.md.

Run: make bench. Takes about half an hour, most of it the plain twin. `bench.py --render` shows the
committed results again; `bench.py NAME ...` measures some parts and keeps the others.
"""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mrshc.plotting import PALETTE, write_picture
from mrshc.study.config import code_version
from mrshc.study.tables import markdown_table
from mrshc.utils.atomic_files import write_text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "studies"))

from publish import published  # noqa: E402 - a script, not part of the package

RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "performance.md"
GPU = HERE / "gpu.json"
SCALING = HERE.parent / "docs" / "scaling.md"
PICTURE = HERE.parent / "docs" / "images" / "growth.png"

# Seconds on the stack the method came from (R 4.2.2, PMA, clusGap), one core of a computer like
# the one where the rest was measured; recorded once, not part of a run.
RECORDED_R = {("I", True): 7.2, ("I", False): 66.0, ("II", True): 9.3, ("II", False): 100.0}
RECORDED_SPARCL = {(60, 500): 0.048, (320, 2000): 6.927}

COMMON = {"n": 100, "p": 2000, "q": 50, "max_rank": 5, "n_clusters": 3, "n_jobs": 1}
GROWTH = {
    "n": [50, 100, 200, 500, 1000, 2000, 4000, 5000],
    "p": [500, 2000, 5000, 20_000, 50_000, 100_000, 200_000],
    "q": [10, 20, 50, 100, 200, 400, 800],
    "max_rank": [1, 2, 3, 5, 8, 10],
}
# Others are measured on one core too: ours sees to it itself.
ONE_BLAS_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
PEERS = ("mrshc", "peer")  # what others use: pandas' and scikit-learn's
SHC_SIZES = [(60, 500), (320, 2000), (1000, 20_000)]


def call(name, **arguments):
    """Run a case in a process of its own and return its figures."""
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


def end_to_end():
    rows = []
    for design in ("I", "II"):
        hc = call("classical", design=design, draws=10)
        for known in (True, False):
            one, two = (
                call("end_to_end", design=design, known=known, n_jobs=jobs, draws=10)
                for jobs in (1, 2)
            )
            rows.append(
                {"design": design, "known": known, "one": one, "two": two, "hc": hc}
                | call("twin", design=design, known=known)
            )
    return rows


def profile():
    return {design: call("profile", design=design) for design in ("I", "II")}


def growth():
    """The median of three draws: how many bounds a search needs depends on the draw."""
    curves = {}
    for what, sizes in GROWTH.items():
        curves[what] = []
        for size in sizes:
            draws = [call("fit_of_size", **(COMMON | {what: size, "seed": k})) for k in range(3)]
            middle = sorted(draws, key=lambda draw: draw["seconds"])[1]
            curves[what].append({"size": size} | middle)
    return curves


def large():
    everything = {"max_rank": 5, "n_jobs": 2}
    return {
        "n = 100, p = 20,000, everything unknown": call(
            "fit_of_size", n=100, p=20_000, q=None, n_clusters=None, **everything
        ),
        "n = 4,000, p = 2,000, q and K known": call(
            "fit_of_size", n=4000, p=2000, q=50, n_clusters=3, **everything
        ),
    }


def shc():
    rows = []
    for n, p in SHC_SIZES:
        row = {"n": n, "p": p, "lean": call("shc", n=n, p=p, explicit=False)}
        if n**2 * p < 1e9:  # D fits in memory
            row["explicit"] = call("shc", n=n, p=p, explicit=True)
        rows.append(row)
    return rows


def early_stopping():
    return call("early_stopping", draws=12)


def convergence():
    return [
        {"design": design, "max_iter": m} | call("convergence", design=design, max_iter=m, draws=50)
        for design in ("I", "II")
        for m in (20, 500)
    ]


def start_up():
    return call("start_up")


def reading():
    table = {"rows": 20_000, "columns": 500}
    return [
        {"digits": digits}
        | {name: call("reading", **table, digits=digits, ours=name == "mrshc") for name in PEERS}
        for digits in (5, 17)
    ]


def imputation():
    size = {"n": 100, "p": 20_000, "share": 0.05}
    return {name: call("imputation", **size, ours=name == "mrshc") for name in PEERS}


def beyond():
    return {design: call("beyond", design=design, draws=5) for design in ("I", "II")}


def far():
    million = {"n": 200, "p": 1_000_000}
    return {
        "growth": [
            million | {"p": p} | call("far", n=200, p=p, where="map")
            for p in (10_000, 100_000, 1_000_000)
        ],
        "memory": million | call("far", **million, where="memory"),
        "cluster": million | call("far", **million, where="cluster"),
    }


def gpu():
    """What was measured by hand, see gpu.py."""
    return json.loads(GPU.read_text(encoding="utf-8"))


def model():
    """What the measurements say about other sizes: seconds of one core for a unit of each work."""
    measured = gpu()["cpu-search"]
    n, cells, parts = measured["n"], measured["n"] * measured["p"], measured["parts"]
    proofs = measured["passes"] - 3
    return {
        "statistics": 2 * (parts["statistics"] + parts["starts"]) / cells,
        "inner products": 2 * parts["inner products"] / (n * cells),
        "proofs": 2 * parts["proofs"] / (proofs * cells),
        "components": 2 * (parts["components and proofs"] - parts["proofs"]) / n,
        "trees": 2 * parts["trees and gap tests"] / n**2,
        "passes": measured["passes"],
        "map": json.loads(RESULTS.read_text(encoding="utf-8"))["far"]["figures"]["growth"],
    }


def predicted(unit, n, p, *, cores, machines=1, bandwidth=None):
    """Seconds of each work by the model; components run where the search was started."""
    cells, every = n * p, cores * machines
    return {
        "reading": unit["passes"] * 4 * cells / (bandwidth * machines) if bandwidth else 0.0,
        "statistics, inner products": (unit["statistics"] + unit["inner products"] * n)
        * cells
        / every,
        "proofs": unit["proofs"] * (unit["passes"] - 3) * cells / every,
        "components": unit["components"] * n / cores,
        "trees and gap tests": unit["trees"] * n**2 / every,
    }


PARTS = (
    *(end_to_end, profile, growth, large, shc, early_stopping, convergence, start_up),
    *(reading, imputation, beyond, far, gpu, model),
)


def show_end_to_end(rows):
    headings = ["", "1 core", "2 cores", "ratio", "R, recorded", "R / 2 cores"]
    headings += ["plain twin / 1 core", "1 core / classical HC"]
    cells = []
    for row in rows:
        r = RECORDED_R[row["design"], row["known"]]
        name = f"Simulation {row['design']}, {'q known' if row['known'] else '11 candidate q'}"
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
    parts = list(next(iter(shares.values())))
    rows = []
    for design, spent in shares.items():
        whole = sum(spent.values())
        rows.append([f"Simulation {design}", *(f"{spent[p] / whole:.0%}" for p in parts)])
    return markdown_table(["share of the time", *parts], rows)


def exponent(rows, low, high):
    """Slope of log seconds on log size, from `low` to `high`."""
    chosen = [(r["size"], r["seconds"]) for r in rows if low <= r["size"] <= high]
    size, seconds = np.log(np.array(chosen)).T
    return float(np.polyfit(size, seconds, 1)[0])


def show_growth(curves):
    ranges = {"n": (500, 4000), "p": (20_000, 200_000), "q": (50, 800), "max_rank": (2, 10)}
    names = {"n": "samples n", "p": "features p", "q": "selected q", "max_rank": "largest rank R"}
    draw_growth(curves, names)
    rows = []
    for what, curve in curves.items():
        low, high = ranges[what]
        first, last = curve[0], curve[-1]
        rows.append(
            [
                names[what],
                f"{first['size']:,} to {last['size']:,}",
                f"{first['seconds']:.3f} s to {last['seconds']:.2f} s",
                f"{exponent(curve, low, high):.2f} (from {low:,} to {high:,})",
                f"{first['multiple_of_x']:.1f} to {last['multiple_of_x']:.1f}",
            ]
        )
    return markdown_table(["growing", "range", "seconds", "exponent", "memory / X"], rows)


def draw_growth(curves, names):
    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots(1, len(curves), sharey=True)
    for axis, color, (what, curve) in zip(axes, PALETTE, curves.items(), strict=False):
        sizes, seconds = ([row[key] for row in curve] for key in ("size", "seconds"))
        axis.loglog(sizes, seconds, "o-", color=color, markersize=4)
        axis.set_title(names[what], fontsize=10)
        axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds of a fit, one core")
    write_picture(figure, PICTURE)


def show_large(rows):
    cells = [
        [name, f"{r['seconds']:.1f} s", f"{r['peak_mb']:.0f} MB", f"{r['multiple_of_x']:.1f}"]
        for name, r in rows.items()
    ]
    headings = ["2 cores", "time", "peak memory of the process", "of the fit, as a multiple of X"]
    return markdown_table(headings, cells)


def show_shc(rows):
    cells = []
    for row in rows:
        n, p = row["n"], row["p"]
        seconds = row["lean"]["seconds"]
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


def show_early_stopping(counts):
    nodes = counts["nodes"]
    return (
        f"{nodes:,} nodes of 96 searches: {counts['other_verdict']} verdicts differ from those of "
        f"all 50 reference samples; {counts['drawn'] / nodes:.1f} samples are drawn on average.\n"
    )


def show_convergence(rows):
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
    return markdown_table(list(seconds), [[f"{s:.2f} s" for s in seconds.values()]])


def show_reading(rows):
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
    ours, theirs = rows["mrshc"], rows["peer"]
    ratio = f"{theirs['seconds'] / ours['seconds']:.0f} times"
    cells = [f"{ours['seconds']:.1f} s", f"{ours['peak_mb']:.0f} MB"]
    cells += [f"{theirs['seconds']:.1f} s", f"{theirs['peak_mb']:.0f} MB", ratio]
    headings = ["n = 100, p = 20,000, 5 % missing", "peak", "KNNImputer", "peak", "faster"]
    return markdown_table(headings, [cells])


def show_beyond(seconds):
    cells = []
    for design, of in seconds.items():
        others = [f"{s / of['search']:.2f}" for name, s in of.items() if name != "search"]
        cells.append([f"Simulation {design}", f"{of['search']:.3f} s", *others])
    return markdown_table(["", *next(iter(seconds.values()))], cells)


def show_far(figures):
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
    for name, where in (("memory", "in memory"), ("cluster", "dask, 2 workers, one killed")):
        row = figures[name]
        same = "the same" if row["answer"] == largest["answer"] else "ANOTHER"
        cells.append(
            [
                f"{where}, p = {row['p']:,}",
                f"{row['seconds']:.0f} s",
                f"{row['peak_mb']:.0f} MB",
                str(row["passes"] or ""),
                same,
            ]
        )
    headings = ["n = 200, single precision", "time", "peak beside the page cache", "passes"]
    return markdown_table([*headings, "answer, against the map"], cells)


def show_gpu(figures):
    cells = []
    for name, what in (("search", "MrSHC"), ("shc", "SHC, one bound")):
        ours, peer = figures[name], figures[f"cpu-{name}"]
        same = "the same" if ours["answer"] == peer["answer"] else "ANOTHER"
        cells.append(
            [
                f"{what}, n = {ours['n']:,}, p = {ours['p']:,}",
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
    for name, where in (("search", "device"), ("cpu-search", "2 cores")):
        parts = figures[name]["parts"]
        components = parts["components and proofs"] - parts["proofs"]
        spent = {
            "statistics, inner products, starts": sum(
                parts[p] for p in ("statistics", "inner products", "starts")
            ),
            "proofs": parts["proofs"],
            "components": max(components, 0.0),
            "trees and gap tests": parts["trees and gap tests"],
        }
        rows.append([where, *(f"{s:.1f} s" for s in spent.values())])
    return f"{table}\n\n{markdown_table(['MrSHC', *spent], rows)}"


def show_model(unit):
    cells = []
    for row in unit["map"]:
        seconds = predicted(unit | {"passes": row["passes"]}, row["n"], row["p"], cores=2)
        cells.append(
            [
                f"n = {row['n']}, p = {row['p']:,}, 2 cores",
                f"{sum(seconds.values()):.0f} s",
                f"{row['seconds']:.0f} s",
            ]
        )
    check = markdown_table(["checked", "model", "measured"], cells)
    rows = []
    for machines in (10, 100):
        seconds = predicted(
            unit, 10_000, 10_000_000, cores=16, machines=machines, bandwidth=1_000_000_000
        )
        shown = [f"{s / 60:.1f} min" for s in (*seconds.values(), sum(seconds.values()))]
        rows.append([f"{machines} machines", *shown])
    return f"{check}\n\n{markdown_table(['n = 10,000, p = 10,000,000', *seconds, 'all'], rows)}"


def render(results):
    for path in (PAGE, SCALING):
        page = path.read_text(encoding="utf-8")
        for name, part in results.items():
            page = published(page, name, globals()[f"show_{name}"](part["figures"]))
        write_text(path, page)


def made_with():
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    versions = {p: version(p) for p in packages} | {"python": platform.python_version()}
    computer = {"architecture": platform.machine(), "cores": os.cpu_count()}
    return {"code": code_version(), "versions": versions, "computer": computer}


def main(names):
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part in PARTS if names != ["--render"] else ():
        if not names or part.__name__ in names:
            results[part.__name__] = {"figures": part()} | made_with()
            write_text(RESULTS, json.dumps(results, indent=2) + "\n")
    render(results)


if __name__ == "__main__":
    main(sys.argv[1:])
