"""The folder in which compiled code is stored.

The module does not import numba, so that the command line can tell at once whether the first fit
has to wait for the compiler.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).parent
# A file whose name begins with this text marks a folder that contains code which was compiled from
# the present source files. The rest of the name is the hash of the source files.
_MARK = "compiled-"


def has_cached_code() -> bool:
    """Return whether compiled code of this version of the package is stored on disk.

    The code of some functions may be missing, for example if they were compiled only for data in
    double precision.
    """
    folder = cache_folder(KERNELS)
    return folder is not None and (folder / f"{_MARK}{source_hash(KERNELS)}").exists()


def mark_cached_code(folder: Path, source: Path) -> None:
    """Record that a cache folder contains code that was compiled from the files in `source`."""
    mark = folder / f"{_MARK}{source_hash(source)}"
    if not mark.exists():
        for old in folder.glob(f"{_MARK}*"):
            old.unlink(missing_ok=True)
        mark.touch()


def cache_folder(source: Path) -> Path | None:
    """Return the folder for the code that is compiled from the files in a folder.

    The folder is the first of the following that is writable, as for other functions that numba
    compiles: a subfolder of the folder that the environment variable NUMBA_CACHE_DIR names,
    `__pycache__` in the folder `source`, or a subfolder of the user's folder for caches. The result
    is None if none of them is writable.
    """
    return _first_writable(tuple(_candidates(source)))


@cache  # a process tests once whether it can write to a folder
def _first_writable(folders: tuple[Path, ...]) -> Path | None:
    for folder in folders:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            # Whether a file can be created cannot be seen from the permissions alone, for example
            # on a read-only file system.
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _candidates(source: Path) -> Iterator[Path]:
    # Several installations of the package may use the same folder for caches. Their subfolders have
    # different names, which contain a hash of the path.
    path_hash = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:16]
    name = f"{source.name}-{path_hash}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen, name)
    yield source / "__pycache__"
    with suppress(RuntimeError):  # raised by Path.home if the user has no home directory
        yield _user_cache_folder() / "mrshc" / name


def _user_cache_folder() -> Path:
    """Return the folder in which programs of the user store files that can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache  # computed once per process, since a process does not reload changed source files
def source_hash(folder: Path) -> str:
    """Return a hash of the names and contents of the Python files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        # Zero bytes separate names from contents. Without them, moving characters from the end of
        # a name to the start of the content would not change the hash.
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
