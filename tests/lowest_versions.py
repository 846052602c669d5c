"""Print the oldest versions of the dependencies that pyproject.toml admits, as pip constraints.

`make lowest` runs the tests with them. Tools for tests are not included, but Polars is, since
scikit-learn converts its data frames. The version of torch is that of constraints.txt: its old
releases bring several gigabytes of libraries for graphics cards.
"""

import re
import sys
import tomllib
from pathlib import Path

_EXTRAS = ("anndata", "dask", "parquet", "zarr")


def lowest_versions(project):
    """Return a constraint for each dependency of a project table, and of extras that store X."""
    optional = project["optional-dependencies"]
    requirements = project["dependencies"] + [line for extra in _EXTRAS for line in optional[extra]]
    requirements += [line for line in optional["test"] if line.startswith("polars")]
    return [re.sub(r"\[.*\]", "", requirement).replace(">=", "==") for requirement in requirements]


def main():
    """Write the constraints to standard output."""
    root = Path(__file__).parents[1]
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = [line for line in pinned if line.startswith("torch==")]
    sys.stdout.write("\n".join([*lowest_versions(table["project"]), *torch]) + "\n")


if __name__ == "__main__":
    main()
