"""What pyproject.toml says about the package and its dependencies."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def project_table():
    """Return the table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(project, *extras):
    """Return the dependencies and those of extras, including extras of extras, each once."""
    found = list(project["dependencies"])
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            included = re.fullmatch(r"mrshc\[(.*)\]", line)
            found += requirements(project, *included[1].split(",")) if included else [line]
    return list(dict.fromkeys(found))
