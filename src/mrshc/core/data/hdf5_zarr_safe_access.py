"""Safe access to members of HDF5 and Zarr groups: only values of the file that the user named.

HDF5 can refer to other files by external links, external storage and virtual datasets. A
manipulated file could thus copy values of any file that its reader may open into the results, which
are often passed on; and HDF5 reads values of a file that does not exist as zeros. All such
references are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# HDF5's own limit for nested soft links, beyond which it assumes a cycle.
_MAX_LINKS = 16

_ADVICE = "Read it with the library that wrote it, and write all values into one file"


class UnsafeContentError(ValueError):
    """A file refers to other files or contains code; the message continues its name."""


def is_zarr(node: Any) -> bool:
    """Tell whether an array or a group belongs to Zarr and not to HDF5."""
    return hasattr(node, "store_path")


@contextmanager
def refuse_unsafe_content(name: str) -> Iterator[None]:
    """Turn an UnsafeContentError into a ValueError about X with the name of the file."""
    try:
        yield
    except UnsafeContentError as error:
        raise ValueError(f"X must be in one file, but {name} {error}.") from error


def encoding_type(node: Any) -> str:
    """Return AnnData's type of an array or a group; an empty string if AnnData did not write it."""
    return str(read_attribute(node, "encoding-type") or "")


def read_attribute(node: Any, name: str) -> Any:
    """Return an attribute of an array or a group; bytes as text, None if it does not exist."""
    if name not in node.attrs:
        return None
    # The type is checked before the value is read, because HDF5 may crash on a damaged value.
    if not is_zarr(node) and not has_plain_dtype(node.attrs.get_id(name)):
        raise ValueError(f"the attribute {name!r} of {node.name} is neither numbers nor text")
    value = node.attrs[name]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def has_plain_dtype(node: Any) -> bool:
    """Tell whether the type of an array is numeric or text.

    HDF5 has variable-length vectors and references, too, and ends the process if those are damaged.
    """
    dtype = node.dtype
    if dtype.kind == "O" and not is_zarr(node):
        # h5py represents variable-length text by objects with this entry.
        return (dtype.metadata or {}).get("vlen") in (str, bytes)
    return dtype.kind in "biufcSUTO"


def has_member(group: Any, name: str) -> bool:
    """Tell whether a group has a member of a name; links are not followed."""
    if is_zarr(group):
        return name in group
    return bool(group.id.links.exists(_encode_name(name)))


def get_member(group: Any, name: str) -> Any:
    """Return a member of a group; refuse one whose values are in another file."""
    node = group[name] if is_zarr(group) else _resolve_path(group, name, n_links=_MAX_LINKS)
    refuse_external_storage(node)
    return node


def refuse_external_storage(node: Any) -> None:
    """Refuse an array whose values are in another file or are pickled objects."""
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
    """Refuse an array of Zarr whose values are pickled, since unpickling can run any code."""
    codecs = (*getattr(node, "filters", ()), *getattr(node, "compressors", ()))
    if any("pickle" in str(getattr(codec, "codec_id", "")) for codec in codecs):
        raise UnsafeContentError(
            f"holds {node.name} as pickled objects, which could run any program. Write it again as "
            "numbers or text"
        )


def _resolve_path(group: Any, name: str, *, n_links: int) -> Any:
    """Return the object at a path in an HDF5 file; refuse links to other files.

    Parameters
    ----------
    group : h5py.Group
        Group that a relative path starts from.
    name : str
        The path.
    n_links : int
        Number of soft links that may still be followed.
    """
    # h5py would follow all links of a path at once, external ones included, so that the path is
    # resolved part by part.
    node = group.file["/"] if name.startswith("/") else group
    for part in name.split("/"):
        if part not in ("", "."):
            node = _resolve_child(node, part, n_links=n_links)
    return node


def _resolve_child(node: Any, name: str, *, n_links: int) -> Any:
    """Return a direct member of a group, following soft links; refuse links to other files."""
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
    # The remaining types are external links and those that an application has defined.
    target = ""
    if kind == h5l.TYPE_EXTERNAL:
        target = f" to {links.get_val(key)[0].decode('utf-8', 'replace')!r}"
    raise UnsafeContentError(
        f"refers to another file: {name!r} is an external link{target}. {_ADVICE}"
    )


def _encode_name(name: str) -> bytes:
    # h5py decodes names that are not UTF-8 in the same way.
    return name.encode("utf-8", "surrogateescape")
