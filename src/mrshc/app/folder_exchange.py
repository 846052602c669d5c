"""Moves a finished result into its folder, and an earlier one back if that was interrupted.

A folder that does not exist yet appears at once, by renaming. One that exists stays, since it may
be a mount point, the current folder of a shell, or have permissions that were set on purpose: its
files are exchanged one by one. Whenever the process is killed meanwhile, `restore` finds in the
working folder whether the earlier files must come back or the new ones are all there.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from mrshc.utils.atomic_files import is_leftover, replacing

# Entries of the working folder: the new files, the earlier ones, and a mark that no earlier file is
# left in the folder of the results, into which the new ones are moved.
NEW, EARLIER, MOVING = "result", "old", "moving"


def exchange(work: Path, out: Path, *, about_file: str, names: Collection[str]) -> None:
    """Move the new files of a working folder into `out`, in place of earlier ones.

    Parameters
    ----------
    work : Path
        The working folder, with the new files in its subfolder.
    out : Path
        The folder of the results; if it exists, it holds nothing but files with known names.
    about_file : str
        The file by which a folder is recognised as a result: moved away first, moved in last.
    names : collection of str
        Names of all files that a result may hold.
    """
    if not out.exists():
        (work / NEW).rename(out)
        return
    (work / EARLIER).mkdir(exist_ok=True)
    for path in reversed(_about_last(out, about_file)):
        _move(path, work / EARLIER)
    (work / MOVING).touch()
    for path in _about_last(work / NEW, about_file):
        _move(path, out)
    _finish(work, names)


def is_interrupted(work: Path) -> bool:
    """Tell whether an exchange was begun and neither finished nor undone."""
    return (work / EARLIER).exists() or (work / MOVING).exists()


def restore(work: Path, out: Path, *, about_file: str, names: Collection[str]) -> None:
    """Undo an exchange that was interrupted, or finish it if all new files are in place.

    It can itself be interrupted at any time and called again.
    """
    if (work / MOVING).exists():
        if not (work / NEW / about_file).exists():
            _finish(work, names)
            return
        remove_files(out, names)
        (work / MOVING).unlink()
    earlier = work / EARLIER
    if earlier.exists() and not out.exists():
        earlier.rename(out)
    elif earlier.exists():
        for path in _about_last(earlier, about_file):
            _move(path, out)
        remove_folder(earlier, names)


def _finish(work: Path, names: Collection[str]) -> None:
    remove_folder(work / EARLIER, names)
    (work / MOVING).unlink()


def _about_last(folder: Path, about_file: str) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda path: (path.name == about_file, path.name))


def _move(path: Path, folder: Path) -> None:
    """Move a file into a folder: it is whole there or not there, also on another file system."""
    target = folder / path.name
    try:
        path.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with replacing(target) as partial:
            shutil.copy2(path, partial)
        path.unlink()


def remove_folder(folder: Path, names: Collection[str]) -> None:
    """Remove a folder with its files of known names; with other files in it, it stays."""
    remove_files(folder, names)
    with suppress(OSError):
        folder.rmdir()


def remove_files(folder: Path, names: Collection[str]) -> None:
    """Remove files of known names from a folder, if it exists."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_file() and (path.name in names or is_leftover(path, names)):
            path.unlink()
