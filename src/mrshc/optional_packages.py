"""Check whether packages are installed that only some parts of mrshc need.

A fit needs only the dependencies of mrshc. The packages for tables, plots, reports and the command
line are installed by the extras that `pyproject.toml` defines.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from mrshc.errors import MissingPackageError

# Packages without which the command line does not start: those of the extra `cli` and of the extras
# that it includes.
CLI_PACKAGES = ("typer", "rich", "pandas", "psutil", "matplotlib", "jinja2", "markupsafe")


def require_packages(names: Iterable[str], *, purpose: str, extra: str) -> None:
    """Raise MissingPackageError if a package is not installed.

    The packages are not imported, so the check takes little time.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        verb = "are" if others else "is"
        raise MissingPackageError(
            f"{purpose} needs {listed}, which {verb} not installed: pip install 'mrshc[{extra}]'."
        )
