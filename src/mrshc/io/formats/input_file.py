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
    as_seekable_file,
    decode_head,
    detect_encoding,
    is_regular_file,
    open_text,
    peek_head,
)

# Number of bytes that are read to recognise the format of a file. The number is not tuned, since
# the first few bytes suffice.
_HEAD_BYTES = 4096
_ZIP_SIGNATURE = b"PK\x03\x04"


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input, with the properties that are used to recognise its format and to read its content.

    Parameters
    ----------
    head : bytes, default=b""
        The first bytes of a file, or of the decompressed content of a stream; empty for a folder.
    path : Path or None, default=None
        Name of a file or a folder; None for a stream.
    stream : io.BufferedReader or None, default=None
        The decompressed content of a stream; None for an input with a path.
    """

    head: bytes = b""
    path: Path | None = None
    stream: io.BufferedReader | None = None

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> InputFile | None:
        """Return the input at a path; None for standard input, pipes and unreadable files."""
        if os.fspath(path) == STANDARD_INPUT:
            return None
        try:
            if Path(path).is_dir():
                return cls(path=Path(path))
            if not is_regular_file(path):  # bytes that were read from a pipe here would be lost
                return None
            with Path(path).open("rb") as file:
                return cls(path=Path(path), head=file.read(_HEAD_BYTES))
        except (OSError, ValueError):  # the error is reported when the file is read
            return None

    @classmethod
    def from_stream(cls, stream: io.BufferedReader) -> InputFile:
        """Return a stream as an input."""
        return cls(stream=stream, head=peek_head(stream))

    @property
    def is_folder(self) -> bool:
        """Whether the input is a folder."""
        return self.path is not None and self.path.is_dir()

    def has_entry(self, name: str) -> bool:
        """Return whether the input is a folder that contains a file or folder with this name."""
        try:
            return self.path is not None and (self.path / name).exists()
        except OSError:  # there is no permission to access the folder
            return False

    @cached_property
    def members(self) -> frozenset[str] | None:
        """Names of the members of a ZIP archive; None if the input is damaged or not an archive."""
        if not self.is_archive:
            return None
        # The stream is accessed outside the try block, so that errors of the stream, such as
        # damaged compression, are not suppressed.
        archive = self.content if self.path is None else self.path
        try:
            with zipfile.ZipFile(archive) as content:
                return frozenset(content.namelist())
        except Exception:  # errors are of many types; the damage is reported when the file is read
            return None
        finally:
            if self.path is None:
                self.content.seek(0)

    @property
    def is_archive(self) -> bool:
        """Whether the first bytes are those of a ZIP archive."""
        return self.head.startswith(_ZIP_SIGNATURE)

    @property
    def head_text(self) -> str:
        """The first characters of a text; an empty string if the input is not text."""
        return "" if detect_encoding(self.head) is None else decode_head(self.head[:_HEAD_BYTES])

    @cached_property
    def content(self) -> Any:
        """The bytes of a stream as a seekable file, for formats that need random access."""
        assert self.stream is not None
        return as_seekable_file(self.stream)

    @contextmanager
    def text(self) -> Iterator[tuple[io.TextIOWrapper, str]]:
        """Yield the text of a stream, and the first complete lines of the text."""
        assert self.stream is not None
        with open_text(self.stream) as text_and_head:
            yield text_and_head
