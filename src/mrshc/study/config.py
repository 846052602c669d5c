"""The config of a study, read from its TOML file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mrshc.errors import Parameter, Sentence, UserError

# Folder of the paper's studies, and of reference values from the paper and from R.
CONFIGS = Path(__file__).with_name("configs")

# Entries that change how results are shown, never the results: with others, an interrupted study
# can still be resumed and a finished one rendered.
_DISPLAY_ENTRIES = ("columns", "paper", "in_r", "against", "shown")

# Folders and modules of the package on whose code results depend.
_COMPUTING_PARTS = (
    *("core", "estimators", "preprocessing", "study"),
    *("comparison", "components", "datasets", "metrics"),
)


class StudyError(UserError):
    """A study that cannot be run or rendered as requested; the message says what to do."""


def missing_data_error(study: Study, file: str) -> StudyError:
    """Return the error of a study whose data set was not found."""
    return StudyError(
        Sentence(
            "{study} needs the data set {file}, which is not part of this project. Give the "
            "folder that holds it with {data}.",
            study=study.name,
            file=file,
            data=Parameter("data"),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Folders that a study reads from and writes to.

    Attributes
    ----------
    data : Path or None
        Folder of real data sets, which are not part of the project.
    out : Path
        Folder for figures.
    """

    data: Path | None
    out: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study as its config describes it.

    Attributes
    ----------
    name : str
        Name of the config file without its suffix.
    folder : Path
        Folder of the config file.
    title : str
        Title, as text of figures.
    kind : str
        Key of the module that runs and renders the study.
    replicates : int
        Number of draws of each simulated design.
    options : dict
        The other entries of the config, unchanged. Each kind of study has its own.
    """

    name: str
    folder: Path
    title: str
    kind: str
    replicates: int
    options: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Hash of code and config, by which unfinished work is recognised.

        It does not depend on the number of draws: a study with more draws continues one with fewer.
        """
        options = _without_display_entries(self.options)
        content = json.dumps([code_version(), self.kind, options], sort_keys=True)
        # 64 bits are enough to tell the versions of one study apart.
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def has_same_computation(self, options: dict[str, Any]) -> bool:
        """Tell whether another config leads to the same results, however it shows them."""
        return bool(_without_display_entries(options) == _without_display_entries(self.options))

    def entries(self, name: str) -> list[dict[str, Any]]:
        """Return the tables of a required list such as [[design]]."""
        entries = self.option(name)
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise StudyError(f"{self.name}.toml must list its {name}s as [[{name}]].")
        return entries

    def option(self, name: str) -> Any:
        """Return a required entry of the config."""
        try:
            return self.options[name]
        except KeyError:
            raise StudyError(f"{self.name}.toml must have an entry {name!r}.") from None


def load_study(folder: Path, name: str) -> Study:
    """Return the study of a config file, with the entries common to all kinds checked."""
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        available = ", ".join(known) if known else "none"
        # The path of the package would not help a user of the paper's studies.
        location = "" if folder == CONFIGS else f" in the folder {str(folder)!r}"
        raise StudyError(f"No study {name!r}{location}; there are: {available}.")
    with (folder / f"{name}.toml").open("rb") as file:
        try:
            content = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{name}.toml is not valid TOML: {error}.") from None
    try:
        # The rest of the config is left to the kind of study.
        common = {key: content.pop(key) for key in ("title", "kind", "replicates")}
    except KeyError as error:
        raise StudyError(f"{name}.toml must have an entry {error}.") from None
    replicates = common["replicates"]
    # Not `isinstance`: True is an instance of int.
    if type(replicates) is not int or replicates < 1:
        raise StudyError(f"{name}.toml: replicates must be a number above 0, got {replicates!r}.")
    return Study(name=name, folder=folder, options=content, **common)


@cache
def code_version() -> str:
    """Return a hash of the source code on which results depend.

    Results of different code must not be mixed in one table.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    # Sorted, since the order of a folder depends on the file system.
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        if relative.parts[0].removesuffix(".py") in _COMPUTING_PARTS:
            digest.update(relative.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _without_display_entries(options: Any) -> Any:
    """Return a config, or a part of it, without entries that only change the display."""
    if isinstance(options, dict):
        return {
            key: _without_display_entries(value)
            for key, value in options.items()
            if key not in _DISPLAY_ENTRIES
        }
    if isinstance(options, list):
        return [_without_display_entries(value) for value in options]
    return options
