"""Input streams: files, pipes and standard input, compressed or not, as bytes or as text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from mrshc.errors import Sentence, UserError
from mrshc.utils.text_cleaning import clean_text

STANDARD_INPUT, _STANDARD_INPUT = "-", "standard input"  # as an argument, and in a sentence

# Enough to see some lines even of tables with features in columns.
_HEAD = 1 << 22
# Bytes of a pipe that are held in memory; what goes beyond is written to a temporary file. Not
# tuned: results do not depend on it.
_SPOOLED = 1 << 26

_COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")  # of the same, for people
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class TableError(UserError):
    """A table that cannot be read; the message says where and why."""


class FlawError(Exception):
    """What is wrong with a table: the rest of a sentence that begins with the table's name.

    If it names parameters of `read_table`, it is a `mrshc.errors.Sentence`.
    """


def table_error(name: str, flaw: FlawError) -> TableError:
    """Return the whole sentence about a table that has a flaw."""
    return TableError(Sentence("{name} {flaw}.", name=name, flaw=flaw))


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """Open a file, a pipe or standard input; compressed content is decompressed.

    The input is opened once and read once, since a pipe cannot be read again.
    """
    name = shown(path)
    try:
        is_piped = os.fspath(path) == STANDARD_INPUT
        raw = _spool(sys.stdin.buffer, name) if is_piped else _file(path)
        with raw, _decompressed(raw) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error):
        raise _damaged(name) from None
    except OSError as error:
        if error.errno is None:  # by which bz2 reports damaged content
            raise _damaged(name) from None
        raise TableError(f"{name} cannot be read: {error.strerror}.") from None


def _damaged(name: str) -> TableError:
    return TableError(
        f"{name} is a compressed file that is damaged or cut off. Copy or download it again."
    )


def shown(path: str | os.PathLike[str]) -> str:
    """Return what to call an input in a sentence; also a name that is not valid text."""
    if os.fspath(path) == STANDARD_INPUT:
        return _STANDARD_INPUT
    return clean_text(os.fsencode(path).decode("utf-8", "backslashreplace"))


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a regular file, which can be opened more than once."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):  # the reader reports what is wrong
        return False


def _spool(pipe: Any, name: str) -> BinaryIO:
    """Return the content of a pipe as a file: some formats are not read front to back."""
    content = tempfile.SpooledTemporaryFile(max_size=_SPOOLED)  # noqa: SIM115 - closed by the caller
    while part := pipe.read(_HEAD):
        try:
            content.write(part)
        except OSError as error:
            raise TableError(
                f"{name} is a pipe with more than {_SPOOLED >> 20} MB, which are kept in a "
                f"temporary file, but that cannot be written: {error.strerror}. Set TMPDIR to a "
                "folder with room, or write the table to a file first."
            ) from None
    content.seek(0)
    return cast(BinaryIO, content)


def _file(path: str | os.PathLike[str]) -> BinaryIO:
    name = shown(path)
    try:
        mode = Path(path).stat().st_mode
        file = open(path, "rb")  # noqa: PTH123, SIM115 - any kind of path; closed by the caller
    except FileNotFoundError:
        raise TableError(f"There is no file {name}. Check the name.") from None
    except IsADirectoryError:
        raise TableError(
            f"{name} is a folder, but a file with a table was wanted. Name the file."
        ) from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError:  # a name that no file can have
        raise TableError(f"There is no file {name!r}. Check the name.") from None
    if stat.S_ISREG(mode):
        return file
    with file:
        if not stat.S_ISFIFO(mode):  # reading from a device may never end
            raise TableError(
                f"{name} is a device, but a file with a table was wanted. Name a file or a pipe, "
                "or use - for standard input."
            )
        return _spool(file, name)


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
    if isinstance(stream.raw, io.BufferedReader | tempfile.SpooledTemporaryFile):  # not compressed
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


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text that begins with some bytes; None if it is not text.

    It is UTF-8 or what a byte order mark says; `decode` takes other bytes as Latin-1.
    """
    marked = (code for mark, code in _BYTE_ORDER_MARKS.items() if head.startswith(mark))
    code = next(marked, "utf-8")
    return None if b"\0" in head and code != "utf-16" else code


def decode(head: bytes) -> str:
    """Return the first bytes of a text as characters."""
    return head.decode(encoding_of(head) or "utf-8", _LENIENT)


@contextmanager
def as_text(stream: io.BufferedReader) -> Iterator[tuple[io.TextIOWrapper, str]]:
    """Decode a stream that holds text, and give its first whole lines too."""
    head = start_of(stream)
    whole, newline, rest = decode(head).rpartition("\n")
    code = encoding_of(head) or "utf-8"
    with io.TextIOWrapper(stream, code, errors=_LENIENT, newline="") as text:
        yield text, whole if newline else rest


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    # Tables from older spreadsheets hold a few such letters, in names only.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_LENIENT = "mrshc-latin-1"
codecs.register_error(_LENIENT, _as_latin_1)
