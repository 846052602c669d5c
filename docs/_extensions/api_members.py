"""Docstrings and members of the API reference.

Members that are inherited from other packages are left out, since their docstrings refer to pages
that are not part of this site. Names such as `n_features_in_` in the shape of an array are escaped,
since reStructuredText would take the last character for a link.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# Methods of scikit-learn that users of the estimators need.
_SHOWN_METHODS = {"fit_predict", "get_support"}
_NAME_IN_SHAPE = re.compile(r"(?<=[(, ])(\w+)_(?=[,)])")


def skip_members_of_others(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Return True for members that are defined in another package, and None for all others."""
    function = getattr(member, "fget", member)
    module = getattr(function, "__module__", None) or "mrshc"
    return None if module.startswith("mrshc") or name in _SHOWN_METHODS else True


def escape_names_in_shapes(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Escape the last character of fitted attributes in the lines that state a shape."""
    for i, line in enumerate(lines):
        if "of shape (" in line:
            lines[i] = _NAME_IN_SHAPE.sub(r"\1\\_", line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions to autodoc; numpydoc reads the docstrings afterwards."""
    app.connect("autodoc-skip-member", skip_members_of_others)
    app.connect("autodoc-process-docstring", escape_names_in_shapes, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
