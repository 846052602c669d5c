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

# Bytes of a file that are read to recognise its format, which needs only the first few. Not tuned:
# results do not depend on it.
_HEAD_BYTES = 4096
_ZIP_SIGNATURE = b"PK\x03\x04"


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input, with the properties by which formats recognise and read it.

    Parameters
    ----------
    head : bytes, default=b""
        The first bytes, after decompression; empty for a folder.
    path : Path or None, default=None
        Name by which the input can be opened: a folder, or a file that is not compressed as a
        whole. None for a stream.
    stream : io.BufferedReader or None, default=None
        The content after decompression; None for an input that has a path.
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
            if not is_regular_file(path):  # bytes that are read from a pipe here would be lost
                return None
            with Path(path).open("rb") as file:
                return cls(path=Path(path), head=file.read(_HEAD_BYTES))
        except (OSError, ValueError):  # reported when the file is read
            return None

    @classmethod
    def from_stream(cls, stream: io.BufferedReader) -> InputFile:
        """Return the input for a stream."""
        return cls(stream=stream, head=peek_head(stream))

    @property
    def is_folder(self) -> bool:
        """Whether the input is a folder."""
        return self.path is not None and self.path.is_dir()

    def has_entry(self, name: str) -> bool:
        """Return whether a folder has a file or folder of some name."""
        try:
            return self.path is not None and (self.path / name).exists()
        except OSError:  # a folder whose entries may not be listed
            return False

    @cached_property
    def members(self) -> frozenset[str] | None:
        """Names of the members of a ZIP archive; None if it is not one, or is damaged."""
        if not self.is_archive:
            return None
        # Outside of the try block: errors of the stream, such as damaged compression, are reported.
        archive = self.content if self.path is None else self.path
        try:
            with zipfile.ZipFile(archive) as content:
                return frozenset(content.namelist())
        except Exception:  # of many kinds; reported when the file is read
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
        """The first characters of a text; empty for other content."""
        return "" if detect_encoding(self.head) is None else decode_head(self.head[:_HEAD_BYTES])

    @cached_property
    def content(self) -> Any:
        """The bytes of a stream as a seekable file, for formats that need random access."""
        assert self.stream is not None
        return as_seekable_file(self.stream)

    @contextmanager
    def text(self) -> Iterator[tuple[io.TextIOWrapper, str]]:
        """Yield the text of a stream, and its first complete lines."""
        assert self.stream is not None
        with open_text(self.stream) as text_and_head:
            yield text_and_head
