"""The folder that a run leaves, whole or not at all: files for people and for other programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from mrshc import plotting
from mrshc.app import COMPARISON_FORMAT, Plan, about_comparison
from mrshc.comparison import Comparison, whole_counts
from mrshc.errors import UserError
from mrshc.exports import newick, treeview
from mrshc.io.result import ABOUT, FORMAT, Result, write_result
from mrshc.methods import METHODS
from mrshc.report import ABOUT_COMPARISON, REPORT, write_report
from mrshc.utils.atomic_files import is_leftover
from mrshc.utils.folder_lock import LOCK, locked_folder, remove_locked_folder
from mrshc.utils.journal import DamagedError, OtherWorkError

# Every file that is ever written, with the pictures.
_PICTURES = ("dendrogram", "heatmap", "search", "silhouettes", "splits", "loadings", "markers")
NAMES = {
    *(ABOUT, "clusters.csv", "features.csv", "search.csv", "linkage.csv", "selected.gct"),
    *("silhouettes.csv", "markers.csv"),
    *("tree.nwk", "heatmap.cdt", "heatmap.gtr", "heatmap.atr", "dendrogram.svg", REPORT),
    *(f"{name}.png" for name in _PICTURES),
    *(ABOUT_COMPARISON, "scores.csv", "dendrograms.svg", "dendrograms.png"),
}
# The file by which a kind of result is recognised, and the format that it must name.
_FORMATS = {ABOUT: FORMAT, ABOUT_COMPARISON: COMPARISON_FORMAT}
# Where a search keeps its finished steps.
CHECKPOINT = "search.jsonl"
_MARKERS = "What marks each cluster: its samples against all others (q-values up to 0.05)"
# Features in a heat map that a reader can still take in.
_MOST_ROWS = 1000


@contextmanager
def new_folder(
    out: Path, *, marker: str = ABOUT, overwrite: bool = False, resume: bool = False
) -> Iterator[Path]:
    """Give a folder to work in; the content of its subfolder `result` becomes `out` at the end.

    The folder has the name of `out` followed by `.partial`. It stays if the work was interrupted,
    so that it can be resumed. An earlier `out` is replaced only if asked for, and only if its
    `marker` says that it is a result of mrshc and nothing but outputs is in it.
    """
    out = real_folder(out)
    refuse_existing(out, marker=marker, overwrite=overwrite)
    work = _work(out)
    _refuse_strangers(work, files={LOCK, CHECKPOINT}, folders={"old", "result"})
    if can_resume(out) and not (overwrite or resume):
        raise UserError(
            f"{work} holds the unfinished work of an earlier run. Add --resume to go on with it, "
            "or --overwrite to begin anew."
        )
    with locked_folder(work) as mine:
        if not mine:
            raise UserError(f"Another process is at work in {work}. Wait for it, or stop it.")
        try:
            # The process may have been killed while the old result was exchanged for the new one:
            # then the old one is back only now.
            _restore(out)
            refuse_existing(out, marker=marker, overwrite=overwrite)
            if not resume:
                (work / CHECKPOINT).unlink(missing_ok=True)
            shutil.rmtree(work / "result", ignore_errors=True)
            (work / "result").mkdir()
            yield work
            refuse_existing(out, marker=marker, overwrite=overwrite)
            _exchange(work / "result", out)
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
            _restore(out)
            _keep_finished_steps(work)
            raise
        remove_locked_folder(work)


def real_folder(out: Path) -> Path:
    """Return the folder that a path leads to: results go where a link points, the link stays."""
    try:
        real = out.resolve()
    except (OSError, RuntimeError):  # links that lead to each other
        raise UserError(f"{out} is a link that leads nowhere. Remove it.") from None
    if not real.name:
        raise UserError(f"{out} cannot be a folder for the results. Name another.")
    return real


def _exchange(new: Path, out: Path) -> None:
    if out.exists():
        old = _work(out) / "old"
        shutil.rmtree(old, ignore_errors=True)
        out.rename(old)
    new.rename(out)


def _restore(out: Path) -> None:
    """Put the old result back if an exchange was interrupted."""
    old = _work(out) / "old"
    if old.exists() and not out.exists():
        old.rename(out)


def can_resume(out: Path) -> bool:
    """Tell whether an interrupted run has left finished steps."""
    return (_work(out) / CHECKPOINT).exists()


def _work(out: Path) -> Path:
    out = real_folder(out)
    return out.with_name(out.name + ".partial")


def refuse_existing(out: Path, *, marker: str = ABOUT, overwrite: bool) -> None:
    """Refuse a folder that is there already, unless it may be replaced."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UserError(f"{out} is a file, but a folder for the results was wanted. Name another.")
    if not any(out.iterdir()):
        return
    if _about(out / marker).get("format") != _FORMATS[marker]:
        raise UserError(f"{out} exists and holds other files than results. Name another folder.")
    if not overwrite:
        raise UserError(f"{out} exists already. Add --overwrite to replace it, or name another.")
    _refuse_strangers(out, files=NAMES)


