"""Print the oldest versions of the dependencies that pyproject.toml admits, as pip constraints.

    python tests/lowest_versions.py [PACKAGE ...]

`make lowest` runs the tests with them. Tools for tests are not included, but Polars is, since
scikit-learn converts its data frames. The versions of PACKAGEs and of torch are those of
constraints.txt: old releases of torch bring several gigabytes of libraries for graphics cards.
"""

import re
import sys

from project_metadata import ROOT, project_table, requirements

_EXTRAS = ("anndata", "cli", "dask", "parquet", "zarr")


def lowest_versions(project):
    """Return a constraint for each dependency of a project table, and of the command line."""
    admitted = requirements(project, *_EXTRAS)
    admitted += [line for line in requirements(project, "test") if line.startswith("polars")]
    return [re.sub(r"\[.*\]", "", requirement).replace(">=", "==") for requirement in admitted]


def main():
    """Write the constraints to standard output."""
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    as_pinned = {"torch", *sys.argv[1:]}
    lines = [line for line in lowest_versions(project_table()) if _package(line) not in as_pinned]
    lines += [line for line in pinned if _package(line) in as_pinned]
    sys.stdout.write("\n".join(lines) + "\n")


def _package(constraint):
    return constraint.partition("==")[0]


if __name__ == "__main__":
    main()
