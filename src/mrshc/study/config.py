"""The config of a study, which is read from a TOML file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mrshc.errors import UserError
from mrshc.shell.wording import Parameter, Sentence

# Folder of the configs that are part of the package. It also contains reference values from the
# paper and from R.
CONFIGS = Path(__file__).with_name("configs")

# Entries of a config that change how results are displayed but not the results themselves. If only
# these entries have changed, an interrupted study can still be resumed and a finished study can
# still be rendered.
_DISPLAY_ENTRIES = ("columns", "paper", "in_r", "against", "shown")

# Folders and modules of the package whose code affects the results.
_COMPUTING_PARTS = (
    *("core", "estimators", "preprocessing", "study"),
    *("comparison", "components", "datasets", "metrics"),
)


class StudyError(UserError):
    """Raised if a study cannot be run or rendered as requested; the message states the reason."""


def missing_data_error(study: Study, file: str) -> StudyError:
    """Return the error for a study whose data set, the file `file`, was not found."""
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
        Folder that contains the real data sets, which are not part of the package; None if no
        folder was given.
    out : Path
        Folder to which figures are written.
    """

    data: Path | None
    out: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study as described by its config.

    Attributes
    ----------
    name : str
        Name of the config file without its suffix.
    folder : Path
        Folder of the config file.
    title : str
        Title of the study, used as the alternative text of its figures.
    kind : str
        Kind of the study, which determines the module that runs and renders the study.
    replicates : int
        Number of data sets that are simulated for each design.
    options : dict
        All other entries of the config, unchanged. The entries depend on the kind of study.
    """

    name: str
    folder: Path
    title: str
    kind: str
    replicates: int
    options: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Hash of the code and of the config entries that affect the results.

        Partial results of an interrupted study are reused only if their hash is the same. The hash
        does not depend on the number of draws, so a study with more draws can continue a study with
        fewer draws.
        """
        options = _without_display_entries(self.options)
        content = json.dumps([code_version(), self.kind, options], sort_keys=True)
        # 64 bits are enough to distinguish the versions of one study.
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def has_same_computation(self, options: dict[str, Any]) -> bool:
        """Return whether the entries of another config lead to the same results.

        Entries that affect only the display are ignored.
        """
        return bool(_without_display_entries(options) == _without_display_entries(self.options))

    def entries(self, name: str) -> list[dict[str, Any]]:
        """Return a required list of the config, such as [[design]], with one dict for each entry.

        Raise StudyError if the config does not contain a list of tables with this name.
        """
        entries = self.option(name)
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise StudyError(f"{self.name}.toml must list its {name}s as [[{name}]].")
        return entries

    def option(self, name: str) -> Any:
        """Return a required entry of the config; raise StudyError if the entry is missing."""
        try:
            return self.options[name]
        except KeyError:
            raise StudyError(f"{self.name}.toml must have an entry {name!r}.") from None


def load_study(folder: Path, name: str) -> Study:
    """Return the study with a given name, read from its config in a folder.

    Raise StudyError if there is no such config, if it is not valid TOML, or if an entry that all
    studies must have is missing or invalid.
    """
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in known:
        available = ", ".join(known) if known else "none"
        # For the studies of the package, the path of the folder would not help the user.
        location = "" if folder == CONFIGS else f" in the folder {str(folder)!r}"
        raise StudyError(f"No study {name!r}{location}; there are: {available}.")
    with (folder / f"{name}.toml").open("rb") as file:
        try:
            content = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{name}.toml is not valid TOML: {error}.") from None
    try:
        # All other entries of the config are checked by the module for the kind of study.
        common = {key: content.pop(key) for key in ("title", "kind", "replicates")}
    except KeyError as error:
        raise StudyError(f"{name}.toml must have an entry {error}.") from None
    replicates = common["replicates"]
    # `isinstance` is not used here, since True is an instance of int.
    if type(replicates) is not int or replicates < 1:
        raise StudyError(f"{name}.toml: replicates must be a number above 0, got {replicates!r}.")
    return Study(name=name, folder=folder, options=content, **common)


@cache
def code_version() -> str:
    """Return a hash of the source code that affects the results.

    The hash is used to prevent results of different versions of the code from being mixed in one
    table.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    # The files are sorted, since their order depends on the file system.
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        if relative.parts[0].removesuffix(".py") in _COMPUTING_PARTS:
            digest.update(relative.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _without_display_entries(options: Any) -> Any:
    """Return a config, or a part of it, without the entries that affect only the display."""
    if isinstance(options, dict):
        return {
            key: _without_display_entries(value)
            for key, value in options.items()
            if key not in _DISPLAY_ENTRIES
        }
    if isinstance(options, list):
        return [_without_display_entries(value) for value in options]
    return options
