"""Errors in reading the data name the columns, the cause and the remedy."""

import pytest

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_safe_access import UnsafeContentError
from mrshc.core.data.read_errors import translate_read_errors, unreadable_error
from mrshc.core.data.shape_and_dtype import OutOfRangeError


@pytest.mark.parametrize(
    ("start", "stop", "columns"),
    [(4, 5, "Column 4"), (0, 1, "Column 0"), (4, 6, "Columns 4 to 5"), (0, 9, "Columns 0 to 8")],
)
def test_the_message_names_the_columns(start, stop, columns):
    error = unreadable_error("X.h5", start=start, stop=stop, advice="Look.", cause=OSError("gone"))
    assert type(error) is UnreadableError
    assert str(error) == f"{columns} of X.h5 cannot be read: gone. Look."


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("no such file", "no such file"),
        ("No such file. It was moved. Really.", "No such file"),
        ("version 1.2 is unknown.", "version 1.2 is unknown"),
        ("\n first line \nsecond line", "first line "),
        ("", "OSError"),
        (" \n", "OSError"),
    ],
)
def test_the_message_contains_the_first_sentence_of_the_cause(message, sentence):
    cause = OSError(message)
    with (
        pytest.raises(UnreadableError) as caught,
        translate_read_errors("X", start=2, stop=4, advice="Look."),
    ):
        raise cause
    assert str(caught.value) == f"Columns 2 to 3 of X cannot be read: {sentence}. Look."
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("full"),
        OutOfRangeError(),
        UnsafeContentError("elsewhere"),
        UnreadableError("complete"),
        KeyboardInterrupt(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_whose_messages_are_complete_are_raised_unchanged(error):
    with (
        pytest.raises(type(error)) as caught,
        translate_read_errors("X", start=0, stop=1, advice="Look."),
    ):
        raise error
    assert caught.value is error
