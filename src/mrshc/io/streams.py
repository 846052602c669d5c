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

# The name of standard input as an argument, which is the convention of Unix tools, and in messages.
STANDARD_INPUT = "-"
_STANDARD_INPUT_LABEL = "standard input"

# Bytes that are inspected before a stream is read: 4 MiB hold several lines even of a table whose
# features are in columns, each line of which has a cell for every feature.
_HEAD_BYTES = 1 << 22
# Bytes of a pipe that are held in memory (64 MiB); a longer pipe is written to a temporary file.
# Not tuned: results do not depend on it.
_MAX_SPOOLED_BYTES = 1 << 26

# By the first bytes of a file, which tell its compression whatever its name.
_DECOMPRESSORS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")  # of the same compressions, for help texts
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class TableError(UserError):
    """Raised if a table cannot be read; the message states where and why.

    See Also
    --------
    mrshc.io.read_table : Read a table of samples and features.
    """


class FlawError(Exception):
    """Raised for a defect in the content of a file.

    The message is the rest of a sentence that begins with the name of the file and has no final
    period, since readers of formats do not know that name. If it names parameters of `read_table`,
    it is a `mrshc.errors.Sentence`.
    """


def table_error(name: str, flaw: FlawError) -> TableError:
    """Return the error whose message is the name of a table followed by its defect."""
    return TableError(Sentence("{name} {flaw}.", name=name, flaw=flaw))


@contextmanager
def open_stream(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """Open a file, a pipe or standard input; compressed content is decompressed.

    The input is opened once and read once, since a pipe cannot be read again.

    Parameters
    ----------
    path : str or path
        Name of the file or the pipe; "-" for standard input.

    Yields
    ------
    io.BufferedReader
        The decompressed content. Errors while it is read are raised as `TableError`.
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
        if error.errno is None:  # bz2 reports damaged content by an OSError without a number
            raise _damaged_compression_error(name) from None
        raise TableError(f"{name} cannot be read: {error.strerror}.") from None


def _damaged_compression_error(name: str) -> TableError:
    return TableError(
        f"{name} is a compressed file that is damaged or cut off. Copy or download it again."
    )


def display_name(path: str | os.PathLike[str]) -> str:
    """Return the name of an input as messages show it; bytes that are not text are escaped."""
    if os.fspath(path) == STANDARD_INPUT:
        return _STANDARD_INPUT_LABEL
    return clean_text(os.fsencode(path).decode("utf-8", "backslashreplace"))


def is_regular_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a regular file, which can be opened more than once."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):  # reported when the file is read
        return False


def _spool_pipe(pipe: Any, name: str) -> BinaryIO:
    """Return the content of a pipe as a seekable file, which some formats need."""
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


def _open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Return a file opened for reading, or the content of a named pipe as a file."""
    name = display_name(path)
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
    except ValueError:  # a name that no file can have, such as one with a null character
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
    """Yield the decompressed content of a file, which may not be compressed at all."""
    # The buffer is as large as the head, since `peek` returns no more than one buffer.
    with io.BufferedReader(raw, _HEAD_BYTES) as buffered:
        head = peek_head(buffered)
        for signature, decompress in _DECOMPRESSORS.items():
            if head.startswith(signature):
                with decompress(buffered) as inner, io.BufferedReader(inner, _HEAD_BYTES) as stream:
                    yield stream
                return
        yield buffered


def peek_head(stream: io.BufferedReader) -> bytes:
    """Return the first bytes of a stream without advancing its position."""
    return stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]


def as_seekable_file(stream: io.BufferedReader) -> Any:
    """Return the content of a stream as a seekable file, for formats that need random access."""
    # Not compressed: the file below the buffer is itself seekable, and nothing is copied.
    if isinstance(stream.raw, io.BufferedReader | tempfile.SpooledTemporaryFile):
        stream.raw.seek(0)
        return stream.raw
    return io.BytesIO(stream.read())


def check_numeric_matrix(array: Any) -> None:
    """Refuse an array, in memory or in a file, that is not a matrix of real numbers."""
    # Kinds of numpy: floats, integers, unsigned integers, booleans.
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise FlawError(
            f"must hold a matrix of numbers, but holds an array of {array.dtype} with "
            f"{array.ndim} dimensions"
        )


def detect_encoding(head: bytes) -> str | None:
    """Return the encoding of a text from its first bytes; None if they are not text.

    The encoding is that of the byte order mark, or else UTF-8; single bytes that are not valid
    UTF-8 are decoded as Latin-1.
    """
    marked = (code for mark, code in _BYTE_ORDER_MARKS.items() if head.startswith(mark))
    code = next(marked, "utf-8")
    # Binary formats hold null bytes, texts do not, except where UTF-16 encodes ASCII.
    return None if b"\0" in head and code != "utf-16" else code


def decode_head(head: bytes) -> str:
    """Return the first bytes of a text as characters."""
    return head.decode(detect_encoding(head) or "utf-8", _LATIN_1_FALLBACK)


@contextmanager
def open_text(stream: io.BufferedReader) -> Iterator[tuple[io.TextIOWrapper, str]]:
    """Decode a stream of text.

    Parameters
    ----------
    stream : io.BufferedReader
        The text as bytes, at its beginning.

    Yields
    ------
    text : io.TextIOWrapper
        The whole text; line ends are not changed.
    head : str
        The first lines of the text, all of them complete, or the beginning of a very long line.
    """
    head = peek_head(stream)
    # The last line of the head is cut off at an arbitrary byte, so it is left out.
    complete, newline, rest = decode_head(head).rpartition("\n")
    code = detect_encoding(head) or "utf-8"
    with io.TextIOWrapper(stream, code, errors=_LATIN_1_FALLBACK, newline="") as text:
        yield text, complete if newline else rest


def _decode_as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Replace undecodable bytes by their Latin-1 characters, as an error handler of codecs."""
    # Tables from older spreadsheets hold a few such letters, in names only.
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


# Registered for the whole process, hence the prefix.
_LATIN_1_FALLBACK = "mrshc-latin-1"
codecs.register_error(_LATIN_1_FALLBACK, _decode_as_latin_1)
