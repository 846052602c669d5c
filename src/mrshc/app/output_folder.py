"""The output folder of a run: written in a working folder, then moved into place as a whole.

The working folder is next to the output folder and has its name followed by `.partial`. It keeps
the finished steps of an interrupted search, so that the run can be resumed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mrshc import plotting
from mrshc.app.folder_exchange import (
    EARLIER_FOLDER,
    MOVING_MARK,
    NEW_FOLDER,
    exchange_files,
    is_exchange_interrupted,
    remove_files,
    remove_folder,
    restore_files,
)
from mrshc.app.plan import Plan
from mrshc.app.result_building import comparison_json_content
from mrshc.comparison import Comparison, convert_counts_to_integers
from mrshc.errors import UserError
from mrshc.exports import newick, treeview
from mrshc.io.comparison_file_version import COMPARISON_FILE, COMPARISON_FORMAT
from mrshc.io.result import (
    CHECKED_TABLES,
    FORMAT,
    RESULT_FILE,
    Result,
    ResultError,
    load_result,
    write_result,
)
from mrshc.plotting.result_pictures import PICTURES, Picture, features_for_heatmap
from mrshc.report import REPORT, write_report
from mrshc.utils.atomic_files import is_partial_file
from mrshc.utils.folder_lock import LOCK_FILE_NAME, create_and_lock_folder
from mrshc.utils.step_journal import DamagedJournalError, JournalMismatchError

# Files of a result except its pictures, which the registry of pictures names.
_RESULT_FILES = {
    *(RESULT_FILE, *CHECKED_TABLES, "search.csv"),
    *("tree.nwk", "heatmap.cdt", "heatmap.gtr", "heatmap.atr", REPORT),
}
_COMPARISON_FILES = {
    *(COMPARISON_FILE, "scores.csv", "dendrograms.svg", "dendrograms.png", REPORT),
}
# The file by which each kind of result is recognised, and the format that it must name.
_FORMAT_BY_ABOUT_FILE = {RESULT_FILE: FORMAT, COMPARISON_FILE: COMPARISON_FORMAT}
# File of the working folder in which a search stores its finished steps.
CHECKPOINT = "search.jsonl"


@contextmanager
def new_folder(
    out: Path, *, about_file: str = RESULT_FILE, overwrite: bool = False, resume: bool = False
) -> Iterator[Path]:
    """Yield a working folder; at the end, its subfolder `result` becomes the folder `out`.

    The working folder has the name of `out` followed by `.partial`. It is kept if the work is
    interrupted, so that it can be resumed. An earlier `out` is replaced only if `overwrite` is
    true, its `about_file` identifies it as a result of mrshc, and it holds no other files. Files
    that mrshc did not write are never removed from either folder.

    Parameters
    ----------
    out : Path
        Output folder.
    about_file : str, default="result.json"
        Name of the file that describes the result.
    overwrite : bool, default=False
        Whether an earlier result, or unfinished work on one, may be replaced.
    resume : bool, default=False
        Whether finished steps of an interrupted run are kept and used.

    Yields
    ------
    Path
        The working folder, locked against other processes.
    """
    out = resolve_folder(out)
    refuse_existing(out, about_file=about_file, overwrite=overwrite)
    work = _working_folder(out)
    _refuse_foreign_files_in_work(work)
    if can_resume(out) and not (overwrite or resume):
        raise UserError(
            f"{work} holds the unfinished work of an earlier run. Add --resume to continue it, "
            "or --overwrite to start again."
        )
    exchange_options: Any = {"about_file": about_file, "names": output_file_names()}
    with create_and_lock_folder(work) as is_locked:
        if not is_locked:
            raise UserError(
                f"Another process is using {work}. Wait until it has finished, or stop it."
            )
        try:
            # An earlier process may have been killed while it exchanged the results. Only after
            # this repair can the output folder be checked.
            restore_files(work, out, **exchange_options)
            _refuse_unless_replaceable(out, about_file=about_file, overwrite=overwrite)
            if not resume:
                (work / CHECKPOINT).unlink(missing_ok=True)
            _make_empty_folder(work / NEW_FOLDER, like=out)
            yield work
            # Checked again: the user may have put files there during a long run.
            _refuse_unless_replaceable(out, about_file=about_file, overwrite=overwrite)
            exchange_files(work, out, **exchange_options)
        except JournalMismatchError:
            raise UserError(
                f"{work} holds unfinished work on other data or with other options; --in-memory "
                "and --out-of-core count as different options. Leave out --resume and add "
                "--overwrite to start again, or choose another folder."
            ) from None
        except DamagedJournalError:
            raise UserError(
                f"{work / CHECKPOINT}, the steps of an earlier run, is damaged. Leave out --resume "
                "and add --overwrite to start again, or choose another folder."
            ) from None
        # Also on KeyboardInterrupt and SystemExit: an interruption must lose nothing.
        except BaseException:
            restore_files(work, out, **exchange_options)
            _keep_finished_steps(work)
            raise
        _remove_own_files(work)


def _make_empty_folder(folder: Path, *, like: Path) -> None:
    """Make an empty folder with the permissions of the folder that it will replace."""
    remove_folder(folder, output_file_names())
    folder.mkdir(exist_ok=True)
    if like.exists():
        folder.chmod(stat.S_IMODE(like.stat().st_mode))


def resolve_folder(out: Path) -> Path:
    """Return the folder that a path leads to: results go to the target of a symbolic link."""
    try:
        resolved = out.resolve()
    except (OSError, RuntimeError):  # raised for a cycle of links, depending on Python's version
        raise UserError(f"{out} is a symbolic link without a target. Remove it.") from None
    # The root of a file system has no name, and no folder next to it can be made.
    if not resolved.name:
        raise UserError(f"{out} cannot be a folder for the results. Choose another folder.")
    return resolved


def can_resume(out: Path) -> bool:
    """Tell whether an interrupted run has left finished steps."""
    return (_working_folder(out) / CHECKPOINT).exists()


def _working_folder(out: Path) -> Path:
    """Return the working folder of an output folder, next to it on the same file system."""
    out = resolve_folder(out)
    return out.with_name(out.name + ".partial")


def refuse_existing(out: Path, *, about_file: str = RESULT_FILE, overwrite: bool) -> None:
    """Refuse an output folder that exists and may not be replaced."""
    # After an interrupted exchange, `new_folder` restores the files before it checks them.
    if not is_exchange_interrupted(_working_folder(out)):
        _refuse_unless_replaceable(out, about_file=about_file, overwrite=overwrite)


def _refuse_unless_replaceable(out: Path, *, about_file: str, overwrite: bool) -> None:
    """Refuse anything but a missing or empty folder, or a result that may be replaced."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(
            f"{out} is a file, but a folder for the results was wanted. Choose another name."
        )
    if not os.access(out, os.W_OK | os.X_OK):
        raise UserError(
            f"{out} cannot be written to. Change its permissions, or choose another folder."
        )
    if not any(out.iterdir()):
        return
    if _read_description(out / about_file).get("format") != _FORMAT_BY_ABOUT_FILE[about_file]:
        raise UserError(f"{out} exists and holds other files than results. Choose another folder.")
    if not overwrite:
        raise UserError(
            f"{out} exists already. Add --overwrite to replace it, or choose another folder."
        )
    _refuse_foreign_files(out, files=output_file_names())


