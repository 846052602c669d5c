"""Run a study, write its results, and show them on the pages of the project.

    python -m studies table1
    python -m studies lymphoma --data FOLDER
    python -m studies table1 --replicates 10 --out trial
    python -m studies table1 --render

A study is described by configs/NAME.toml and consists of tasks, such as the fit of a method to a
data set. Results are written to NAME.csv, NAME.json (how they were made) and NAME.md. Finished
tasks are kept in NAME.partial.jsonl until the end, so that an interrupted study goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import tomllib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from mrshc.comparison import format_error
from studies import microarray, prediction, real_data, section2, simulations
from studies.pages import ROOT, update_pages
from studies.tables import brief_table

STUDIES = ROOT / "studies"
CONFIGS = STUDIES / "configs"
# Each kind has `tasks(config)`, `identity(config, task)`, the columns that identify a row,
# `run(config, task, data, out)`, the rows of a task, and `render(config, results, references)`,
# the results as Markdown.
KINDS: dict[str, Any] = {
    "simulation": simulations.Simulation(simulations.score_clusters),
    "significance": simulations.Simulation(simulations.score_significance),
    "stability": simulations.Simulation(simulations.score_stability),
    "false_markers": simulations.Simulation(simulations.score_markers),
    "timing": simulations.Timing(simulations.measure_time),
    "section2": section2,
    "prediction": prediction,
    "realworld": real_data.Agreement(),
    "real_confidence": real_data.Confidence(),
    "microarray": microarray,
}
# Entries that all configs have; the number of draws is stored on its own.
_COMMON = ("name", "title", "kind", "replicates")
RECORDED = ("mrshc", "numpy", "scipy", "scikit-learn", "numba", "pandas")


def load(name: str) -> dict[str, Any]:
    """Return the config of a study."""
    path = CONFIGS / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(path.stem for path in CONFIGS.glob("*.toml")))
        raise SystemExit(f"There is no study {name!r}; there are: {known}.")
    return tomllib.loads(path.read_text(encoding="utf-8")) | {"name": name}


def run_study(config: dict[str, Any], *, data: Path | None, out: Path, n_jobs: int = -1) -> None:
    """Run the tasks of a study, and write its results and metadata."""
    out.mkdir(parents=True, exist_ok=True)
    kind, partial = KINDS[config["kind"]], out / f"{config['name']}.partial.jsonl"
    versions = {p: version(p) for p in RECORDED} | {"python": platform.python_version()}
    tasks, done = kind.tasks(config), {}
    # Finished tasks are used only if config and versions are the same; the number of draws may not.
    first = json.dumps([config | {"replicates": None}, versions], default=str)
    if partial.exists():
        about, *lines = partial.read_text(encoding="utf-8").splitlines()
        if about != first:
            raise SystemExit(f"{partial} is of another config or version. Remove it.")
        for line in lines:
            with suppress(ValueError):  # the last line may be cut off
                task, rows, seconds = json.loads(line)
                done[tuple(task)] = rows, seconds
    else:
        partial.write_text(first + "\n", encoding="utf-8")
    # Times are not measured while other tasks run. Processes, as many small fits in one would wait
    # for the global interpreter lock.
    n_jobs = 1 if config["kind"] == "timing" else n_jobs
    left = [task for task in tasks if task not in done]
    runs = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_run_task)(config, task, data, out) for task in left
    )
    with partial.open("a", encoding="utf-8") as file:
        for task, rows, seconds in runs:
            line = json.dumps([task, rows, seconds], default=lambda value: value.item())
            print(f"\n{line}", file=file, flush=True, end="")
            done[task] = json.loads(line)[1:]
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{len(done)} of {len(tasks)} tasks")
    rows = [row for task in sorted(tasks) for row in done[task][0]]
    if all("error" in row for row in rows):
        partial.unlink()
        raise SystemExit(f"{config['name']} failed everywhere, first with {rows[0]['error']}")
    metadata = {
        "study": config["name"],
        "replicates": config["replicates"],
        "config": {k: v for k, v in config.items() if k not in _COMMON},
        "versions": versions,
        "computer": {"architecture": platform.machine(), "cores": os.cpu_count()},
        "tasks": len(tasks),
        "seconds": round(sum(seconds for _, seconds in done.values()), 1),
    }
    # Nullable types, so that counts remain integers where some are missing.
    table = pd.DataFrame(rows).convert_dtypes().to_csv(index=False)
    (out / f"{config['name']}.csv").write_text(table, encoding="utf-8")
    text = json.dumps(metadata, indent=2) + "\n"
    (out / f"{config['name']}.json").write_text(text, encoding="utf-8")
    partial.unlink()


def _run_task(config: dict[str, Any], task: Any, data: Path | None, out: Path) -> tuple[Any, ...]:
    """Return the task, its rows, with the error if it fails, and its seconds."""
    kind, started = KINDS[config["kind"]], time.perf_counter()
    try:
        rows = kind.run(config, task, data, out)
    except Exception as error:  # one method or data set must not end a study
        rows = [kind.identity(config, task) | {"error": format_error(error)}]
    return task, rows, time.perf_counter() - started


def read_results(config: dict[str, Any], out: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results of a study, and values from the paper and from R."""
    references = pd.read_csv(CONFIGS / "references.csv")
    results = pd.read_csv(out / f"{config['name']}.csv")
    return results, references[references["study"] == config["name"]]


def render(config: dict[str, Any], out: Path) -> str:
    """Return the results of a study as Markdown, and write them."""
    text = KINDS[config["kind"]].render(config, *read_results(config, out))
    (out / f"{config['name']}.md").write_text(text, encoding="utf-8")
    return text


def publish(config: dict[str, Any], root: Path = ROOT) -> None:
    """Insert the results in studies/ into the pages."""
    update_pages(config["name"], render(config, root / "studies"), root=root)
    if config["kind"] == "simulation":  # README shows a part of table 1
        text = brief_table(*read_results(config, root / "studies"), columns=config["columns"])
        update_pages(f"{config['name']} in brief", text, root=root)


def main() -> None:
    """Run a study from the command line."""
    description, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description=description,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="name of a study, such as table1")
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--out", type=Path, default=STUDIES, help="folder for the results")
    parser.add_argument("--replicates", type=int, help="number of simulated data sets, for a trial")
    parser.add_argument("--n-jobs", type=int, default=-1, help="number of processes")
    parser.add_argument("--render", action="store_true", help="only make the tables")
    options = parser.parse_args()
    config = load(options.name)
    is_published = options.out.resolve() == STUDIES
    if options.replicates not in (None, config["replicates"]):
        if is_published:
            parser.error(
                f"{options.name} has {config['replicates']} draws. Give --out for a trial."
            )
        config["replicates"] = options.replicates
    if not options.render:
        run_study(config, data=options.data, out=options.out, n_jobs=options.n_jobs)
    if is_published:
        publish(config)
    sys.stdout.write(render(config, options.out))


if __name__ == "__main__":
    main()