def _refuse_strangers(folder: Path, *, files: set[str], folders: Iterable[str] = ()) -> None:
    """Refuse to replace a folder that holds files which mrshc did not write."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_file, is_folder = path.is_file(), path.is_dir()
        known = (is_file and path.name in files) or (is_folder and path.name in folders)
        if path.is_symlink() or not (known or is_leftover(path)):
            raise UserError(
                f"{folder} holds a file that is not ours, {path.name!r}, and would be replaced. "
                "Move it away, or name another folder."
            )


def is_complete(out: Path, work: str) -> bool:
    """Tell whether a folder holds the result of the same work."""
    return about_of(out).get("work") == work


def about_of(out: Path) -> dict[str, Any]:
    """Return the description of a result; an empty one if there is no result."""
    return _about(out / ABOUT)


def _about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _keep_finished_steps(work: Path) -> None:
    """Leave what can be resumed; without a finished step there is nothing to resume."""
    shutil.rmtree(work / "result", ignore_errors=True)
    steps = work / CHECKPOINT
    if not steps.exists() or steps.read_bytes().count(b"\n") < 2:
        remove_locked_folder(work)


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
    for done, (name, draw) in enumerate(pictures.items(), start=4):
        drawn = draw()
        figure = getattr(drawn, "figure", drawn)
        for suffix in (".svg", ".png") if name == "dendrogram" else (".png",):
            plotting.write_picture(figure, folder / f"{name}{suffix}")
        progress(done, total)


def _write_exports(result: Result, folder: Path) -> None:
    names = list(result.samples.index)
    tree = newick(result.linkage_matrix_, names)
    (folder / "tree.nwk").write_text(tree + "\n", encoding="utf-8")
    shown = _shown(result)
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


def _shown(result: Result) -> pd.DataFrame:
    """Return the selected features, at most so many that a heat map can show them."""
    if result.selected.shape[1] <= _MOST_ROWS:
        return result.selected
    best = set(result.features.index[:_MOST_ROWS])  # selected ones come first, by their effect
    return result.selected[[name for name in result.selected.columns if name in best]]


def _pictures(result: Result) -> dict[str, Callable[[], Any]]:
    """Return how to draw each picture, by the name of its file."""
    names = list(result.samples.index)
    bars = result.shown_annotations
    heat, title = _shown(result), heading(result)
    rows = f", {heat.shape[1]:,} shown" if heat.shape[1] < result.n_features_selected_ else ""
    pictures: dict[str, Callable[[], Any]] = {
        "dendrogram": lambda: plotting.dendrogram(
            result, annotations=bars, names=names, title=title
        ),
        "heatmap": lambda: plotting.heatmap(
            result, heat, annotations=bars, names=names, title=title + rows
        ),
        "search": lambda: plotting.search_curves(result, title=_before_refining(result)),
    }
    if result.n_clusters_ > 1:
        pictures["silhouettes"] = lambda: plotting.silhouettes(
            result.samples["silhouette"].to_numpy(), result.labels_, names=names
        )
        pictures["markers"] = lambda: plotting.markers(
            result.markers, result.n_clusters_, title=_MARKERS
        )
    if result.about["splits"]:
        pictures["splits"] = lambda: plotting.gap_tests(result)
    if result.loadings.shape[1]:
        pictures["loadings"] = lambda: plotting.loadings(
            result.loadings.to_numpy().T,
            list(result.features.index),
            title=_before_refining(result),
        )
    return pictures


def _before_refining(result: Result) -> str | None:
    """Return a heading for what refining has not changed; None if it changed nothing."""
    return "The search, before the features were refined" if result.about["supported"] else None


def heading(result: Result) -> str:
    """Return a title for pictures of a result."""
    name = METHODS[result.about["method"]].label
    clusters = "1 cluster" if result.n_clusters_ == 1 else f"{result.n_clusters_} clusters"
    return (
        f"{name}: {clusters} on {result.n_features_selected_:,} of "
        f"{len(result.features):,} features"
    )


def write_comparison(
    plan: Plan, comparison: Comparison, folder: Path, *, n_clusters: int | None
) -> None:
    """Write the scores of several methods, and their trees in one picture."""
    whole_counts(comparison.scores).to_csv(folder / "scores.csv")
    about = about_comparison(plan, comparison, n_clusters=n_clusters)
    text = json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False)
    (folder / ABOUT_COMPARISON).write_text(text + "\n", encoding="utf-8")
    classes = None if plan.truth is None else plan.table.sample_annotations[[plan.truth]]
    figure = plotting.dendrograms(comparison.models, annotations=classes)
    for suffix in (".svg", ".png"):
        plotting.write_picture(figure, folder / f"dendrograms{suffix}")
    write_report(folder)
