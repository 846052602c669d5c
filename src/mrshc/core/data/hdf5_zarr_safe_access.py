"""Members of groups in HDF5 and Zarr, taken from the file that was named and from no other.

HDF5 can refer to other files: by links, by storage outside of the file, by virtual datasets.
Results are made to be passed on, and a prepared file could bring the values of any file that its
reader may open into them; and what is missing there is read as zeros. All such references are
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# As many as HDF5 itself follows before it takes them for a circle.
_MOST_LINKS = 16

_ADVICE = "Read it with the library that wrote it, and write all values into one file"


class OutsideError(ValueError):
    """A file that refers to others: the rest of a sentence that begins with its name."""


def is_zarr(node: Any) -> bool:
    """Tell whether an array or a group is of Zarr, not of HDF5."""
    return hasattr(node, "store_path")


@contextmanager
def in_one_file(name: str) -> Iterator[None]:
    """Refuse references to other files in a sentence about X, by its name."""
    try:
        yield
    except OutsideError as error:
        raise ValueError(f"X must be in one file, but {name} {error}.") from error


def encoding_of(node: Any) -> str:
    """Return what AnnData says that an array or a group is; nothing for what others wrote."""
    return str(attribute(node, "encoding-type") or "")


def attribute(node: Any, name: str) -> Any:
    """Return an attribute of an array or a group, None if it has none; bytes as text."""
    if name not in node.attrs:
        return None
    if not is_zarr(node) and not is_plain(node.attrs.get_id(name)):
        raise ValueError(f"the attribute {name!r} of {node.name} is neither numbers nor text")
    value = node.attrs[name]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def is_plain(node: Any) -> bool:
    """Tell whether an array holds numbers or text, by its type.

    HDF5 has vectors and references as values too, and ends the process if those are damaged.
    """
    dtype = node.dtype
    if dtype.kind == "O" and not is_zarr(node):
        return (dtype.metadata or {}).get("vlen") in (str, bytes)
    return dtype.kind in "biufcSUTO"


def has_member(group: Any, name: str) -> bool:
    """Tell whether a group has a member; a link is not followed for that."""
    if is_zarr(group):
        return name in group
    return bool(group.id.links.exists(_bytes(name)))


def member(group: Any, name: str) -> Any:
    """Return a member of a group; refuse one that is not in the same file."""
    node = group[name] if is_zarr(group) else _followed(group, name, n_links=_MOST_LINKS)
    refuse_outside(node)
    return node


def refuse_outside(node: Any) -> None:
    """Refuse a dataset whose values are not in its own file."""
    if is_zarr(node):
        _refuse_pickles(node)
    elif outside := getattr(node, "external", None):
        raise OutsideError(
            f"keeps the values of {node.name} in another file, {outside[0][0]!r}. {_ADVICE}"
        )
    elif getattr(node, "is_virtual", False):
        raise OutsideError(
            f"holds {node.name} as a virtual dataset, whose values are in other datasets or files. "
            f"{_ADVICE}"
        )


def _refuse_pickles(node: Any) -> None:
    """Refuse an array of Zarr that would run a program when it is read."""
    codecs = (*getattr(node, "filters", ()), *getattr(node, "compressors", ()))
    if any("pickle" in str(getattr(codec, "codec_id", "")) for codec in codecs):
        raise OutsideError(
            f"holds {node.name} as pickled objects, which could run any program. Write it again as "
            "numbers or text"
        )


def _followed(group: Any, name: str, *, n_links: int) -> Any:
    """Return what a path leads to, part by part, so that no link is followed unseen."""
    node = group.file["/"] if name.startswith("/") else group
    for part in name.split("/"):
        if part not in ("", "."):
            node = _child(node, part, n_links=n_links)
    return node


def _child(node: Any, name: str, *, n_links: int) -> Any:
    from h5py import h5l

    links, key = getattr(node.id, "links", None), _bytes(name)
    if links is None or not links.exists(key):
        raise KeyError(f"{node.name} has no member {name!r}")
    kind = links.get_info(key).type
    if kind == h5l.TYPE_HARD:
        return node[name]
    if kind == h5l.TYPE_SOFT and n_links > 0:
        target = links.get_val(key).decode("utf-8", "surrogateescape")
        return _followed(node, target, n_links=n_links - 1)
    if kind == h5l.TYPE_SOFT:
        raise OutsideError(f"holds {name!r} as a link that leads to itself. {_ADVICE}")
    where = ""
    if kind == h5l.TYPE_EXTERNAL:
        where = f" to {links.get_val(key)[0].decode('utf-8', 'replace')!r}"
    raise OutsideError(f"refers to another file: {name!r} is an external link{where}. {_ADVICE}")


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
