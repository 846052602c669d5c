"""Templates of web addresses, in which the names of genes are inserted."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# Names that a template may contain in braces. The report replaces them.
PLACEHOLDERS = ("gene", "feature")
_BRACES = re.compile(r"\{([^{}]*)\}")
# Characters that an address must not contain: control characters, blanks, and characters that have
# a meaning in HTML. Any other character is allowed, also those of international addresses.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029<>\"'`\\^|]")


def find_template_flaw(template: str) -> str | None:
    """Return why a text is not a template of a web address; None if it is one.

    A template is an address that begins with http:// or https:// and contains {gene} or {feature},
    but not in the name of the host: names of genes come from the data, and must not choose the host
    that a link leads to.
    """
    if found := _FORBIDDEN.search(template):
        return f"it contains {found[0]!r}"
    names = _BRACES.findall(template)
    if unknown := [name for name in names if name not in PLACEHOLDERS]:
        return f"it contains the unknown placeholder {{{unknown[0]}}}"
    if not names:
        return "it contains no placeholder"
    if set("{}") & set(_BRACES.sub("", template)):
        return "it contains a brace that is not part of a placeholder"
    try:
        parts = urlsplit(template)
        has_host = bool(parts.hostname)
        _ = parts.port  # raises ValueError if the port is not a number
    except ValueError:
        return "it is not a valid address"
    if parts.scheme not in ("http", "https"):
        return "it does not begin with http:// or https://"
    if not has_host or "@" in parts.netloc:
        return "it has no host, or a user name before the host"
    if "{" in parts.netloc:
        return "it has a placeholder in the name of the host"
    return None
