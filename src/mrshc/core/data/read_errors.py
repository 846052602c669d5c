"""Errors in reading X, with messages that state the columns, the cause and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrshc.core.array_types import Index
from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import UnsafeContentError
from mrshc.core.data.shape_and_dtype import OutOfRangeError

CHECK_FILE_ADVICE = "Check that the file is complete, and copy or write it again if it is not."


def column_span(indices: Index) -> tuple[int, int]:
    """Return the bounds `start` and `stop` of the smallest range that contains all `indices`.

    `stop` is not included. Both bounds are 0 if `indices` is empty.
    """
    return (int(indices.min()), int(indices.max()) + 1) if indices.size else (0, 0)


@contextmanager
def translate_read_errors(name: str, *, start: int, stop: int, advice: str) -> Iterator[None]:
    """Within this context, raise UnreadableError in place of other errors.

    The context should contain only calls to the library that reads the data, such as h5py. Four
    types of errors are raised unchanged: MemoryError, OutOfRangeError, UnsafeContentError and
    UnreadableError.

    Parameters
    ----------
    name : str
        Name of the data in the message.
    start, stop : int
        Range of the columns; `stop` is not included.
    advice : str
        Sentence in the message that says what the user can do.
    """
    try:
        yield
    except (MemoryError, OutOfRangeError, UnsafeContentError, UnreadableError):
        # A lack of memory does not mean that columns are unreadable, and the messages of the other
        # errors are already complete.
        raise
    except Exception as error:  # the type of the error depends on the library
        raise unreadable_error(name, start=start, stop=stop, advice=advice, cause=error) from error


def unreadable_error(
    name: str, *, start: int, stop: int, advice: str, cause: BaseException
) -> UnreadableError:
    """Return the error for the case that columns start to stop - 1 cannot be read.

    Parameters
    ----------
    name : str
        Name of the data in the message.
    start, stop : int
        Range of the columns; `stop` is not included.
    advice : str
        Sentence in the message that says what the user can do.
    cause : BaseException
        Error that the library raised. The first sentence of its message is included in the new
        message.
    """
    columns = f"Column {start}" if stop - start == 1 else f"Columns {start} to {stop - 1}"
    return UnreadableError(
        f"{columns} of {name} cannot be read: {_first_sentence(cause)}. {advice}"
    )


def _first_sentence(error: BaseException) -> str:
    """Return the first sentence of an error message; if the message is empty, the error type."""
    # The remaining lines are left out: in messages of HDF5, they contain its internal call stack.
    lines = str(error).strip().splitlines()
    return lines[0].split(". ")[0].rstrip(".") if lines else type(error).__name__
