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
# Maximum number of attempts to lock a folder. An attempt fails if another process removes the
# folder at the same moment. Each further failure requires yet another process that removes the
# folder, and far fewer than 100 such processes are expected. The number has not been tuned; it does
# not affect results.
_ATTEMPTS = 100
# Flags for opening the lock file. A symbolic link in place of the lock file could point to any
# file, so symbolic links are not followed.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def create_and_lock_folder(folder: Path) -> Iterator[bool]:
    """Create a folder, lock it during the with block, and yield whether the lock was obtained.

    A file in the folder, the lock file, is locked; its content is not changed. The operating system
    releases the lock when the process ends, even if the process is killed. On Windows, folders are
    not locked. At the end of the block, a process that has obtained the lock removes the folder if
    the folder contains nothing but the lock file. Parent folders that this function created are
    removed if they are empty.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    descriptor = _create_and_lock(folder)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # If the folder was removed during the block, another process may have created and
            # locked a new folder of the same name. The new folder must not be removed.
            if _is_same_file(folder / LOCK_FILE_NAME, descriptor) and not _list_content(folder):
                remove_locked_folder(folder)
            os.close(descriptor)
        for path in created:
            with suppress(OSError):  # raised if the folder is not empty
                path.rmdir()


def remove_locked_folder(folder: Path) -> None:
    """Remove a folder that this process has locked, including its content.

    The lock file is removed last, so that other processes cannot lock the folder while other files
    remain.
    """
    for path in _list_content(folder):
        _remove_path(path)
    (folder / LOCK_FILE_NAME).unlink(missing_ok=True)
    with suppress(OSError):  # raised if another process has created its lock file in the meantime
        folder.rmdir()


def _list_content(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != LOCK_FILE_NAME]


def _remove_path(path: Path) -> None:
    # If the path is a symbolic link to a folder, only the link is removed.
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _create_and_lock(folder: Path) -> int | None:
    """Create and lock a folder, and return the file descriptor of the lock file.

    Return None if another process has locked the folder. Raise UserError if the folder is a
    symbolic link or a file, if the lock file is not a regular file, or if other processes remove
    the folder in each of many attempts.
    """
    for _ in range(_ATTEMPTS):
        # Another process that had locked the folder may remove the folder between any two of these
        # steps.
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
    """Create and lock a file, and return its file descriptor.

    Return None if another process has locked the file.
    """
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
        # Another process may have removed the file after this process opened it and before this
        # process locked it. A lock on a removed file would have no effect, since other processes
        # would create a new file.
        if _is_same_file(path, descriptor):
            return descriptor
        os.close(descriptor)


def _is_same_file(path: Path, descriptor: int) -> bool:
    """Return whether `path` refers to the open file with the given descriptor.

    The result is False if the file was removed or replaced after it was opened.
    """
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _open_lock_file(path: Path) -> int:
    """Open a lock file, which is created if it does not exist, and return its file descriptor.

    Raise UserError if the path is a symbolic link, or if it is not a regular file.
    """
    try:
        descriptor = os.open(path, _FLAGS, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a link, but a file was wanted. Remove the link.") from None
        raise
    # A named pipe or a device cannot be used as a lock file.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} must be a regular file, but is a pipe or a device. Remove it.")
    return descriptor
