"""Input streams: files, pipes and standard input, read as bytes or text, with decompression."""

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

from mrshc.errors import UserError
from mrshc.shell.text_cleaning import clean_text
from mrshc.shell.wording import Sentence

# The file name that stands for standard input, as in Unix tools, and the name of standard input in
# messages.
STANDARD_INPUT = "-"
_STANDARD_INPUT_LABEL = "standard input"

# Number of bytes that are inspected before a stream is read (4 MiB). This is enough for several
# lines even if the features are in columns. Each line then has one cell per feature.
_HEAD_BYTES = 1 << 22
# Largest number of bytes of a pipe that are kept in memory (64 MiB). If a pipe contains more bytes,
# its content is written to a temporary file. The limit is not tuned: it does not affect the result.
_MAX_SPOOLED_BYTES = 1 << 26

# Functions that decompress a file, by the first bytes of the file. The first bytes identify the
# compression method even if the file name does not.
_DECOMPRESSORS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")  # file name suffixes, for help texts
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class TableError(UserError):
    """Raised if a table cannot be read; the message names the file and states the reason."""


class FlawError(Exception):
    """Raised if the content of a file has a defect.

    The message continues a sentence that begins with the name of the file, and has no final period.
    The name is added later, because the functions that read a format do not receive the name. A
    message that names parameters of `read_table` is a `mrshc.errors.Sentence`.
    """


def table_error(name: str, flaw: FlawError) -> TableError:
    """Return a TableError whose message consists of the name of a table and the defect."""
    return TableError(Sentence("{name} {flaw}.", name=name, flaw=flaw))


@contextmanager
def open_stream(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """Open a file, a pipe or standard input, and decompress the content if it is compressed.

    The input is opened once and read once, since a pipe cannot be read again.
    """
    name = display_name(path)
    try:
        is_standard_input = os.fspath(path) == STANDARD_INPUT
        raw = _spool_pipe(sys.stdin.buffer, name) if is_standard_input else _open_file(path)
        with raw, _decompress(raw) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error):
        raise _damaged_compression_error(name) from None
    except OSError as error:
        if error.errno is None:  # bz2 raises an OSError without errno for damaged content
            raise _damaged_compression_error(name) from None
        raise TableError(f"{name} cannot be read: {error.strerror}.") from None


def _damaged_compression_error(name: str) -> TableError:
    return TableError(
        f"{name} is a compressed file that is damaged or cut off. Copy or download it again."
    )


def display_name(path: str | os.PathLike[str]) -> str:
    """Return the name of an input for messages; bytes that are not valid UTF-8 are escaped."""
    if os.fspath(path) == STANDARD_INPUT:
        return _STANDARD_INPUT_LABEL
    return clean_text(os.fsencode(path).decode("utf-8", "backslashreplace"))


def is_regular_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a regular file; regular files can be opened more than once."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):  # the error is reported when the file is read
        return False


def _spool_pipe(pipe: Any, name: str) -> BinaryIO:
    """Return the content of a pipe as a seekable file, since some formats need random access.

    Raise TableError if a temporary file is needed but cannot be written.
    """
    content = tempfile.SpooledTemporaryFile(max_size=_MAX_SPOOLED_BYTES)  # noqa: SIM115 - closed by the caller
    while part := pipe.read(_HEAD_BYTES):
        try:
            content.write(part)
        except OSError as error:
            raise TableError(
                f"{name} is a pipe with more than {_MAX_SPOOLED_BYTES >> 20} MB, which must be "
                f"written to a temporary file, but that failed: {error.strerror}. Set TMPDIR to a "
                "folder on a disk with more free space, or write the table to a file first."
            ) from None
    content.seek(0)
    return cast(BinaryIO, content)


def refuse_missing_file(path: str | os.PathLike[str]) -> None:
    """Raise TableError if there is neither a file nor a folder with this name.

    The name "-" stands for standard input. The function takes no time, so a wrong name can be
    reported before slow modules are imported.
    """
    try:
        is_missing = str(path) != STANDARD_INPUT and not os.path.lexists(path)
    except ValueError:  # not a valid file name, such as a name with a null character
        is_missing = True
    if is_missing:
        raise _missing_file_error(path)


def _missing_file_error(path: str | os.PathLike[str]) -> TableError:
    """Return the error for a file that does not exist."""
    return TableError(f"There is no file {display_name(path)}. Check the name.")


