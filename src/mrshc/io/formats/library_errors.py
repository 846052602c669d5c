"""Replacement of the errors that libraries raise while they read a file by FlawError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrshc.core.data.files import UnreadableError
from mrshc.io.stored.hdf5_zarr_safe_access import UnsafeContentError
from mrshc.io.streams import FlawError
from mrshc.shell.text_cleaning import clean_text


@contextmanager
def convert_library_errors(description: str) -> Iterator[None]:
    """Raise FlawError in place of the errors that a library raises while it reads a file."""
    try:
        yield
    except (FlawError, UnreadableError, MemoryError):  # these errors are not converted
        raise
    except UnsafeContentError as error:
        raise FlawError(str(error)) from None
    except Exception as error:  # libraries raise many types of errors for damaged content
        raise damaged_file_error(description, error) from None


def damaged_file_error(description: str, error: Exception) -> FlawError:
    """Return the error for a file that a library could not read."""
    # Only the first line is shown: some libraries append a call stack, which does not help users.
    lines = str(error).strip().splitlines()
    reason = clean_text(lines[0]).rstrip(".") if lines else type(error).__name__
    return FlawError(f"is not a complete {description}: {reason}")
