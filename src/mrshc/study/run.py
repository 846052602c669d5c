"""Runs a study, or renders its committed results again."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from mrshc.study import microarray, section2, simulation, timing
from mrshc.study.config import Folders, Study, StudyError, code_version, load_study
from mrshc.study.journal import Journal
from mrshc.study.tables import publish

__all__ = ["StudyError", "render_study", "run_study"]

Progress = Callable[[int, int], None]
_KINDS: dict[str, ModuleType] = {
    "simulation": simulation,
    "section2": section2,
    "timing": timing,
    "microarray": microarray,
}
_PACKAGES = ("mrshc", "numpy", "scipy", "scikit-learn", "numba", "pandas")


def run_study(
    name: str,
    *,
    folder: Path,
    out: Path | None = None,
    replicates: int | None = None,
    data: Path | None = None,
    n_jobs: int | None = None,
    progress: Progress = lambda *_: None,
) -> Path:
    """Run a study and write its results, metadata and tables; return where the results lie.

    Another number of draws than the config's must go to a folder of its own: the committed
    results stay as they are.
    """
    study = load_study(folder, name)
    here = out is None or out.resolve() == folder.resolve()
    if replicates is not None and replicates != study.replicates:
        if here:
            raise StudyError(
                f"{name} has {study.replicates} draws; to make {replicates} give another folder "
                "(--out)."
            )
        study = replace(study, replicates=replicates)
    if n_jobs == 0:
        raise StudyError("The number of workers must be 1 or more, or -1 for every core, got 0.")
    tasks = _kind(study).tasks(study)
    target = folder if out is None else out
    target.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    journal = Journal(target / f"{name}.partial.jsonl", fingerprint=study.fingerprint)
    n_before = len(journal.done)
    folders = Folders(data=data, out=target)
    _finish(study, tasks, journal, folders=folders, n_jobs=n_jobs, progress=progress)
    rows = [row for task in sorted(tasks) for row in journal.done[task]]
    if all("error" in row for row in rows):
        journal.close()  # what fails everywhere is not worth keeping: mended, it runs anew
        raise StudyError(f"{name} failed everywhere, first with {rows[0]['error']}")
    results = pd.DataFrame(rows).convert_dtypes()  # counts stay whole where some are missing
    _write(target / f"{name}.csv", results.to_csv(index=False))
    metadata = {
        "study": name,
        "replicates": study.replicates,
        "config": study.options,
        "versions": {p: version(p) for p in _PACKAGES} | {"python": platform.python_version()},
        "code": code_version(),
        "seconds": round(time.perf_counter() - started, 1),
        "tasks": len(tasks),
        "tasks_done_before": n_before,  # by an earlier run that was interrupted
    }
    _write(target / f"{name}.json", json.dumps(metadata, indent=2) + "\n")
    journal.close()
    render_study(name, folder=folder, out=out)
    return target / f"{name}.csv"


def render_study(name: str, *, folder: Path, out: Path | None = None) -> str:
    """Render results again: the study's own page and, for committed ones, wherever it is shown."""
    study = load_study(folder, name)
    target = folder if out is None else out
    if not (target / f"{name}.csv").exists():
        raise StudyError(f"{name} has no results yet. Run it first: mrshc study {name}.")
    table = _rendered(study, target)
    _write(target / f"{name}.md", table)
    if target.resolve() == folder.resolve():
        _publish(study, table)
    return table


def _publish(study: Study, table: str) -> None:
    """Show a table on the pages of the project that have a place for it."""
    folder = study.folder.resolve()
    pages = [*folder.parent.glob("README.md"), *sorted(folder.parent.glob("docs/*.md"))]
    publish(study.name, table, pages=pages, pictures=folder)
    if hasattr(_kind(study), "brief"):
        brief = _rendered(study, folder, brief=True)
        publish(f"{study.name} in brief", brief, pages=pages, pictures=folder)


def _rendered(study: Study, results_folder: Path, *, brief: bool = False) -> str:
    results = pd.read_csv(results_folder / f"{study.name}.csv")
    path = study.folder / "references.csv"
    columns = ["study", "design", "method", "source"]
    references = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=columns)
    references = references[references["study"] == study.name]
    kind = _kind(study)
    return str((kind.brief if brief else kind.render)(study, results, references))


def _kind(study: Study) -> ModuleType:
    if study.kind not in _KINDS:
        raise StudyError(f"{study.name}.toml must name a kind out of {', '.join(_KINDS)}.")
    return _KINDS[study.kind]


def _finish(
    study: Study,
    tasks: list[tuple[int, ...]],
    journal: Journal,
    *,
    folders: Folders,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Run the tasks that the journal does not hold yet."""
    waiting = [task for task in tasks if task not in journal.done]
    progress(len(tasks) - len(waiting), len(tasks))
    alone = getattr(_kind(study), "ONE_AT_A_TIME", False)
    # Processes: many small fits in one interpreter would wait for each other.
    parallel = Parallel(n_jobs=1 if alone else n_jobs, return_as="generator_unordered")
    finished = parallel(delayed(_named)(study, task, folders) for task in waiting)
    for k, (task, rows) in enumerate(finished, start=len(tasks) - len(waiting) + 1):
        journal.add(task, rows)
        progress(k, len(tasks))


def _named(
    study: Study, task: tuple[int, ...], folders: Folders
) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
    """Run one task; one that fails is a row with its error, never a gap."""
    kind = _kind(study)
    try:
        return task, kind.run_task(study, task, folders)
    except StudyError:
        raise
    except Exception as error:
        return task, [kind.identity(study, task) | {"error": f"{type(error).__name__}: {error}"}]


def _write(path: Path, text: str) -> None:
    """Write beside the target and rename, so that the old file stays whole until the new one is."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)
