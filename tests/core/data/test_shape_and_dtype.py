"""Only matrices of real numbers are accepted, and their blocks are floats."""

import numpy as np
import pytest

from mrshc.core.data.shape_and_dtype import (
    OutOfRangeError,
    block_dtype,
    check_two_dimensions,
    is_integer_dtype,
    not_real_error,
    refuse_overflow,
)


@pytest.mark.parametrize(
    ("dtype", "expected", "is_integer"),
    [
        ("f2", "f4", False),
        ("f4", "f4", False),
        (">f4", "f4", False),
        ("f8", "f8", False),
        (np.longdouble, "f8", False),
        ("?", "f8", False),
        ("i1", "f8", True),
        ("i8", "f8", True),
        ("u1", "f8", True),
        ("u4", "f8", True),
    ],
)
def test_blocks_have_single_precision_only_if_it_is_exact(dtype, expected, is_integer):
    assert block_dtype(np.dtype(dtype), "X") == np.dtype(expected)
    assert is_integer_dtype(np.dtype(dtype)) == is_integer


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("c8", "complex numbers"),
        ("m8[s]", "times"),
        ("M8[s]", "dates"),
        ("S3", "text"),
        ("U3", "text"),
        (np.dtypes.StringDType(), "text"),
        ("O", "text or other objects"),
        ([("a", float)], "records"),
    ],
)
def test_values_that_are_not_real_numbers_are_described(dtype, values):
    with pytest.raises(
        ValueError, match=rf"^X must hold real numbers, but my file holds {values}\. \w.*\.$"
    ) as caught:
        block_dtype(np.dtype(dtype), "my file")
    assert str(caught.value) == str(not_real_error("my file", np.dtype(dtype).kind))
    assert not is_integer_dtype(np.dtype(dtype))


@pytest.mark.parametrize("shape", [(), (3,), (3, 4, 5)])
def test_other_numbers_of_dimensions_are_refused(shape):
    with pytest.raises(ValueError, match=f"but my file has {len(shape)} dimensions"):
        check_two_dimensions(shape, "my file")


def test_shapes_are_returned_as_python_integers():
    shape = check_two_dimensions((np.int32(3), np.uint8(4)), "X")
    assert shape == (3, 4)
    assert [type(size) for size in shape] == [int, int]


def test_numbers_that_are_too_large_are_refused():
    message = "^X holds a number that is too large for double precision. Rescale it.$"
    with pytest.raises(OutOfRangeError, match=message), refuse_overflow():
        np.array([1e300]).astype(np.float32)
    with pytest.raises(OutOfRangeError, match=message), refuse_overflow():
        np.array([10**400], dtype=object).astype(float)
    with pytest.raises(KeyError), refuse_overflow():
        raise KeyError
