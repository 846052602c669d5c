"""The folder that a run leaves, whole or not at all: files for people and for other programs."""

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
    EARLIER,
    MOVING,
    NEW,
    exchange,
    is_interrupted,
    remove_files,
    remove_folder,
    restore,
)
from mrshc.app.plan import Plan
from mrshc.app.result_building import about_comparison
from mrshc.comparison import Comparison, whole_counts
from mrshc.errors import UserError
from mrshc.exports import newick, treeview
from mrshc.io.comparison_file_version import ABOUT_COMPARISON, COMPARISON_FORMAT
from mrshc.io.result import ABOUT, FORMAT, TABLES, Result, ResultError, load_result, write_result
from mrshc.plotting.result_pictures import PICTURES, Picture, features_shown
from mrshc.report import REPORT, write_report
from mrshc.utils.atomic_files import is_leftover
from mrshc.utils.folder_lock import LOCK, locked_folder
from mrshc.utils.step_journal import DamagedError, OtherWorkError

# Every file that is ever written, without the pictures of a result.
_RESULT = {
    *(ABOUT, *TABLES, "search.csv"),
    *("tree.nwk", "heatmap.cdt", "heatmap.gtr", "heatmap.atr", REPORT),
}
_COMPARISON = {ABOUT_COMPARISON, "scores.csv", "dendrograms.svg", "dendrograms.png", REPORT}
# The file by which a kind of result is recognised, and the format that it must name.
_FORMATS = {ABOUT: FORMAT, ABOUT_COMPARISON: COMPARISON_FORMAT}
# Where a search keeps its finished steps.
CHECKPOINT = "search.jsonl"


@contextmanager
def new_folder(
    out: Path, *, about_file: str = ABOUT, overwrite: bool = False, resume: bool = False
) -> Iterator[Path]:
    """Give a folder to work in; the content of its subfolder `result` becomes `out` at the end.

    The folder has the name of `out` followed by `.partial`. It stays if the work was interrupted,
    so that it can be resumed. An earlier `out` is replaced only if asked for, and only if its
    `about_file` says that it is a result of mrshc and nothing but outputs is in it. Files of others
    in either folder are never removed.
    """
    out = real_folder(out)
    refuse_existing(out, about_file=about_file, overwrite=overwrite)
    work = _work(out)
    _refuse_strangers_at_work(work)
    if can_resume(out) and not (overwrite or resume):
        raise UserError(
            f"{work} holds the unfinished work of an earlier run. Add --resume to go on with it, "
            "or --overwrite to begin anew."
        )
    exchanged: Any = {"about_file": about_file, "names": file_names()}
    with locked_folder(work) as mine:
        if not mine:
            raise UserError(f"Another process is at work in {work}. Wait for it, or stop it.")
        try:
            # The process may have been killed while the old result was exchanged for the new one:
            # then the old one is back only now.
            restore(work, out, **exchanged)
            _refuse_existing(out, about_file=about_file, overwrite=overwrite)
            if not resume:
                (work / CHECKPOINT).unlink(missing_ok=True)
            _make_empty(work / NEW, like=out)
            yield work
            _refuse_existing(out, about_file=about_file, overwrite=overwrite)
            exchange(work, out, **exchanged)
        except OtherWorkError:
            raise UserError(
                f"{work} holds unfinished work on other data or with other options, among which "
                "--in-memory and --out-of-core count. Leave out --resume and add --overwrite to "
                "begin anew, or give another folder."
            ) from None
        except DamagedError:
            raise UserError(
                f"{work / CHECKPOINT}, the steps of an earlier run, is damaged. Leave out --resume "
                "and add --overwrite to begin anew, or give another folder."
            ) from None
        except BaseException:
            restore(work, out, **exchanged)
            _keep_finished_steps(work)
            raise
        _remove_own_files(work)


def _make_empty(folder: Path, *, like: Path) -> None:
    """Make an empty folder, as private as the one whose content it will become."""
    remove_folder(folder, file_names())
    folder.mkdir(exist_ok=True)
    if like.exists():
        folder.chmod(stat.S_IMODE(like.stat().st_mode))


def real_folder(out: Path) -> Path:
    """Return the folder that a path leads to: results go where a link points, the link stays."""
    try:
        real = out.resolve()
    except (OSError, RuntimeError):  # links that lead to each other
        raise UserError(f"{out} is a link that leads nowhere. Remove it.") from None
    if not real.name:
        raise UserError(f"{out} cannot be a folder for the results. Name another.")
    return real


def can_resume(out: Path) -> bool:
    """Tell whether an interrupted run has left finished steps."""
    return (_work(out) / CHECKPOINT).exists()


def _work(out: Path) -> Path:
    out = real_folder(out)
    return out.with_name(out.name + ".partial")


def refuse_existing(out: Path, *, about_file: str = ABOUT, overwrite: bool) -> None:
    """Refuse a folder that is there already, unless it may be replaced."""
    # After an interrupted exchange, `new_folder` puts the files in order before it looks again.
    if not is_interrupted(_work(out)):
        _refuse_existing(out, about_file=about_file, overwrite=overwrite)