def output_file_names() -> set[str]:
    """Return the names of all files that a run may write."""
    pictures = {file for picture in PICTURES.values() for file in picture.files}
    return _RESULT_FILES | _COMPARISON_FILES | pictures


def _refuse_foreign_files_in_work(work: Path) -> None:
    """Refuse a working folder with files that mrshc did not write: they would be removed."""
    files = {LOCK_FILE_NAME, CHECKPOINT, MOVING_MARK}
    _refuse_foreign_files(work, files=files, folders={NEW_FOLDER, EARLIER_FOLDER})
    for folder in (work / NEW_FOLDER, work / EARLIER_FOLDER):
        _refuse_foreign_files(folder, files=output_file_names())
    # Names such as markers.csv are common: only a description shows that the files are ours.
    earlier = work / EARLIER_FOLDER
    is_result = any(
        _read_description(earlier / name).get("format") == format_name
        for name, format_name in _FORMAT_BY_ABOUT_FILE.items()
    )
    if earlier.exists() and any(earlier.iterdir()) and not is_result:
        raise UserError(
            f"{earlier} is not an earlier result of mrshc, and would be moved. Move it to another "
            "place, or choose another output folder."
        )


def _refuse_foreign_files(folder: Path, *, files: set[str], folders: Iterable[str] = ()) -> None:
    """Refuse a folder to be replaced if it holds anything but known files and subfolders."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_file, is_folder = path.is_file(), path.is_dir()
        is_known = (is_file and path.name in files) or (is_folder and path.name in folders)
        # mrshc writes no symbolic links: whatever the name, a link was made by somebody else.
        if path.is_symlink() or not (is_known or is_partial_file(path, files)):
            raise UserError(
                f"{folder} holds {path.name!r}, which mrshc did not write and which would be "
                "replaced. Move it to another folder, or choose another output folder."
            )


def is_result_of(out: Path, fingerprint: str) -> bool:
    """Tell whether a folder holds the result of a plan, complete or not.

    Parameters
    ----------
    out : Path
        Output folder.
    fingerprint : str
        :attr:`mrshc.app.Plan.fingerprint` of the plan.
    """
    return read_description(out).get("work") == fingerprint


def refuse_incomplete(out: Path) -> None:
    """Refuse a result of which a file is missing or was changed."""
    result = load_result(out)
    pictures = _applicable_pictures(result).values()
    expected = _RESULT_FILES | {file for picture in pictures for file in picture.files}
    if features_for_heatmap(result).shape[1] < 2:  # a tree of features needs two of them
        expected.remove("heatmap.gtr")
    if absent := sorted(name for name in expected if not (out / name).is_file()):
        raise ResultError(f"{out} is not a complete result: it has no {absent[0]}. Make it again.")


def read_description(out: Path) -> dict[str, Any]:
    """Return the content of result.json in a folder; an empty dictionary if there is no result."""
    return _read_description(out / RESULT_FILE)


def _read_description(path: Path) -> dict[str, Any]:
    """Return a JSON object from a file; an empty dictionary if the file is not one."""
    if not path.is_file():  # opening a named pipe would block
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    # Deeply nested brackets exhaust the recursion of the JSON parser.
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _keep_finished_steps(work: Path) -> None:
    """Remove the unfinished result, and the working folder too if no step was finished."""
    remove_folder(work / NEW_FOLDER, output_file_names())
    steps = work / CHECKPOINT
    # The first line of a checkpoint is its header; finished steps begin with the second.
    if not steps.exists() or steps.read_bytes().count(b"\n") < 2:
        _remove_own_files(work)


def _remove_own_files(work: Path) -> None:
    """Remove the files that a run wrote into its working folder."""
    for folder in (NEW_FOLDER, EARLIER_FOLDER):
        remove_folder(work / folder, output_file_names())
    remove_files(work, {CHECKPOINT, MOVING_MARK})


def write_outputs(
    result: Result, folder: Path, *, progress: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Write all files of a result into a folder.

    Parameters
    ----------
    result : Result
        What to write.
    folder : Path
        An existing folder.
    progress : callable
        Called after each part with the number of parts written and the number of all parts.
    """
    pictures = _applicable_pictures(result)
    total = 3 + len(pictures)  # the tables, the exports, the report, and each picture
    # Tables first: the report is made from the files in the folder.
    write_result(result, folder)
    progress(1, total)
    _write_exports(result, folder)
    progress(2, total)
    write_report(folder)
    progress(3, total)
    for done, picture in enumerate(pictures.values(), start=4):
        drawn = picture.draw(result)
        figure = getattr(drawn, "figure", drawn)  # some pictures return axes, some a figure
        for file in picture.files:
            plotting.write_picture(figure, folder / file)
        progress(done, total)


