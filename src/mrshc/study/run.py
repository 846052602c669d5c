"""Runs a study, or renders its results again."""

from __future__ import annotations

import json
import os
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

from mrshc.errors import Parameter, Sentence, described
from mrshc.study.config import CONFIGS, Folders, Study, StudyError, code_version, load_study
from mrshc.study.kinds import (
    many_real_datasets,
    one_real_dataset,
    section2,
    simulated_designs,
    timing,
)
from mrshc.study.study_journal import Row, StudyJournal, Task, open_journal
from mrshc.utils.atomic_files import write_text

__all__ = ["StudyError", "render_brief", "render_study", "run_study"]

Progress = Callable[[int, int], None]
_KINDS: dict[str, ModuleType] = {
    "simulation": simulated_designs,
    "section2": section2,
    "timing": timing,
    "microarray": one_real_dataset,
    "realworld": many_real_datasets,
}
# Where results go that belong to no folder of configs.
_OUT = Path("mrshc-study")
_PACKAGES = ("mrshc", "numpy", "scipy", "scikit-learn", "numba", "pandas")


def run_study(
    name: str,
    *,
    folder: Path = CONFIGS,
    out: Path | None = None,
    replicates: int | None = None,
    data: Path | None = None,
    n_jobs: int | None = None,
    progress: Progress = lambda *_: None,
) -> Path:
    """Run a study and write its results, metadata and tables.

    Parameters
    ----------
    name : str
        The study, such as "table1".
    folder : path
        Where its config is; by default the studies of the paper, which are part of the package.
    out : path or None
        Folder for the results; by default that of the config or, for studies of the package,
        `mrshc-study` in the current folder.
    replicates : int or None
        Number of draws instead of the config's. Such a trial does not replace results with all
        draws: give it a folder of its own.
    data : path or None
        Folder of real data sets.
    n_jobs : int or None
        Number of workers.
    progress : callable
        Called with the number of tasks done and the number of all.

    Returns
    -------
    path
        The table of results, a CSV file.
    """
    study, target = load_study(folder, name), _results_folder(folder, out)
    if replicates is not None and replicates != study.replicates:
        _refuse_trial(study, replicates, target)
        study = replace(study, replicates=replicates)
    if n_jobs == 0:
        raise StudyError("The number of workers must be 1 or more, or -1 for every core, got 0.")
    work = target / f"{name}.partial"
    folders = Folders(data=data, out=work)
    tasks = _kind(study).tasks(study, folders)
    with open_journal(work, fingerprint=study.fingerprint) as journal:
        _finish(study, tasks, journal, folders=folders, n_jobs=n_jobs, progress=progress)
        _write_results(study, tasks, journal, target)
    render_study(name, folder=folder, out=out)
    return target / f"{name}.csv"


def _results_folder(folder: Path, out: Path | None) -> Path:
    if out is not None:
        return out
    return _OUT if folder == CONFIGS else folder


def _refuse_trial(study: Study, replicates: int, target: Path) -> None:
    """Refuse a trial where results with all draws belong or already are."""
    metadata = _metadata(study, target)
    whole = metadata is not None and metadata.get("replicates") == study.replicates
    if whole or target.resolve() == study.folder.resolve():
        raise StudyError(
            Sentence(
                "{name} has {own} draws; to make {replicates} give another folder ({out}).",
                name=study.name,
                own=study.replicates,
                replicates=replicates,
                out=Parameter("out"),
            )
        )


def _metadata(study: Study, target: Path) -> dict[str, Any] | None:
    path = target / f"{study.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _write_results(study: Study, tasks: list[Task], journal: StudyJournal, target: Path) -> None:
    """Write the table of results and what it was made with; the journal has done its duty."""
    rows = [row for task in sorted(tasks) for row in journal.rows[task]]
    if all("error" in row for row in rows):
        journal.close(pictures_to=None)  # mended, it runs anew
        raise StudyError(f"{study.name} failed everywhere, first with {rows[0]['error']}")
    results = pd.DataFrame(rows).convert_dtypes()  # counts stay whole where some are missing
    metadata = {
        "study": study.name,
        "replicates": study.replicates,
        "config": study.options,
        "code": code_version(),
        "versions": {p: version(p) for p in _PACKAGES} | {"python": platform.python_version()},
        "computer": {"architecture": platform.machine(), "cores": os.cpu_count()},
        "tasks": len(tasks),
        # Of all tasks together, also those done before an interruption or beside each other.
        "seconds": round(sum(journal.seconds[task] for task in tasks), 1),
    }
    write_text(target / f"{study.name}.csv", results.to_csv(index=False))
    write_text(target / f"{study.name}.json", json.dumps(metadata, indent=2) + "\n")
    journal.close(pictures_to=target)


def render_study(name: str, *, folder: Path = CONFIGS, out: Path | None = None) -> str:
    """Render results again as Markdown, next to them; return the text.

    Parameters are those of :func:`run_study`.
    """
    study, target = load_study(folder, name), _results_folder(folder, out)
    table = _rendered(study, target)
    write_text(target / f"{name}.md", table)
    return table


def render_brief(name: str, *, folder: Path = CONFIGS, out: Path | None = None) -> str | None:
    """Return the results of a study in brief; None if this kind of study has no brief form.

    Parameters are those of :func:`run_study`.
    """
    study = load_study(folder, name)
    if not hasattr(_kind(study), "brief"):
        return None
    return _rendered(study, _results_folder(folder, out), brief=True)


def _refuse_other_config(study: Study, target: Path) -> None:
    metadata = _metadata(study, target)
    if metadata is None or not study.same_computation(metadata["config"]):
        raise StudyError(
            f"The results of {study.name} were made with another config than {study.name}.toml. "
            "Run it again."
        )


def _rendered(study: Study, results_folder: Path, *, brief: bool = False) -> str:
    if not (results_folder / f"{study.name}.csv").exists():
        raise StudyError(f"{study.name} has no results yet in {results_folder}. Run it first.")
    _refuse_other_config(study, results_folder)
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
    tasks: list[Task],
    journal: StudyJournal,
    *,
    folders: Folders,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Run the tasks that the journal does not hold yet."""
    waiting = [task for task in tasks if task not in journal.rows]
    progress(len(tasks) - len(waiting), len(tasks))
    alone = getattr(_kind(study), "ONE_AT_A_TIME", False)
    # Processes: many small fits in one interpreter would wait for each other.
    parallel = Parallel(n_jobs=1 if alone else n_jobs, return_as="generator_unordered")
    finished = parallel(delayed(_done)(study, task, folders) for task in waiting)
    for k, (task, rows, seconds) in enumerate(finished, start=len(tasks) - len(waiting) + 1):
        journal.add(task, rows, seconds)
        progress(k, len(tasks))


def _done(study: Study, task: Task, folders: Folders) -> tuple[Task, list[Row], float]:
    """Run one task and time it; one that fails is a row with its error, never a gap."""
    kind = _kind(study)
    started = time.perf_counter()
    try:
        rows = kind.run_task(study, task, folders)
    except StudyError:
        raise
    except Exception as error:
        rows = [kind.identity(study, task) | {"error": described(error)}]
    return task, rows, time.perf_counter() - started
