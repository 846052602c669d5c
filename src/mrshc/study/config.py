"""What a study is to do, read from its TOML file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class StudyError(ValueError):
    """A study that cannot be run as asked; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One study. `designs` and `methods` are tables of the config, passed on as they are."""

    name: str
    folder: Path
    title: str
    replicates: int
    seed: int  # of the first draw; the others follow
    n_clusters: int  # where trees are cut for the scores
    designs: tuple[dict[str, Any], ...]
    methods: tuple[dict[str, Any], ...]

    @property
    def fingerprint(self) -> str:
        """Changes with anything that changes results, except the number of draws."""
        content = [self.seed, self.n_clusters, self.designs, self.methods]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def file(self, suffix: str) -> Path:
        """Return the path of one of the study's files."""
        return self.folder / f"{self.name}{suffix}"


def load_study(folder: Path, name: str) -> Study:
    """Read a study's config."""
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        there = ", ".join(known) if known else "none"
        raise StudyError(f"No study {name!r} in the folder {folder}; there are: {there}.")
    with (folder / f"{name}.toml").open("rb") as file:
        content = tomllib.load(file)
    try:
        return Study(
            name=name,
            folder=folder,
            title=content["title"],
            replicates=content["replicates"],
            seed=content["seed"],
            n_clusters=content["n_clusters"],
            designs=tuple(content["design"]),
            methods=tuple(content["method"]),
        )
    except KeyError as error:
        raise StudyError(f"{name}.toml must have an entry {error}.") from None
