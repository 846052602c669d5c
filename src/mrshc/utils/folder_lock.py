"""Folders in which one process works at a time."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mrshc.errors import UserError

try:
    import fcntl
except ImportError:  # not a Unix: nothing is locked there
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
# Attempts to lock a folder that other processes remove at the same moment; one more suffices
# unless several of them end together.
_ATTEMPTS = 100
# A link in place of the lock file could lead to any file, so it is never followed.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked_folder(folder: Path) -> Iterator[bool]:
    """Make a folder and lock it; False if another process holds the lock.

    The lock is on a file inside and ends with the process. The file is neither truncated nor
    followed if it is a link. Folders that were made are removed at the end if nothing is in them.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    descriptor = _create_and_lock(folder)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # Once removed, the folder may be there again and belong to another process.
            if _is_path_of_descriptor(folder / LOCK, descriptor) and not _entries_besides_lock(folder):
                remove_locked_folder(folder)
            os.close(descriptor)
        for one in missing:
            with suppress(OSError):  # others may have put something there
                one.rmdir()


def remove_locked_folder(folder: Path) -> None:
    """Remove a folder whose lock this process holds.

    The lock file goes last: while anything else is left, no other process may enter.
    """
    for path in _entries_besides_lock(folder):
        _remove_path(path)
    (folder / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # another process may have entered since
        folder.rmdir()


def _entries_besides_lock(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != LOCK]


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _create_and_lock(folder: Path) -> int | None:
    """Return the open lock file; None if another process holds it."""
    for _ in range(_ATTEMPTS):
        # Its last owner may remove it between any two of these steps.
        with suppress(FileExistsError, FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
        if folder.is_symlink() or folder.is_file():
            raise UserError(f"{folder} is a link or a file, but a folder was wanted. Remove it.")
        with suppress(FileNotFoundError):
            return _lock_file(folder / LOCK)
    raise UserError(f"{folder} is removed again and again by other processes. Stop them.")


def _lock_file(path: Path) -> int | None:
    while True:
        descriptor = _open_lock_file(path)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        # The last owner may have removed the file between opening and locking: such a lock would
        # keep nobody out.
        if _is_path_of_descriptor(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_path_of_descriptor(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _open_lock_file(path: Path) -> int:
    try:
        descriptor = os.open(path, _FLAGS, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a link, but a file was wanted. Remove the link.") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} is not a regular file. Remove it.")
    return descriptor
