"""Conversion of the errors of libraries that read files into sentences about the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import UnsafeContentError
from mrshc.io.streams import FlawError
from mrshc.utils.text_cleaning import clean_text


@contextmanager
def convert_library_errors(description: str) -> Iterator[None]:
    """Convert the errors of a library that reads a file into the error of a damaged file.

    Parameters
    ----------
    description : str
        The kind of file, without an article: "Parquet file".
    """
    try:
        yield
    except (FlawError, UnreadableError, MemoryError):  # have messages of their own
        raise
    except UnsafeContentError as error:
        raise FlawError(str(error)) from None
    except Exception as error:  # libraries raise many kinds of errors for damaged content
        raise damaged_file_error(description, error) from None


def damaged_file_error(description: str, error: Exception) -> FlawError:
    """Return the error about a file that its library could not read."""
    # Some libraries add a stack of calls below the first line, which does not help users.
    lines = str(error).strip().splitlines()
    reason = clean_text(lines[0]).rstrip(".") if lines else type(error).__name__
    return FlawError(f"is not a complete {description}: {reason}")
