"""Members of HDF5 groups are found without leaving the file."""

from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from mrshc.core.data.hdf5_zarr_safe_access import (
    UnsafeContentError,
    get_member,
    has_member,
    has_plain_dtype,
    read_attribute,
)


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["a/X"] = np.arange(3)
        yield file


def test_members_are_found_by_relative_and_absolute_paths(file):
    for name in ("X", "./X", "/a/X", "/a//X"):
        np.testing.assert_array_equal(get_member(file["a"], name)[:], np.arange(3))
    for name, parent in (("Y", "/a"), ("X/Y", "/a/X"), ("/b/X", "/")):
        with pytest.raises(KeyError, match=f"{parent} has no member"):
            get_member(file["a"], name)


def test_sixteen_soft_links_are_followed(file):
    target = "/a/X"
    for i in range(1, 18):
        file[f"link{i}"] = h5py.SoftLink(target)
        target = f"/link{i}"
    np.testing.assert_array_equal(get_member(file, "link16")[:], np.arange(3))
    with pytest.raises(UnsafeContentError, match="a link that leads to itself"):
        get_member(file, "link17")
    file["broken"] = h5py.SoftLink("/nowhere")
    assert has_member(file, "broken")
    assert not has_member(file, "nowhere")


def test_numbers_and_text_are_plain_and_other_objects_are_not(file):
    for dtype, is_plain in (
        (float, True),
        ("S3", True),
        (bool, True),
        (h5py.string_dtype(), True),
        (h5py.vlen_dtype(np.int32), False),
        (h5py.ref_dtype, False),
        ([("a", float)], False),
    ):
        dataset = file.create_dataset(None, (2,), dtype)
        assert has_plain_dtype(dataset) is is_plain
    assert has_plain_dtype(SimpleNamespace(dtype=np.dtype(object), store_path="X.zarr"))


def test_attributes_are_text_numbers_or_refused(file):
    file.attrs["text"], file.attrs["bytes"], file.attrs["number"] = "a", np.bytes_(b"b"), 3
    assert [read_attribute(file, name) for name in ("text", "bytes", "number")] == ["a", "b", 3]
    assert read_attribute(file, "other") is None
    file.attrs["reference"] = file["a"].ref
    with pytest.raises(ValueError, match="'reference' of / is neither numbers nor text"):
        read_attribute(file, "reference")
