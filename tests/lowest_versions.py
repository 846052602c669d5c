"""Print the oldest versions of the dependencies that pyproject.toml admits, as pip constraints.

`make lowest` runs the tests with them. Tools for tests are not included, but Polars is, since
scikit-learn converts its data frames. The version of torch is that of constraints.txt: its old
releases bring several gigabytes of libraries for graphics cards.
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
    torch = [line for line in pinned if line.startswith("torch==")]
    sys.stdout.write("\n".join([*lowest_versions(project_table()), *torch]) + "\n")


if __name__ == "__main__":
    main()
