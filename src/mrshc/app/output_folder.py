"""The output folder of a run: it appears as a whole, or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc import plotting
from mrshc.app.picture_settings import PictureSettings
from mrshc.app.picture_writing import draw_and_write, warn_of_small_figures
from mrshc.app.plan import Plan
from mrshc.app.result_building import comparison_json_content
from mrshc.comparison import Comparison, convert_counts_to_integers
from mrshc.errors import UserError
from mrshc.exports import newick, rnk, treeview
from mrshc.io.comparison_file_version import COMPARISON_FILE, COMPARISON_FORMAT
from mrshc.io.result import (
    FORMAT,
    RESULT_FILE,
    TABLES,
    Result,
    write_result,
)
from mrshc.plotting.picture_files import PICTURE_FORMATS
from mrshc.plotting.result_pictures import PICTURES, Picture, features_for_heatmap
from mrshc.report import REPORT, write_report

# Names of the files of a result, except pictures. The file names of pictures are in the registry
# `PICTURES`.
_RESULT_FILES = {
    *(RESULT_FILE, *TABLES, "search.csv"),
    *("tree.nwk", "heatmap.cdt", "heatmap.gtr", "heatmap.atr", REPORT),
}
# Ranked lists are written for at most this many clusters, so that the names of all files that a run
# may write are known. Results with more clusters have no use for lists of single clusters.
_MAX_RANKED_CLUSTERS = 1000
_COMPARISON_FILES = {
    *(COMPARISON_FILE, "scores.csv", REPORT),
    *(f"dendrograms.{ending}" for ending in PICTURE_FORMATS),
}
# Name of the file that identifies each kind of result, and the required value of the entry "format"
# in this file.
_FORMATS = {RESULT_FILE: FORMAT, COMPARISON_FILE: COMPARISON_FORMAT}
_DEFAULT_PICTURES = PictureSettings()


@contextmanager
def new_folder(
    out: Path, *, about_file: str = RESULT_FILE, overwrite: bool = False
) -> Iterator[Path]:
    """Yield an empty folder next to `out`, which takes its place if all goes well.

    `out` is replaced only if it is empty or, if `overwrite` is true, an earlier result whose
    `about_file` says so, and which holds nothing but files of a result.
    """
    out = resolve_folder(out)
    refuse_existing(out, about_file=about_file, overwrite=overwrite)
    missing = [parent for parent in out.parents if not parent.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=f"{out.name}.partial-", dir=out.parent) as work:
            new = Path(work) / "new"
            new.mkdir()
            yield new
            # The user may have added files to the output folder during a long run.
            refuse_existing(out, about_file=about_file, overwrite=overwrite)
            if not out.exists():
                new.rename(out)
                return
            new.chmod(stat.S_IMODE(out.stat().st_mode))
            old = Path(work) / "old"
            try:
                out.rename(old)
                new.rename(out)
            except BaseException:
                if old.exists() and not out.exists():
                    old.rename(out)
                raise
    except BaseException:
        for parent in missing:
            with suppress(OSError):  # not empty
                parent.rmdir()
        raise


def resolve_folder(out: Path) -> Path:
    """Return the absolute path of the output folder, with symbolic links resolved.

    Raises UserError if the links form a cycle, or if the path is the root of a file system.
    """
    try:
        resolved = out.resolve()
    except (OSError, RuntimeError):  # a cycle of links; the class depends on the Python version
        raise UserError(f"{out} is a symbolic link without a target. Remove it.") from None
    if not resolved.name or resolved.is_mount():  # the new folder could not take its place
        raise UserError(f"{out} cannot be a folder for the results. Choose a folder inside it.")
    return resolved


def refuse_existing(out: Path, *, about_file: str = RESULT_FILE, overwrite: bool) -> None:
    """Raise UserError if the output folder exists and may not be replaced."""
    out = resolve_folder(out)
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
    files = list(out.iterdir())
    if files and _read_description(out / about_file).get("format") != _FORMATS[about_file]:
        raise UserError(f"{out} exists and holds other files than results. Choose another folder.")
    if files and not overwrite:
        raise UserError(
            f"{out} exists already. Add --overwrite to replace it, or choose another folder."
        )
    known = output_file_names()
    for path in sorted(files):
        # mrshc writes neither links nor folders.
        if path.is_symlink() or not path.is_file() or path.name not in known:
            raise UserError(
                f"{out} holds {path.name!r}, which mrshc did not write and which would be "
                "replaced. Move it to another folder, or choose another output folder."
            )
    if out == Path.cwd():  # the shell would stay in the folder that is removed
        raise UserError(
            "The current folder cannot be replaced by the folder of the results. Choose a folder "
            "inside it, such as --out result."
        )


def output_file_names() -> set[str]:
    """Return the names of all files that a run may write to the output folder."""
    # An earlier run may have written the pictures in any format.
    pictures = {
        file
        for picture in PICTURES.values()
        for file in (*picture.files, *picture.files_in(PICTURE_FORMATS))
    }
    ranked = map(_ranked_list_name, range(1, _MAX_RANKED_CLUSTERS + 1))
    return _RESULT_FILES | _COMPARISON_FILES | pictures | {*ranked}


def _ranked_list_name(cluster: int) -> str:
    """Return the name of the file with the ranked features of a cluster, counted from 1."""
    return f"markers_cluster_{cluster}.rnk"


def read_description(out: Path) -> dict[str, Any]:
    """Return the content of the file result.json in a folder.

    An empty dictionary is returned if the file does not exist or does not contain a JSON object.
    """
    return _read_description(out / RESULT_FILE)


def _read_description(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty dictionary if there is no JSON object."""
    if not path.is_file():  # a path may be a named pipe, for example, and opening it would block
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    # Deeply nested brackets exceed the recursion limit of the JSON parser.
    except (OSError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def write_outputs(
    result: Result,
    folder: Path,
    *,
    settings: PictureSettings = _DEFAULT_PICTURES,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Write all files of a result into a folder."""
    pictures = _applicable_pictures(result)
    total = 3 + len(pictures)  # tables, exports, report, and each picture
    # The tables are written first, since the report is made from the files in the folder.
    write_result(result, folder)
    progress(1, total)
    _write_exports(result, folder)
    progress(2, total)
    write_report(folder)
    progress(3, total)
    small = []
    for done, picture in enumerate(pictures.values(), start=4):
        files = [folder / file for file in picture.files_in(settings.formats)]
        draw = partial(picture.draw_in_size, result, settings.size)
        if not draw_and_write(draw, files):
            small.append(picture.name)
        progress(done, total)
    warn_of_small_figures(small, settings.size)


def _write_exports(result: Result, folder: Path) -> None:
    """Write the tree, the heat map and ranked lists of features in the formats of other programs.

    The tree is written as a Newick file, the heat map as files for Java TreeView, and the ranked
    lists as RNK files.
    """
    names = list(result.samples.index)
    tree = newick(result.linkage_matrix_, names, support=_branch_support(result))
    (folder / "tree.nwk").write_text(tree + "\n", encoding="utf-8")
    shown = features_for_heatmap(result)
    # The tree of features is built without outlying samples, which would dominate the distances
    # between features.
    usual = plotting.usual_samples(shown, result.outlier_samples_)
    feature_tree = plotting.feature_tree(usual) if usual.shape[1] > 1 else None
    files = treeview(
        shown.to_numpy(),
        sample_tree=result.linkage_matrix_,
        feature_tree=feature_tree,
        sample_names=names,
        feature_names=list(shown.columns),
        descriptions=_feature_descriptions(result, shown.columns),
    )
    for name, content in _ranked_lists(result).items():
        (folder / name).write_text(content, encoding="utf-8")
    # There is no tree of features (gtr) if the heat map shows only one feature.
    for suffix in ("cdt", "gtr", "atr"):
        content = getattr(files, suffix)
        if content is not None:
            (folder / f"heatmap.{suffix}").write_text(content, encoding="utf-8")


def _feature_descriptions(result: Result, names: Any) -> list[str] | None:
    """Return the names of features, followed by their annotations; None without annotations."""
    annotations = result.feature_annotations.loc[names]
    if annotations.shape[1] == 0:
        return None
    return [
        ", ".join([str(name), *(str(value) for value in row if not pd.isna(value))])
        for name, row in zip(names, annotations.to_numpy(dtype=object), strict=True)
    ]


def _ranked_lists(result: Result) -> dict[str, str]:
    """Return the contents of the RNK files of a result by file name.

    Each file contains the scores of all tested features for one cluster. Clusters of one or two
    samples have no file, unless all clusters are that small. If the features have a column of
    genes, the file contains genes. Of several features of a gene, the one with the largest absolute
    score is used, since enrichment programs accept each gene only once.
    """
    if not 1 < result.n_clusters_ <= _MAX_RANKED_CLUSTERS:
        return {}
    genes, files = result.gene_names, {}
    for k in result.ranked_clusters:
        column = result.features[f"score_cluster_{k}"]
        if result.genes["column"] is not None:
            order = column.abs().sort_values(ascending=False, kind="stable").index
            best = genes.loc[order].dropna().drop_duplicates()
            column = column.loc[best.index].set_axis(best.to_numpy())
        files[_ranked_list_name(k)] = rnk(list(column.index), column.to_numpy())
    return files


def _branch_support(result: Result) -> NDArray[np.float64] | None:
    """Return the support of the branch below each row of the linkage matrix; None if unknown."""
    if result.branches is None or "support" not in result.branches:
        return None
    # The table begins with the root, and the linkage matrix ends with it.
    support: NDArray[np.float64] = result.branches["support"].to_numpy()[::-1]
    return support


def _applicable_pictures(result: Result) -> dict[str, Picture]:
    """Return the registered pictures that apply to a result, with their names as keys."""
    return {name: picture for name, picture in PICTURES.items() if picture.applies(result)}


def write_comparison(
    plan: Plan,
    comparison: Comparison,
    folder: Path,
    *,
    n_clusters: int | None,
    settings: PictureSettings = _DEFAULT_PICTURES,
) -> None:
    """Write the scores of several methods, their trees in one picture, and a report."""
    convert_counts_to_integers(comparison.scores).to_csv(folder / "scores.csv")
    about = comparison_json_content(plan, comparison, n_clusters=n_clusters)
    text = json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False)
    (folder / COMPARISON_FILE).write_text(text + "\n", encoding="utf-8")
    classes = None
    # The index with the sample names is removed, since the methods are fitted to data without
    # sample names. Classes are matched to samples by position.
    if plan.truth is not None:
        classes = plan.table.sample_annotations[[plan.truth]].reset_index(drop=True)
    if about["methods"]:  # the methods with a tree
        files = [folder / f"dendrograms.{suffix}" for suffix in settings.formats or ("svg", "png")]
        draw = partial(
            plotting.dendrograms,
            comparison.models,
            annotations=classes,
            names=list(plan.table.sample_names),
            cut=n_clusters,
            size=settings.size,
        )
        if not draw_and_write(draw, files):
            warn_of_small_figures(["dendrograms"], settings.size)
    write_report(folder)
