"""Functions that run a study, or render its stored results again."""

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

from mrshc.comparison import format_error
from mrshc.shell.atomic_files import write_text
from mrshc.shell.wording import Parameter, Sentence
from mrshc.study.config import CONFIGS, Folders, Study, StudyError, code_version, load_study
from mrshc.study.kinds import (
    false_markers,
    many_real_datasets,
    one_real_dataset,
    prediction,
    real_confidence,
    section2,
    significance,
    simulated_designs,
    stability,
    timing,
)
from mrshc.study.study_journal import Row, StudyJournal, Task, open_journal
from mrshc.version import __version__

__all__ = ["StudyError", "render_brief", "render_study", "run_study"]

Progress = Callable[[int, int], None]
# Module for each kind of study that a config can name. `mrshc.study.kinds` lists the functions that
# each module must define.
_KINDS: dict[str, ModuleType] = {
    "simulation": simulated_designs,
    "section2": section2,
    "significance": significance,
    "stability": stability,
    "prediction": prediction,
    "real_confidence": real_confidence,
    "false_markers": false_markers,
    "timing": timing,
    "microarray": one_real_dataset,
    "realworld": many_real_datasets,
}
# Default folder for the results of the studies whose configs are part of the package. It is in the
# current folder, since the folder of the installed package may not be writable.
_DEFAULT_OUT = Path("mrshc-study")
# Packages whose versions are stored with the results, since they can change the numbers.
_RECORDED_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")


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
    """Run a study, write its results, metadata and tables, and return the path of the results.

    A study consists of tasks, such as the fit of one method to one data set. Finished tasks are
    stored while the study runs. If a study was interrupted, the next call continues the study.

    Parameters
    ----------
    name : str
        Name of the study, such as "table1".
    folder : Path, default=CONFIGS
        Folder that contains the config of the study. The default is the folder of the configs that
        are part of the package.
    out : Path or None, default=None
        Folder for the results. If None, the results are written to the folder of the config. For
        configs that are part of the package, they are written to `mrshc-study` in the current
        folder.
    replicates : int or None, default=None
        Number of draws; if None, the number in the config is used. If the two numbers differ, the
        run is a trial run. The results of a trial run cannot be written to the folder of the config
        or to a folder with complete results.
    data : Path or None, default=None
        Folder that contains the real data sets.
    n_jobs : int or None, default=None
        Number of worker processes; None means 1, and -1 means one for each core.
    progress : callable
        Function that is called with the number of finished tasks and the total number of tasks.

    Returns
    -------
    Path
        Path of the table of results, a CSV file.

    Raises
    ------
    StudyError
        If there is no such study, if its config or `n_jobs` is invalid, if a data set is missing,
        if the folder for the results cannot be used, or if all tasks failed.
    """
    study, target = load_study(folder, name), _results_folder(folder, out)
    if replicates is not None and replicates != study.replicates:
        _refuse_trial(study, replicates, target)
        study = replace(study, replicates=replicates)
    if n_jobs == 0:
        raise StudyError("The number of workers must be 1 or more, or -1 for every core, got 0.")
    # The working folder is inside the folder of the results, so that figures can be moved by
    # renaming.
    work = target / f"{name}.partial"
    folders = Folders(data=data, out=work)
    tasks = _kind_module(study).tasks(study, folders)
    with open_journal(work, fingerprint=study.fingerprint) as journal:
        _run_remaining_tasks(
            study, tasks, journal, folders=folders, n_jobs=n_jobs, progress=progress
        )
        _write_results(study, tasks, journal, target)
    render_study(name, folder=folder, out=out)
    return target / f"{name}.csv"


def _results_folder(folder: Path, out: Path | None) -> Path:
    """Return the folder of the results.

    This is `out` if it is not None. Otherwise it is the folder of the config or, for configs that
    are part of the package, `mrshc-study` in the current folder.
    """
    if out is not None:
        return out
    return _DEFAULT_OUT if folder == CONFIGS else folder


def _refuse_trial(study: Study, replicates: int, target: Path) -> None:
    """Raise StudyError if the results of a trial run must not be written to `target`.

    In a trial run, the number of draws differs from that in the config. `target` must not be the
    folder of the config, and must not contain complete results.
    """
    metadata = _read_metadata(study, target)
    is_complete = metadata is not None and metadata.get("replicates") == study.replicates
    if is_complete or target.resolve() == study.folder.resolve():
        raise StudyError(
            Sentence(
                "{name} has {own} draws; to make {replicates}, give another folder ({out}).",
                name=study.name,
                own=study.replicates,
                replicates=replicates,
                out=Parameter("out"),
            )
        )


