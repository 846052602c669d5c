"""Choose a folder for temporary files if the system provides none."""

from __future__ import annotations

import tempfile
from pathlib import Path


def use_temporary_folder_of(out: Path) -> None:
    """Put temporary files next to the results if no standard temporary folder is writable.

    Some packages, such as Matplotlib, cannot be imported without a writable folder. In a read-only
    container, the folder of the results may be the only writable folder.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # The output folder, and some of the folders above it, may not exist yet.
        existing = next(folder for folder in out.absolute().parents if folder.exists())
        tempfile.tempdir = str(existing)
