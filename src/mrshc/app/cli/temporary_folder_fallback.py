"""A folder for temporary files where the system provides none."""

from __future__ import annotations

import tempfile
from pathlib import Path


def use_temporary_folder_of(out: Path) -> None:
    """Put temporary files next to the results if no usual folder for them is writable.

    Matplotlib, for example, cannot be imported without a writable folder. In a read-only container,
    the folder of the results may be the only one.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        # The output folder does not exist yet; neither need the folders above it.
        existing = next(folder for folder in out.absolute().parents if folder.exists())
        tempfile.tempdir = str(existing)
