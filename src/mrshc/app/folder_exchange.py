"""Move the files of a finished result into the output folder, and recover from interruptions.

The new files are first written to a subfolder of a working folder. If the output folder does not
exist yet, this subfolder is renamed and becomes the output folder. An existing output folder is not
replaced, since it may be a mount point or the current directory of a shell, or may have special
permissions. Instead, its files are exchanged one by one. If the process is killed during the
exchange, the content of the working folder shows whether all new files are already in place. If
they are not, `restore_files` moves the earlier files back.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from mrshc.shell.atomic_files import atomic_write, is_partial_file

# Subfolders of the working folder. The first contains the files of the new result. The second
# contains the files of the earlier result during the exchange.
NEW_FOLDER, EARLIER_FOLDER = "result", "old"
# This file exists in the working folder while new files are moved into the output folder, that is,
# after all earlier files have been moved out. If the file exists, `restore_files` treats all files
# in the output folder as new.
MOVING_MARK = "moving"


def exchange_files(work: Path, out: Path, *, about_file: str, names: Collection[str]) -> None:
    """Replace the files in `out` by the new files in a working folder.

    If `out` does not exist, the folder with the new files is renamed to `out`.
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
    """Return whether an exchange of files was started and neither finished nor undone."""
    return (work / EARLIER_FOLDER).exists() or (work / MOVING_MARK).exists()


def restore_files(work: Path, out: Path, *, about_file: str, names: Collection[str]) -> None:
    """Undo an interrupted exchange, or finish it if all new files are already in `out`.

    The parameters are those of `exchange_files`. The function does nothing if no exchange was
    interrupted. If the function is itself interrupted, it can be called again.
    """
    if (work / MOVING_MARK).exists():
        # `about_file` is moved last. If this file is no longer in the working folder, all new files
        # have been moved.
        if not (work / NEW_FOLDER / about_file).exists():
            _finish_exchange(work, names)
            return
        # The file `MOVING_MARK` is removed only after the new files have been removed. Otherwise,
        # after a second interruption, new files could not be distinguished from earlier files.
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
    """Remove the earlier files, and then the file `MOVING_MARK`, from the working folder."""
    remove_folder(work / EARLIER_FOLDER, names)
    (work / MOVING_MARK).unlink()


def _files_in_order(folder: Path, about_file: str) -> list[Path]:
    """Return the paths of the files in a folder, sorted by name, but with `about_file` last."""
    return sorted(folder.iterdir(), key=lambda path: (path.name == about_file, path.name))


def _move_file(path: Path, folder: Path) -> None:
    """Move a file into a folder, which may be on another file system.

    The folder never contains an incomplete copy under the name of the file.
    """
    target = folder / path.name
    try:
        path.replace(target)
    except OSError as error:
        # A file can be renamed only within one file system. If the target is on another file
        # system, the file is copied under a temporary name, and the copy is renamed.
        if error.errno != errno.EXDEV:
            raise
        with atomic_write(target) as partial:
            shutil.copy2(path, partial)
        path.unlink()


def remove_folder(folder: Path, names: Collection[str]) -> None:
    """Remove the files listed in `names` from a folder, then remove the folder if it is empty."""
    remove_files(folder, names)
    # `rmdir` raises an error if the folder is not empty or does not exist. The error is ignored in
    # both cases.
    with suppress(OSError):
        folder.rmdir()


def remove_files(folder: Path, names: Collection[str]) -> None:
    """Remove the files listed in `names`, and incomplete versions of them, from a folder.

    Nothing is done if the folder does not exist.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_file() and (path.name in names or is_partial_file(path, names)):
            path.unlink()
