"""Where a table comes from: a file or standard input, compressed or not."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from mrshc.errors import UserError

STANDARD_INPUT = "-"

# Enough to see some lines even of tables with features in columns.
_HEAD = 1 << 22

_COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class TableError(UserError):
    """A table that cannot be read; the message says where and why."""


class FlawError(Exception):
    """What is wrong with a table: the rest of a sentence that begins with the table's name."""


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """Open a file or standard input; what is compressed is decompressed on the way."""
    name = shown(path)
    try:
        raw = _piped() if os.fspath(path) == STANDARD_INPUT else _file(path)
        with raw, _decompressed(raw) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error):
        raise TableError(
            f"{name} is a compressed file that is damaged or cut off. Copy or download it again."
        ) from None


def shown(path: str | os.PathLike[str]) -> str:
    """Return what to call a source in a sentence."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


def _piped() -> BinaryIO:
    """Return what comes by standard input as a file: some formats are not read front to back."""
    spooled = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    shutil.copyfileobj(sys.stdin.buffer, spooled)
    spooled.seek(0)
    return cast(BinaryIO, spooled)


def _file(path: str | os.PathLike[str]) -> BinaryIO:
    try:
        return open(path, "rb")  # noqa: PTH123 - a path may be anything that can be opened
    except FileNotFoundError:
        raise TableError(f"There is no file {os.fspath(path)}. Check the name.") from None
    except IsADirectoryError:
        raise TableError(
            f"{os.fspath(path)} is a folder, but a file with a table was wanted. Name the file."
        ) from None
    except OSError as error:
        raise TableError(f"{os.fspath(path)} cannot be read: {error.strerror}.") from None
    except ValueError:  # a name that no file can have
        raise TableError(f"There is no file {os.fspath(path)!r}. Check the name.") from None


@contextmanager
def _decompressed(raw: Any) -> Iterator[io.BufferedReader]:
    with io.BufferedReader(raw, _HEAD) as buffered:
        head = start_of(buffered)
        for magic, decompress in _COMPRESSED.items():
            if head.startswith(magic):
                with decompress(buffered) as inner, io.BufferedReader(inner, _HEAD) as stream:
                    yield stream
                return
        yield buffered


def start_of(stream: io.BufferedReader) -> bytes:
    """Return the first bytes of a stream, which stay to be read."""
    return stream.peek(_HEAD)[:_HEAD]


def seekable(stream: io.BufferedReader) -> Any:
    """Return a stream for a format that is not read front to back."""
    if isinstance(stream.raw, io.BufferedReader):  # a plain file
        stream.raw.seek(0)
        return stream.raw
    return io.BytesIO(stream.read())


def refuse_other_than_numbers(array: Any) -> None:
    """Refuse an array, in memory or in a file, that is not a matrix of numbers."""
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise FlawError(
            f"must hold a matrix of numbers, but holds an array of {array.dtype} with "
            f"{array.ndim} dimensions"
        )


@contextmanager
def as_text(stream: io.BufferedReader) -> Iterator[tuple[io.TextIOWrapper, str]]:
    """Decode a stream, and give its first whole lines too.

    It is read as UTF-8 or what a byte order mark says; other bytes count as Latin-1.
    """
    head = start_of(stream)
    marked = (code for mark, code in _BYTE_ORDER_MARKS.items() if head.startswith(mark))
    code = next(marked, "utf-8")
    if b"\0" in head and code != "utf-16":
        raise FlawError(
            "is not a table of a known kind. Known are CSV, TSV, GCT, Parquet, .npy, .npz, .h5ad "
            "and .zarr"
        )
    whole, newline, rest = head.decode(code, _LENIENT).rpartition("\n")
    with io.TextIOWrapper(stream, code, errors=_LENIENT, newline="") as text:
        yield text, whole if newline else rest


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    # Tables from older spreadsheets hold a few such letters, in names only.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_LENIENT = "mrshc-latin-1"
codecs.register_error(_LENIENT, _as_latin_1)
