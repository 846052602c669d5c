"""Choose a folder for temporary files if no standard temporary folder is writable."""

from __future__ import annotations

import tempfile
from pathlib import Path


def use_temporary_folder_of(out: Path) -> None:
    """Put temporary files next to `out` if no standard temporary folder is writable.

    Some packages, such as Matplotlib, cannot be imported without a writable folder. In a container
    with a read-only file system, the folder that contains `out` may be the only writable folder.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # Some of the folders that will contain `out` may not exist yet.
        existing = next(folder for folder in out.absolute().parents if folder.exists())
        tempfile.tempdir = str(existing)