def _refuse_existing(out: Path, *, about_file: str, overwrite: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file, but a folder for the results was wanted. Name another.")
    if not os.access(out, os.W_OK | os.X_OK):
        raise UserError(f"{out} cannot be written to. Change its permissions, or name another.")
    if not any(out.iterdir()):
        return
    if _about(out / about_file).get("format") != _FORMATS[about_file]:
        raise UserError(f"{out} exists and holds other files than results. Name another folder.")
    if not overwrite:
        raise UserError(f"{out} exists already. Add --overwrite to replace it, or name another.")
    _refuse_strangers(out, files=file_names())


def file_names() -> set[str]:
    """Return the names of all files that a run may write."""
    return _RESULT | _COMPARISON | {file for picture in PICTURES.values() for file in picture.files}


def _refuse_strangers_at_work(work: Path) -> None:
    """Refuse a working folder with files which mrshc did not write: they would be removed."""
    _refuse_strangers(work, files={LOCK, CHECKPOINT, MOVING}, folders={NEW, EARLIER})
    for folder in (work / NEW, work / EARLIER):
        _refuse_strangers(folder, files=file_names())
    earlier = work / EARLIER
    is_result = any(_about(earlier / name).get("format") == f for name, f in _FORMATS.items())
    if earlier.exists() and any(earlier.iterdir()) and not is_result:
        raise UserError(
            f"{earlier} is not an earlier result of mrshc and would be moved. Move it away, or "
            "name another folder."
        )


def _refuse_strangers(folder: Path, *, files: set[str], folders: Iterable[str] = ()) -> None:
    """Refuse to replace a folder that holds files which mrshc did not write."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_file, is_folder = path.is_file(), path.is_dir()
        known = (is_file and path.name in files) or (is_folder and path.name in folders)
        if path.is_symlink() or not (known or is_leftover(path, files)):
            raise UserError(
                f"{folder} holds a file that is not ours, {path.name!r}, and would be replaced. "
                "Move it away, or name another folder."
            )


def is_result_of(out: Path, work: str) -> bool:
    """Tell whether a folder holds the result of the same work, whole or not."""
    return about_of(out).get("work") == work


def refuse_incomplete(out: Path) -> None:
    """Refuse a result of which a file is missing or was changed."""
    result = load_result(out)
    wanted = _RESULT | {file for picture in _pictures(result).values() for file in picture.files}
    if features_shown(result).shape[1] < 2:  # too few for a tree of features
        wanted.remove("heatmap.gtr")
    if absent := sorted(name for name in wanted if not (out / name).is_file()):
        raise ResultError(f"{out} is not a complete result: it has no {absent[0]}. Make it again.")


def about_of(out: Path) -> dict[str, Any]:
    """Return the description of a result; an empty one if there is no result."""
    return _about(out / ABOUT)


def _about(path: Path) -> dict[str, Any]:
    if not path.is_file():  # a pipe would wait for ever
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _keep_finished_steps(work: Path) -> None:
    """Leave what can be resumed; without a finished step there is nothing to resume."""
    remove_folder(work / NEW, file_names())
    steps = work / CHECKPOINT
    if not steps.exists() or steps.read_bytes().count(b"\n") < 2:
        _remove_own_files(work)


def _remove_own_files(work: Path) -> None:
    """Remove what a run wrote into its working folder, which is removed itself if it is empty."""
    for folder in (NEW, EARLIER):
        remove_folder(work / folder, file_names())
    remove_files(work, {CHECKPOINT, MOVING})


def write_outputs(
    result: Result, folder: Path, *, progress: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Write everything that a run leaves into a folder."""
    pictures = _pictures(result)
    total = 3 + len(pictures)
    write_result(result, folder)
    progress(1, total)
    _write_exports(result, folder)
    progress(2, total)
    write_report(folder)
    progress(3, total)
    for done, picture in enumerate(pictures.values(), start=4):
        drawn = picture.draw(result)
        figure = getattr(drawn, "figure", drawn)
        for file in picture.files:
            plotting.write_picture(figure, folder / file)
        progress(done, total)


def _write_exports(result: Result, folder: Path) -> None:
    names = list(result.samples.index)
    tree = newick(result.linkage_matrix_, names)
    (folder / "tree.nwk").write_text(tree + "\n", encoding="utf-8")
    shown = features_shown(result)
    usual = plotting.usual_samples(shown, result.outlier_samples_)
    features = plotting.feature_tree(usual) if usual.shape[1] > 1 else None
    files = treeview(
        shown.to_numpy(),
        sample_tree=result.linkage_matrix_,
        feature_tree=features,
        sample_names=names,
        feature_names=list(shown.columns),
    )
    for suffix in ("cdt", "gtr", "atr"):
        content = getattr(files, suffix)
        if content is not None:
            (folder / f"heatmap.{suffix}").write_text(content, encoding="utf-8")


def _pictures(result: Result) -> dict[str, Picture]:
    """Return the registered pictures that apply to a result, by name."""
    return {name: picture for name, picture in PICTURES.items() if picture.applies(result)}


def write_comparison(
    plan: Plan, comparison: Comparison, folder: Path, *, n_clusters: int | None
) -> None:
    """Write the scores of several methods, and their trees in one picture."""
    whole_counts(comparison.scores).to_csv(folder / "scores.csv")
    about = about_comparison(plan, comparison, n_clusters=n_clusters)
    text = json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False)
    (folder / ABOUT_COMPARISON).write_text(text + "\n", encoding="utf-8")
    classes = None
    if plan.truth is not None:  # by position: the methods are fitted to data without names
        classes = plan.table.sample_annotations[[plan.truth]].reset_index(drop=True)
    figure = plotting.dendrograms(comparison.models, annotations=classes)
    for suffix in (".svg", ".png"):
        plotting.write_picture(figure, folder / f"dendrograms{suffix}")
    write_report(folder)
