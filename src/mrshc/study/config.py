"""What a study is to do, read from its TOML file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mrshc.errors import Parameter, Sentence, UserError

# The studies of the paper and the figures of others that their tables show.
CONFIGS = Path(__file__).with_name("configs")

# Entries that change how results are shown, never the results.
_SHOWN_ONLY = ("columns", "paper", "in_r", "against", "shown")

# The part of the package that makes results.
_COMPUTES = (
    *("core", "estimators", "preprocessing", "study"),
    *("comparison", "components", "datasets", "metrics"),
)


class StudyError(UserError):
    """A study that cannot be run as asked; the message says what to do."""


def lacks_data(study: Study, file: str) -> StudyError:
    """Return the error of a study whose data set was not found."""
    return StudyError(
        Sentence(
            "{study} needs the data set {file}, which is not part of this project. Say in which "
            "folder it lies with {data}.",
            study=study.name,
            file=file,
            data=Parameter("data"),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a study reads from and writes to."""

    data: Path | None  # data sets that belong to others
    out: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One study: what every kind has, and the rest of the config as it stands."""

    name: str
    folder: Path
    title: str
    kind: str  # which module runs it
    replicates: int
    options: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Changes with anything that changes results, except the number of draws."""
        content = json.dumps([code_version(), self.kind, _computed(self.options)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def same_computation(self, options: dict[str, Any]) -> bool:
        """Tell whether another config makes the same results, however it shows them."""
        return bool(_computed(options) == _computed(self.options))

    def entries(self, name: str) -> list[dict[str, Any]]:
        """Return the tables of a list such as [[design]]."""
        found = self.option(name)
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise StudyError(f"{self.name}.toml must list its {name}s as [[{name}]].")
        return found

    def option(self, name: str) -> Any:
        """Return an entry of the config that this kind of study cannot do without."""
        try:
            return self.options[name]
        except KeyError:
            raise StudyError(f"{self.name}.toml must have an entry {name!r}.") from None


def load_study(folder: Path, name: str) -> Study:
    """Read a study's config."""
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        there = ", ".join(known) if known else "none"
        where = "" if folder == CONFIGS else f" in the folder {str(folder)!r}"
        raise StudyError(f"No study {name!r}{where}; there are: {there}.")
    with (folder / f"{name}.toml").open("rb") as file:
        try:
            content = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{name}.toml is not valid TOML: {error}.") from None
    try:
        common = {key: content.pop(key) for key in ("title", "kind", "replicates")}
    except KeyError as error:
        raise StudyError(f"{name}.toml must have an entry {error}.") from None
    draws = common["replicates"]
    if type(draws) is not int or draws < 1:
        raise StudyError(f"{name}.toml: replicates must be a number above 0, got {draws!r}.")
    return Study(name=name, folder=folder, options=content, **common)


@cache
def code_version() -> str:
    """Return a hash of the source that makes results: those of different code must not be mixed."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0].removesuffix(".py") in _COMPUTES:
            digest.update(inside.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _computed(options: Any) -> Any:
    """Return a config without what only changes how results are shown."""
    if isinstance(options, dict):
        return {k: _computed(v) for k, v in options.items() if k not in _SHOWN_ONLY}
    return [_computed(v) for v in options] if isinstance(options, list) else options
