"""What is said of failures to read X."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import OutsideError
from mrshc.core.data.shape_and_dtype import OutOfRangeError

WHOLE_FILE = "Check that the file is whole, and copy or write it again if it is not."


@contextmanager
def reading(name: str, start: int, stop: int, advice: str) -> Iterator[None]:
    """Turn any failure to read columns start..stop-1 into one sentence; ours must not be inside."""
    try:
        yield
    except (MemoryError, OutOfRangeError, OutsideError, UnreadableError):  # sentences already
        raise
    except Exception as error:  # of many kinds: each library has its own
        raise unreadable(name, start, stop, advice, error) from error


def unreadable(
    name: str, start: int, stop: int, advice: str, error: BaseException
) -> UnreadableError:
    """Return the sentence about columns start..stop-1 that could not be read."""
    columns = f"Column {start}" if stop - start == 1 else f"Columns {start} to {stop - 1}"
    return UnreadableError(f"{columns} of {name} cannot be read: {_brief(error)}. {advice}")


def _brief(error: BaseException) -> str:
    """Return the first sentence of what a library says."""
    said = str(error).strip().splitlines()
    return said[0].split(". ")[0].rstrip(".") if said else type(error).__name__
