"""Errors of the libraries that read files, as sentences about the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import OutsideError
from mrshc.io.streams import FlawError
from mrshc.utils.text_cleaning import clean_text


@contextmanager
def whole_file(what: str) -> Iterator[None]:
    """Turn the errors of a library that reads a file into one of a damaged file."""
    try:
        yield
    except (FlawError, UnreadableError, MemoryError):
        raise
    except OutsideError as error:
        raise FlawError(str(error)) from None
    except Exception as error:  # of many kinds: the file may hold anything
        raise damaged(what, error) from None


def damaged(what: str, error: Exception) -> FlawError:
    """Return what is wrong with a file that its library could not read."""
    lines = str(error).strip().splitlines()
    brief = clean_text(lines[0]).rstrip(".") if lines else type(error).__name__
    return FlawError(f"is not a whole {what}: {brief}")