def _write_exports(result: Result, folder: Path) -> None:
    """Write the tree as Newick, and the heat map as the three files of Java TreeView."""
    names = list(result.samples.index)
    tree = newick(result.linkage_matrix_, names)
    (folder / "tree.nwk").write_text(tree + "\n", encoding="utf-8")
    shown = features_for_heatmap(result)
    # Outlying samples would dominate the distances between features.
    usual = plotting.usual_samples(shown, result.outlier_samples_)
    feature_tree = plotting.feature_tree(usual) if usual.shape[1] > 1 else None
    files = treeview(
        shown.to_numpy(),
        sample_tree=result.linkage_matrix_,
        feature_tree=feature_tree,
        sample_names=names,
        feature_names=list(shown.columns),
    )
    # The tree of features (gtr) is missing if only one feature is shown.
    for suffix in ("cdt", "gtr", "atr"):
        content = getattr(files, suffix)
        if content is not None:
            (folder / f"heatmap.{suffix}").write_text(content, encoding="utf-8")


def _applicable_pictures(result: Result) -> dict[str, Picture]:
    """Return the registered pictures that apply to a result, by name."""
    return {name: picture for name, picture in PICTURES.items() if picture.applies(result)}


def write_comparison(
    plan: Plan, comparison: Comparison, folder: Path, *, n_clusters: int | None
) -> None:
    """Write the scores of several methods, their trees in one picture, and a report.

    Parameters
    ----------
    plan : Plan
        The table that was clustered, and the annotation with its classes.
    comparison : Comparison
        The fitted methods and their scores.
    folder : Path
        An existing folder.
    n_clusters : int or None
        Number of clusters into which the trees were cut, for the description.
    """
    convert_counts_to_integers(comparison.scores).to_csv(folder / "scores.csv")
    about = comparison_json_content(plan, comparison, n_clusters=n_clusters)
    text = json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False)
    (folder / COMPARISON_FILE).write_text(text + "\n", encoding="utf-8")
    classes = None
    # Matched by position, since the methods are fitted to data without sample names.
    if plan.truth is not None:
        classes = plan.table.sample_annotations[[plan.truth]].reset_index(drop=True)
    figure = plotting.dendrograms(comparison.models, annotations=classes)
    for suffix in (".svg", ".png"):
        plotting.write_picture(figure, folder / f"dendrograms{suffix}")
    write_report(folder)
