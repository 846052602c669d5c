"""Errors of reading X, with messages that name the columns, the cause and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import UnsafeContentError
from mrshc.core.data.shape_and_dtype import OutOfRangeError

CHECK_FILE_ADVICE = "Check that the file is complete, and copy or write it again if it is not."


@contextmanager
def translate_read_errors(name: str, *, start: int, stop: int, advice: str) -> Iterator[None]:
    """Turn any error of a library that reads columns start to stop - 1 into an UnreadableError.

    Only calls of the library belong inside the context: errors of this package that are not listed
    below would be translated, too.
    """
    try:
        yield
    except (MemoryError, OutOfRangeError, UnsafeContentError, UnreadableError):
        # Their messages are complete already.
        raise
    except Exception as error:  # each library raises types of its own
        raise unreadable_error(name, start=start, stop=stop, advice=advice, cause=error) from error


def unreadable_error(
    name: str, *, start: int, stop: int, advice: str, cause: BaseException
) -> UnreadableError:
    """Return the error that columns start to stop - 1 cannot be read.

    Parameters
    ----------
    name : str
        Name of the data.
    start, stop : int
        Range of the columns, without `stop`.
    advice : str
        Sentence that tells the user what to do.
    cause : BaseException
        Error of the library.
    """
    columns = f"Column {start}" if stop - start == 1 else f"Columns {start} to {stop - 1}"
    return UnreadableError(
        f"{columns} of {name} cannot be read: {_first_sentence(cause)}. {advice}"
    )


def _first_sentence(error: BaseException) -> str:
    """Return the first sentence of the message of an error, or the name of its type."""
    # Messages of HDF5 continue over many lines with its internal call stack.
    lines = str(error).strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__
