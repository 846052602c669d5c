"""Move a finished result into its folder, and restore the earlier one after an interruption.

A folder that does not exist yet appears at once, by renaming. An existing folder is kept, because
it may be a mount point, the current folder of a shell, or have permissions that were set on
purpose: its files are exchanged one by one. If the process is killed during the exchange,
`restore_files` decides from the working folder whether the earlier files must be moved back or all
new files are already in place.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from mrshc.utils.atomic_files import atomic_write, is_partial_file

# Subfolders of the working folder: files of the new result, and files of the earlier one while
# they are exchanged.
NEW_FOLDER, EARLIER_FOLDER = "result", "old"
# This file exists while new files are moved into the output folder, that is, after every earlier
# file has left it. It tells `restore_files` that files in the output folder are new ones.
MOVING_MARK = "moving"


def exchange_files(work: Path, out: Path, *, about_file: str, names: Collection[str]) -> None:
    """Move the new files of a working folder into `out`, in place of earlier ones.

    Parameters
    ----------
    work : Path
        Working folder, with the new files in its subfolder `NEW_FOLDER`.
    out : Path
        Folder of the results. If it exists, it holds only files with known names.
    about_file : str
        File by which a folder is recognised as a result. It is moved out first and moved in last,
        so that a folder with this file is complete.
    names : collection of str
        Names of all files that a result may hold.
    """
    if not out.exists():
        (work / NEW_FOLDER).rename(out)
        return
    (work / EARLIER_FOLDER).mkdir(exist_ok=True)
    for path in reversed(_files_in_order(out, about_file)):
        _move_file(path, work / EARLIER_FOLDER)
    (work / MOVING_MARK).touch()
    for path in _files_in_order(work / NEW_FOLDER, about_file):
        _move_file(path, out)
    _finish_exchange(work, names)


def is_exchange_interrupted(work: Path) -> bool:
    """Tell whether an exchange was begun and neither finished nor undone."""
    return (work / EARLIER_FOLDER).exists() or (work / MOVING_MARK).exists()


def restore_files(work: Path, out: Path, *, about_file: str, names: Collection[str]) -> None:
    """Undo an exchange that was interrupted, or finish it if all new files are in place.

    The function can itself be interrupted at any time and called again. Parameters are those of
    `exchange_files`.
    """
    if (work / MOVING_MARK).exists():
        # The description is moved last: if it has left the working folder, so has every file.
        if not (work / NEW_FOLDER / about_file).exists():
            _finish_exchange(work, names)
            return
        # The mark goes only after the new files: otherwise a second interruption would leave new
        # files that could not be told from earlier ones.
        remove_files(out, names)
        (work / MOVING_MARK).unlink()
    earlier = work / EARLIER_FOLDER
    if earlier.exists() and not out.exists():
        earlier.rename(out)
    elif earlier.exists():
        for path in _files_in_order(earlier, about_file):
            _move_file(path, out)
        remove_folder(earlier, names)


def _finish_exchange(work: Path, names: Collection[str]) -> None:
    """Remove the earlier files, then the mark that new files are being moved."""
    remove_folder(work / EARLIER_FOLDER, names)
    (work / MOVING_MARK).unlink()


def _files_in_order(folder: Path, about_file: str) -> list[Path]:
    """Return the files of a folder by name, the one that describes the result last."""
    return sorted(folder.iterdir(), key=lambda path: (path.name == about_file, path.name))


def _move_file(path: Path, folder: Path) -> None:
    """Move a file into a folder, also on another file system, so that no partial file is seen."""
    target = folder / path.name
    try:
        path.replace(target)
    except OSError as error:
        # Renaming works within one file system only; elsewhere the file is copied, then renamed.
        if error.errno != errno.EXDEV:
            raise
        with atomic_write(target) as partial:
            shutil.copy2(path, partial)
        path.unlink()


def remove_folder(folder: Path, names: Collection[str]) -> None:
    """Remove a folder with its files of known names; keep it if it holds other files."""
    remove_files(folder, names)
    # `rmdir` fails for a folder that is not empty or does not exist: either way it is left alone.
    with suppress(OSError):
        folder.rmdir()


def remove_files(folder: Path, names: Collection[str]) -> None:
    """Remove files of known names, and leftovers of their writing, from a folder if it exists."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_file() and (path.name in names or is_partial_file(path, names)):
            path.unlink()
