"""How much memory is free, and sizes in memory as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from mrshc.io.streams import FlawError

_UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("bytes", 1))
# Files with the limit, the use, and the entry of memory.stat for cached parts of files, which are
# given up when memory is needed; in version 2 of control groups and in version 1.
_CONTROL_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory() -> float:
    """Return how many bytes of memory this process can still take.

    No more than the system has available (as psutil finds it out on each system), and no more than
    the control groups of a container or a batch job allow, of which psutil knows nothing.
    """
    return min(float(psutil.virtual_memory().available), _control_group_memory())


def _control_group_memory() -> float:
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except (OSError, ValueError):  # not a Linux
        return math.inf
    return control_group_memory(groups, mount=Path("/sys/fs/cgroup"))


def control_group_memory(groups: str, *, mount: Path) -> float:
    """Return how many bytes the control groups of a process still allow; infinity without limits.

    Parameters
    ----------
    groups : str
        The groups of the process, as /proc/PID/cgroup lists them.
    mount : Path
        Where the groups are mounted, each controller of version 1 in a folder of its name.
    """
    return min((_remaining(folder) for folder in _group_folders(groups, mount)), default=math.inf)


def _group_folders(groups: str, mount: Path) -> Iterator[Path]:
    """Yield the folders of the groups that limit memory, and of all groups they are part of."""
    for line in groups.splitlines():
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        root = mount / "memory" if controllers else mount
        group = root / name.lstrip("/")
        # A container may see its own group as the root, though the list names it as the host does.
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))


def _remaining(folder: Path) -> float:
    """Return what the limit of one group leaves; infinity without a limit."""
    for limit, use, cached in _CONTROL_FILES:
        try:
            # Version 2 writes "max" for no limit, which is not a number.
            room = int(_content(folder / limit)) - int(_content(folder / use))
            stat = dict(line.split() for line in _content(folder / "memory.stat").splitlines())
            return max(0, room + int(stat.get(cached, 0)))
        except (OSError, ValueError):
            continue
    return math.inf


def _content(path: Path) -> str:
    return path.read_text(encoding="ascii")


def refuse_larger_than_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse to read a matrix that does not fit: the system would end the process."""
    needed, free = math.prod(shape) * dtype.itemsize, free_memory()
    if needed > free:
        raise FlawError(
            f"needs {size(needed)} of memory, of which {size(free)} are free. Leave it in an .h5ad "
            "or .zarr file that is not compressed as a whole, which is read in blocks"
        )


def size(n_bytes: float) -> str:
    """Return a number of bytes as people read it."""
    unit, power = next((u, k) for u, k in _UNITS if n_bytes >= k or k == 1)
    amount = n_bytes / power
    return f"{amount:.0f} {unit}" if amount >= 10 or power == 1 else f"{amount:.1f} {unit}"