def _open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Return a file opened for reading; for a named pipe, return a file with its content.

    Raise TableError if the path is neither a file nor a pipe, or cannot be read.
    """
    name = display_name(path)
    try:
        mode = Path(path).stat().st_mode
        file = open(path, "rb")  # noqa: PTH123, SIM115 - any kind of path; closed by the caller
    except FileNotFoundError:
        raise _missing_file_error(path) from None
    except IsADirectoryError:
        raise TableError(
            f"{name} is a folder, but a file with a table was wanted. Name the file."
        ) from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError:  # not a valid file name, such as a name with a null character
        raise TableError(f"There is no file {name!r}. Check the name.") from None
    if stat.S_ISREG(mode):
        return file
    with file:
        if not stat.S_ISFIFO(mode):  # reading from a device may never end
            raise TableError(
                f"{name} is a device, but a file with a table was wanted. Name a file or a pipe, "
                "or use - for standard input."
            )
        return _spool_pipe(file, name)


@contextmanager
def _decompress(raw: Any) -> Iterator[io.BufferedReader]:
    """Yield the content of a file, decompressed if the file is compressed."""
    # The size of the buffer is `_HEAD_BYTES`, since `peek` returns at most the content of the
    # buffer.
    with io.BufferedReader(raw, _HEAD_BYTES) as buffered:
        head = peek_head(buffered)
        for signature, decompress in _DECOMPRESSORS.items():
            if head.startswith(signature):
                with decompress(buffered) as inner, io.BufferedReader(inner, _HEAD_BYTES) as stream:
                    yield stream
                return
        yield buffered


def peek_head(stream: io.BufferedReader) -> bytes:
    """Return the first bytes of a stream, at most 4 MiB, without advancing its position."""
    return stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]


def as_seekable_file(stream: io.BufferedReader) -> Any:
    """Return the content of a stream as a seekable file, for formats that need random access."""
    # If the content is not compressed, the file from which the buffer reads is itself seekable and
    # need not be copied.
    if isinstance(stream.raw, io.BufferedReader | tempfile.SpooledTemporaryFile):
        stream.raw.seek(0)
        return stream.raw
    return io.BytesIO(stream.read())


def check_numeric_matrix(array: Any) -> None:
    """Raise FlawError if an array, in memory or in a file, is not a matrix of real numbers."""
    # The letters are numpy's codes for floats, signed integers, unsigned integers and booleans.
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise FlawError(
            f"must hold a matrix of numbers, but holds an array of {array.dtype} with "
            f"{array.ndim} dimensions"
        )


def detect_encoding(head: bytes) -> str | None:
    """Return the encoding of a text, given its first bytes; None if the bytes are not text.

    If the text begins with a byte order mark, the mark determines the encoding. Otherwise, the
    encoding is UTF-8, even if some bytes are not valid UTF-8. These bytes are later decoded as
    Latin-1.
    """
    marked = (code for mark, code in _BYTE_ORDER_MARKS.items() if head.startswith(mark))
    code = next(marked, "utf-8")
    # Binary formats contain null bytes. Text contains null bytes only in UTF-16, which encodes
    # ASCII characters with them.
    return None if b"\0" in head and code != "utf-16" else code


def decode_head(head: bytes) -> str:
    """Return the first bytes of a text as a string."""
    return head.decode(detect_encoding(head) or "utf-8", _LATIN_1_FALLBACK)


@contextmanager
def open_text(stream: io.BufferedReader) -> Iterator[tuple[io.TextIOWrapper, str]]:
    """Decode a stream of text."""
    head = peek_head(stream)
    # The first bytes may end within a line, so the text after the last line break is left out.
    complete, newline, rest = decode_head(head).rpartition("\n")
    code = detect_encoding(head) or "utf-8"
    with io.TextIOWrapper(stream, code, errors=_LATIN_1_FALLBACK, newline="") as text:
        yield text, complete if newline else rest


def _decode_as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Return undecodable bytes as Latin-1 characters, and the position after these bytes.

    This function is an error handler for `codecs.register_error`. Errors in encoding are raised
    unchanged.
    """
    # Tables from older spreadsheets may contain a few Latin-1 letters, usually in names.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


# The error handler is registered for the whole process. The prefix distinguishes its name from the
# names of other error handlers.
_LATIN_1_FALLBACK = "mrshc-latin-1"
codecs.register_error(_LATIN_1_FALLBACK, _decode_as_latin_1)
