"""Locks on folders, so that only one process at a time writes to a folder."""

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
except ImportError:  # Windows has no fcntl; folders are not locked there
    fcntl = None  # type: ignore[assignment]

# Name of the lock file in the folder.
LOCK_FILE_NAME = "lock"
# Attempts to lock a folder that other processes remove at the same moment. The second succeeds,
# unless several processes end together; 100 is far more than are expected to. Not tuned: results
# do not depend on it.
_ATTEMPTS = 100
# A symbolic link in place of the lock file could point to any file, so it is not followed.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def create_and_lock_folder(folder: Path) -> Iterator[bool]:
    """Create a folder and hold a lock on it within the block.

    The lock is on a file in the folder, and the operating system releases it when the process ends.
    The file is not truncated, and not followed if it is a symbolic link. Folders that were created
    here are removed at the end if they are empty.

    Parameters
    ----------
    folder : Path
        The folder; missing parents are created too.

    Yields
    ------
    is_locked : bool
        False if another process holds the lock.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    descriptor = _create_and_lock(folder)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # If this process removed the folder, another one may have created and locked it since.
            if _is_same_file(folder / LOCK_FILE_NAME, descriptor) and not _list_content(folder):
                remove_locked_folder(folder)
            os.close(descriptor)
        for path in created:
            with suppress(OSError):  # not empty: another process may have written to it
                path.rmdir()


def remove_locked_folder(folder: Path) -> None:
    """Remove a folder whose lock this process holds.

    The lock file is removed last, since it keeps other processes out while anything else is left.
    """
    for path in _list_content(folder):
        _remove_path(path)
    (folder / LOCK_FILE_NAME).unlink(missing_ok=True)
    with suppress(OSError):  # another process may have created its lock file since
        folder.rmdir()


def _list_content(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != LOCK_FILE_NAME]


def _remove_path(path: Path) -> None:
    # Of a link to a folder, only the link is removed.
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _create_and_lock(folder: Path) -> int | None:
    """Return the descriptor of the locked lock file; None if another process holds the lock."""
    for _ in range(_ATTEMPTS):
        # The process that held the lock may remove the folder between any two of these steps.
        with suppress(FileExistsError, FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
        if folder.is_symlink() or folder.is_file():
            raise UserError(f"{folder} is a link or a file, but a folder was wanted. Remove it.")
        with suppress(FileNotFoundError):
            return _lock_file(folder / LOCK_FILE_NAME)
    raise UserError(
        f"{folder} must not be removed while it is used, but other processes removed it "
        f"{_ATTEMPTS} times. Stop them."
    )


def _lock_file(path: Path) -> int | None:
    """Return the descriptor of a locked file; None if another process holds the lock."""
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
        # The file may have been removed between opening and locking. A lock on a file that other
        # processes cannot open would not exclude them.
        if _is_same_file(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_same_file(path: Path, descriptor: int) -> bool:
    """Return whether a path still leads to the file that is open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _open_lock_file(path: Path) -> int:
    """Return the descriptor of a regular file, which is created if it does not exist."""
    try:
        descriptor = os.open(path, _FLAGS, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a link, but a file was wanted. Remove the link.") from None
        raise
    # A named pipe or a device cannot serve as a lock.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} must be a regular file, but is a pipe or a device. Remove it.")
    return descriptor
