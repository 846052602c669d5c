"""An input whose format is to be recognised: a file, a folder or a stream."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mrshc.io.streams import (
    STANDARD_INPUT,
    as_text,
    decode,
    encoding_of,
    is_regular,
    seekable,
    start_of,
)

# Bytes of a file that are read to recognise its format. Formats are known by their first few; not
# tuned: results do not depend on it.
_HEAD = 4096
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """What formats look at to recognise an input, and read it by.

    Parameters
    ----------
    head : bytes
        The first bytes, after decompression; none of a folder.
    path : Path or None
        Where it can be opened by its name: a folder, or a file that is not compressed as a whole.
        None for a stream.
    stream : io.BufferedReader or None
        Its content after decompression; None if it has a path.
    """

    head: bytes = b""
    path: Path | None = None
    stream: io.BufferedReader | None = None

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> InputFile | None:
        """Return the input at a path; None for standard input, pipes and what cannot be read."""
        if os.fspath(path) == STANDARD_INPUT:
            return None
        try:
            if Path(path).is_dir():
                return cls(path=Path(path))
            if not is_regular(path):  # bytes that are read from a pipe would be lost
                return None
            with Path(path).open("rb") as file:
                return cls(path=Path(path), head=file.read(_HEAD))
        except (OSError, ValueError):  # the reader reports what is wrong
            return None

    @classmethod
    def of(cls, stream: io.BufferedReader) -> InputFile:
        """Return the input that a stream is."""
        return cls(stream=stream, head=start_of(stream))

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path is not None and self.path.is_dir()

    def has_entry(self, name: str) -> bool:
        """Tell whether a folder has a file or folder of some name."""
        try:
            return self.path is not None and (self.path / name).exists()
        except OSError:  # a folder whose entries may not be seen
            return False

    @cached_property
    def members(self) -> frozenset[str] | None:
        """Names in a ZIP archive; None if it is not one, or is damaged."""
        if not self.is_archive:
            return None
        # Errors of a stream, such as damaged compression, are not caught here.
        archive = self.content if self.path is None else self.path
        try:
            with zipfile.ZipFile(archive) as content:
                return frozenset(content.namelist())
        except Exception:  # of many kinds: the reader reports what is wrong
            return None
        finally:
            if self.path is None:
                self.content.seek(0)

    @property
    def is_archive(self) -> bool:
        """Whether it begins as a ZIP archive does."""
        return self.head.startswith(_ZIP)

    @property
    def beginning(self) -> str:
        """The first characters of a text; none of other content."""
        return "" if encoding_of(self.head) is None else decode(self.head[:_HEAD])

    @cached_property
    def content(self) -> Any:
        """The bytes of a stream, for formats that are not read front to back."""
        assert self.stream is not None
        return seekable(self.stream)

    @contextmanager
    def text(self) -> Iterator[tuple[io.TextIOWrapper, str]]:
        """Give the text of a stream, and its first whole lines."""
        assert self.stream is not None
        with as_text(self.stream) as text:
            yield text
