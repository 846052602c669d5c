"""Safe access to HDF5 and Zarr groups: values are read only from the file that the user named.

An HDF5 file can refer to other files by external links, external storage and virtual datasets. With
such references, the results could contain the content of private files of the user, and results are
often shared. Moreover, HDF5 may return fill values without an error if the other file does not
exist. Therefore an UnsafeContentError is raised for all such references. It is also raised for
pickled objects in Zarr arrays, because unpickling can run arbitrary code.
"""

from __future__ import annotations

from typing import Any

# Largest number of nested soft links that are followed. HDF5 uses the same limit, and treats a
# longer chain of links as a cycle.
_MAX_LINKS = 16

_ADVICE = "Read it with the library that wrote it, and write all values into one file"


class UnsafeContentError(ValueError):
    """Error raised if a file refers to other files or contains pickled objects.

    The message is the second part of a sentence that begins with the name of the file.
    """


def is_zarr(node: Any) -> bool:
    """Return whether an array or a group is a Zarr object rather than an HDF5 object."""
    return hasattr(node, "store_path")


def encoding_type(node: Any) -> str:
    """Return the AnnData encoding type of an array or a group; "" if there is none."""
    return str(read_attribute(node, "encoding-type") or "")


def read_attribute(node: Any, name: str) -> Any:
    """Return an attribute of an array or a group; None if the attribute does not exist.

    Bytes are decoded to a string. Raise ValueError if an attribute in an HDF5 file is neither
    numeric nor text.
    """
    if name not in node.attrs:
        return None
    # The type is checked before the value is read, because HDF5 may crash when it reads a damaged
    # value of another type.
    if not is_zarr(node) and not has_plain_dtype(node.attrs.get_id(name)):
        raise ValueError(f"the attribute {name!r} of {node.name} is neither numbers nor text")
    value = node.attrs[name]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def has_plain_dtype(node: Any) -> bool:
    """Return whether the type of an array is numeric or text.

    Other HDF5 types, such as variable-length vectors and references, are not safe to read: HDF5 may
    terminate the process if values of these types are damaged. In Zarr arrays, objects count as
    text.
    """
    dtype = node.dtype
    if dtype.kind == "O" and not is_zarr(node):
        # h5py represents variable-length text by the dtype object, with "vlen" in its metadata.
        return (dtype.metadata or {}).get("vlen") in (str, bytes)
    return dtype.kind in "biufcSUTO"


def has_member(group: Any, name: str) -> bool:
    """Return whether a group has the member `name`; links are not followed."""
    if is_zarr(group):
        return name in group
    return bool(group.id.links.exists(_encode_name(name)))


def get_member(group: Any, name: str) -> Any:
    """Return the member `name` of a group.

    Raise UnsafeContentError if the member is behind a link to another file or a cycle of links, or
    if its values are in another file or are pickled objects. Raise KeyError if there is no such
    member.
    """
    node = group[name] if is_zarr(group) else _resolve_path(group, name, n_links=_MAX_LINKS)
    refuse_external_storage(node)
    return node


def refuse_external_storage(node: Any) -> None:
    """Raise UnsafeContentError if the values of an array are not safe to read.

    Values are not safe if they are stored in another file or dataset, or as pickled objects.
    """
    if is_zarr(node):
        _refuse_pickled_objects(node)
    elif files := getattr(node, "external", None):
        raise UnsafeContentError(
            f"keeps the values of {node.name} in another file, {files[0][0]!r}. {_ADVICE}"
        )
    elif getattr(node, "is_virtual", False):
        raise UnsafeContentError(
            f"holds {node.name} as a virtual dataset, whose values are in other datasets or files. "
            f"{_ADVICE}"
        )


def _refuse_pickled_objects(node: Any) -> None:
    """Raise UnsafeContentError if the values of a Zarr array are pickled objects.

    Unpickling can run arbitrary code.
    """
    codecs = (*getattr(node, "filters", ()), *getattr(node, "compressors", ()))
    if any("pickle" in str(getattr(codec, "codec_id", "")) for codec in codecs):
        raise UnsafeContentError(
            f"holds {node.name} as pickled objects, which could run any program. Write it again as "
            "numbers or text"
        )


def _resolve_path(group: Any, name: str, *, n_links: int) -> Any:
    """Return the object at a path in an HDF5 file.

    Raise UnsafeContentError if the path contains a link to another file or a cycle of links, and
    KeyError if the path does not exist.
    """
    # The path is resolved part by part, since h5py would follow all links in a path, including
    # external links.
    node = group.file["/"] if name.startswith("/") else group
    for part in name.split("/"):
        if part not in ("", "."):
            node = _resolve_child(node, part, n_links=n_links)
    return node


def _resolve_child(node: Any, name: str, *, n_links: int) -> Any:
    """Return the direct member `name` of the group `node`, following at most `n_links` soft links.

    Raise UnsafeContentError if the member is a link to another file or part of a cycle of links,
    and KeyError if there is no such member.
    """
    from h5py import h5l

    links, key = getattr(node.id, "links", None), _encode_name(name)
    if links is None or not links.exists(key):
        raise KeyError(f"{node.name} has no member {name!r}")
    kind = links.get_info(key).type
    if kind == h5l.TYPE_HARD:
        return node[name]
    if kind == h5l.TYPE_SOFT and n_links > 0:
        target = links.get_val(key).decode("utf-8", "surrogateescape")
        return _resolve_path(node, target, n_links=n_links - 1)
    if kind == h5l.TYPE_SOFT:
        raise UnsafeContentError(f"holds {name!r} as a link that leads to itself. {_ADVICE}")
    # The remaining types are external links and link types that an application has defined.
    target = ""
    if kind == h5l.TYPE_EXTERNAL:
        target = f" to {links.get_val(key)[0].decode('utf-8', 'replace')!r}"
    raise UnsafeContentError(
        f"refers to another file: {name!r} is an external link{target}. {_ADVICE}"
    )


def _encode_name(name: str) -> bytes:
    # h5py decodes names that are not valid UTF-8 with the same error handler.
    return name.encode("utf-8", "surrogateescape")