def _read_metadata(study: Study, target: Path) -> dict[str, Any] | None:
    """Return the metadata of stored results; None if no metadata are stored."""
    path = target / f"{study.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _write_results(study: Study, tasks: list[Task], journal: StudyJournal, target: Path) -> None:
    """Write the table of results and its metadata, and remove the journal.

    Raise StudyError if all tasks failed.
    """
    # The rows are in the order of the tasks, not in the order of their completion, so the file does
    # not depend on the number of workers.
    rows = [row for task in sorted(tasks) for row in journal.rows[task]]
    if all("error" in row for row in rows):
        journal.close(pictures_to=None)  # after a correction, all tasks are run again
        raise StudyError(f"{study.name} failed everywhere, first with {rows[0]['error']}")
    # With nullable types, counts remain integers even if some of them are missing.
    results = pd.DataFrame(rows).convert_dtypes()
    metadata = {
        "study": study.name,
        "replicates": study.replicates,
        "config": study.options,
        "code": code_version(),
        "versions": {"mrshc": __version__}
        | {p: version(p) for p in _RECORDED_PACKAGES}
        | {"python": platform.python_version()},
        "computer": {"architecture": platform.machine(), "cores": os.cpu_count()},
        "tasks": len(tasks),
        # Sum of the computing times of all tasks, including tasks that ran in parallel or before an
        # interruption.
        "seconds": round(sum(journal.seconds[task] for task in tasks), 1),
    }
    write_text(target / f"{study.name}.csv", results.to_csv(index=False))
    write_text(target / f"{study.name}.json", json.dumps(metadata, indent=2) + "\n")
    journal.close(pictures_to=target)


def render_study(name: str, *, folder: Path = CONFIGS, out: Path | None = None) -> str:
    """Return the results of a study as Markdown, and write the text to the folder of the results.

    Raise StudyError if there are no results, or if they were computed with another config.

    Parameters
    ----------
    name : str
        Name of the study.
    folder : Path, default=CONFIGS
        Folder that contains the config of the study.
    out : Path or None, default=None
        Folder of the results, with the same default as in :func:`run_study`.
    """
    study, target = load_study(folder, name), _results_folder(folder, out)
    table = _render_results(study, target)
    write_text(target / f"{name}.md", table)
    return table


def render_brief(name: str, *, folder: Path = CONFIGS, out: Path | None = None) -> str | None:
    """Return a short table of results; None if this kind of study has no short table.

    The parameters and the errors are those of :func:`render_study`.
    """
    study = load_study(folder, name)
    if not hasattr(_kind_module(study), "render_brief"):
        return None
    return _render_results(study, _results_folder(folder, out), brief=True)


def _refuse_other_config(study: Study, target: Path) -> None:
    """Raise StudyError if stored results lack metadata or were computed with another config.

    Entries of the config that affect only the display are ignored.
    """
    metadata = _read_metadata(study, target)
    if metadata is None or not study.has_same_computation(metadata["config"]):
        raise StudyError(
            f"The results of {study.name} were made with another config than {study.name}.toml. "
            "Run the study again."
        )


def _render_results(study: Study, results_folder: Path, *, brief: bool = False) -> str:
    """Return stored results as Markdown, with reference values if there are any.

    Reference values are read from references.csv in the folder of the config. Raise StudyError if
    there are no stored results, or if the results were computed with another config.
    """
    if not (results_folder / f"{study.name}.csv").exists():
        raise StudyError(
            f"{study.name} has no results yet in {results_folder}. Run the study first."
        )
    _refuse_other_config(study, results_folder)
    results = pd.read_csv(results_folder / f"{study.name}.csv")
    path = study.folder / "references.csv"
    columns = ["study", "design", "method", "source"]
    references = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=columns)
    # One file contains the reference values of all studies in a folder.
    references = references[references["study"] == study.name]
    kind = _kind_module(study)
    return str((kind.render_brief if brief else kind.render)(study, results, references))


def _kind_module(study: Study) -> ModuleType:
    """Return the module that runs and renders a study; raise StudyError if its kind is unknown."""
    if study.kind not in _KINDS:
        raise StudyError(f"{study.name}.toml must name a kind out of {', '.join(_KINDS)}.")
    return _KINDS[study.kind]


def _run_remaining_tasks(
    study: Study,
    tasks: list[Task],
    journal: StudyJournal,
    *,
    folders: Folders,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Run the tasks that are not in the journal yet, and store each task when it is finished."""
    remaining = [task for task in tasks if task not in journal.rows]
    n_done = len(tasks) - len(remaining)
    progress(n_done, len(tasks))
    one_at_a_time = getattr(_kind_module(study), "ONE_AT_A_TIME", False)
    # The workers are processes and not threads, since many small fits in one interpreter would wait
    # for the global interpreter lock. The generator is unordered, so that each task is stored as
    # soon as it is finished.
    parallel = Parallel(n_jobs=1 if one_at_a_time else n_jobs, return_as="generator_unordered")
    finished = parallel(delayed(_run_and_time)(study, task, folders) for task in remaining)
    for k, (task, rows, seconds) in enumerate(finished, start=n_done + 1):
        journal.add(task, rows, seconds)
        progress(k, len(tasks))


def _run_and_time(study: Study, task: Task, folders: Folders) -> tuple[Task, list[Row], float]:
    """Run a task; return the task, its rows of results and its computing time in seconds.

    If the task fails, its only row contains the error. A StudyError is not caught.
    """
    kind = _kind_module(study)
    started = time.perf_counter()
    try:
        rows = kind.run_task(study, task, folders)
    # A StudyError is an error in the config or the data folder. It concerns all tasks, so it ends
    # the study.
    except StudyError:
        raise
    except Exception as error:
        rows = [kind.identity(study, task) | {"error": format_error(error)}]
    return task, rows, time.perf_counter() - started
