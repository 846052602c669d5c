"""Free memory of this process, a check that a matrix fits into it, and formatting of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from mrshc.io.streams import FlawError

# Decimal units, as used for disks and in most file managers.
_UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("bytes", 1))
# The first row is for version 2 of Linux control groups, and the second row is for version 1. Each
# row contains the name of the file with the memory limit, the name of the file with the memory in
# use, and the name of an entry of memory.stat. This entry is the size of the cached parts of files,
# which the kernel releases when memory is needed.
_CONTROL_GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory() -> float:
    """Return the number of bytes of memory that this process can still use.

    This is the smaller of two numbers: the memory that the system has available according to
    psutil, and the memory that the Linux control groups of a container or a batch job still allow.
    psutil ignores control groups.
    """
    return min(float(psutil.virtual_memory().available), _own_control_group_memory())


def _own_control_group_memory() -> float:
    """Return the number of bytes that the control groups of this process still allow.

    Infinity is returned if there is no limit.
    """
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except (OSError, ValueError):  # the system is not Linux
        return math.inf
    return control_group_memory(groups, mount=Path("/sys/fs/cgroup"))


def control_group_memory(groups: str, *, mount: Path) -> float:
    """Return the number of bytes that control groups still allow; infinity if there is no limit."""
    folders = _group_folders(groups, mount)
    return min((_remaining_memory(folder) for folder in folders), default=math.inf)


def _group_folders(groups: str, mount: Path) -> Iterator[Path]:
    """Yield the folders of all control groups that limit memory, including parent groups."""
    # Each line is "number:controllers:name". In version 2, the field for controllers is empty.
    for line in groups.splitlines():
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        root = mount / "memory" if controllers else mount
        group = root / name.lstrip("/")
        # In a container, the group of the process may be mounted as the root although `groups`
        # contains the name of the group on the host. The root is therefore included as the last
        # parent.
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))


def _remaining_memory(folder: Path) -> float:
    """Return the number of bytes that one group still allows; infinity if no limit can be read."""
    for limit, use, cached in _CONTROL_GROUP_FILES:
        try:
            # If there is no limit, version 2 writes "max", for which `int` raises a ValueError.
            remaining = int(_read_ascii(folder / limit)) - int(_read_ascii(folder / use))
            stat = dict(line.split() for line in _read_ascii(folder / "memory.stat").splitlines())
            return max(0, remaining + int(stat.get(cached, 0)))
        except (OSError, ValueError):
            continue
    return math.inf


def _read_ascii(path: Path) -> str:
    return path.read_text(encoding="ascii")


def refuse_larger_than_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise FlawError if a matrix would take up more than the free memory.

    Without this check, the operating system might end the process while the matrix is being read.
    """
    needed, free = math.prod(shape) * dtype.itemsize, free_memory()
    if needed > free:
        raise FlawError(
            f"needs {format_size(needed)} of memory as a dense array, but {format_size(free)} are "
            "free. Store it as an .h5ad or .zarr file that is not compressed as a whole, which is "
            "read in blocks"
        )


def format_size(n_bytes: float) -> str:
    """Return a number of bytes in the largest suitable unit, such as "1.5 GB"."""
    unit, factor = next((u, k) for u, k in _UNITS if n_bytes >= k or k == 1)
    amount = n_bytes / factor
    # One decimal is shown if there is only one digit before the decimal point.
    return f"{amount:.0f} {unit}" if amount >= 10 or factor == 1 else f"{amount:.1f} {unit}"
