"""A folder for temporary files, also where the system offers none."""

from __future__ import annotations

import tempfile
from pathlib import Path


def use_temporary_folder_of(out: Path) -> None:
    """Put temporary files next to the results if no usual folder for them can be written to.

    Matplotlib, for one, cannot be imported without a writable folder. Service users in read-only
    containers may have no other than that of the results.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        existing = next(folder for folder in out.absolute().parents if folder.exists())
        tempfile.tempdir = str(existing)
