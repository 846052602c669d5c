"""Render a page as HTML that contains all scripts, styles and data of the page."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrshc.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_ASSETS = Path(__file__).with_name("assets")
# The part of plotly.js with the types of traces that the report contains, scatter, bar and heatmap.
_PLOTLY = "plotly/plotly-cartesian.min.js"
_TEMPLATES = Path(__file__).with_name("templates")
# Scripts in the order of their dependencies: a file may use functions that are defined in the files
# before it.
_SCRIPTS = (
    *("tree.js", "values.js", "tables.js", "figures.js", "branches.js"),
    *("result.js", "comparison.js", "main.js"),
)


def render_page(template: str, *, content: Mapping[str, Any], data: Any) -> str:
    """Return a complete page as HTML."""
    return _environment().get_template(template).render({**content, **_layout_variables(data)})


@cache
def _environment() -> Environment:
    """Return the Jinja environment.

    The environment escapes all text that is inserted into a template, and raises an error for
    undefined variables.
    """
    # Jinja is imported here so that commands that write no report start faster.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _layout_variables(data: Any) -> dict[str, Any]:
    """Return the variables of page.html that every page needs, such as scripts and data."""
    from markupsafe import Markup

    plotly = _normalise_line_endings(read_asset(_PLOTLY))
    own = _normalise_line_endings("\n".join(map(read_asset, _SCRIPTS)))
    style = _normalise_line_endings(read_asset("page.css"))
    return {
        "policy": security_policy(scripts=[plotly, own], style=style),
        "mrshc_version": __version__,
        "unwanted_style_ids": _unwanted_style_ids(plotly),
        # Browsers do not decode entities inside script and style elements, so escaping would change
        # the code. The changed code would not match its hash in the security policy, and the
        # browser would not run it. Escaping is not needed, since the code comes from this package
        # and from Plotly and does not contain data.
        "scripts": [Markup(plotly), Markup(own)],
        "style": Markup(style),
        # For the same reason, JSON inside a script element is not escaped. This is safe, since
        # `_serialise_json` replaces all characters that have a meaning in HTML.
        "json_data": Markup(_serialise_json(data)),
    }


def security_policy(*, scripts: Iterable[str], style: str) -> str:
    """Return the content security policy of a page.

    Names of samples and features may come from files that the user did not write, so all names are
    escaped. The policy is an additional protection, in case a name is nevertheless interpreted as
    markup. Under the policy, the browser runs only the given scripts, which it identifies by their
    SHA-256 hashes. The browser does not load anything from a network.
    """
    # Plotly inserts an empty style element and then adds rules to this element individually. The
    # browser checks the hash of the text of the element, and this text is empty.
    styles = [style, ""]
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_csp_hashes(scripts)}",
            f"style-src-elem {_csp_hashes(styles)}",
            # Plotly sets style attributes on the elements that it draws. The values of these
            # attributes are not known in advance, so their hashes cannot be listed. Under this
            # policy, style attributes can neither run code nor load files.
            "style-src-attr 'unsafe-inline'",
            # The heat maps that Plotly draws and the empty page icon are images with data:
            # addresses.
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _csp_hashes(texts: Iterable[str]) -> str:
    """Return the SHA-256 hashes of strings in the format of a content security policy."""
    digests = (b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii") for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _normalise_line_endings(text: str) -> str:
    """Return text in which all line endings are line feeds.

    Browsers normalise line endings in the same way before they compute the hash of a script.
    """
    return re.sub("\r\n?", "\n", text)


def _unwanted_style_ids(plotly: str) -> list[str]:
    """Return the ids of the style sheets that Plotly must not insert into the page.

    When Plotly is loaded, it inserts style sheets for maps, which no report contains. The security
    policy would block these style sheets, and the browser would log an error. Plotly does not
    insert a style sheet if the page already contains an element with the id of the style sheet.
    Each id is a SHA-256 hash.
    """
    return list(dict.fromkeys(re.findall(r'document\.getElementById\("([0-9a-f]{64})"\)', plotly)))


def read_asset(name: str) -> str:
    """Return the text of a script or a style sheet in the folder assets."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def _serialise_json(data: Any) -> str:
    """Return data as JSON, with characters that have a meaning in HTML replaced by escapes.

    Without the replacement, a name that contains "</script>" would end the script element. The
    characters U+2028 and U+2029 are replaced, too, since older versions of JavaScript treat these
    characters as line breaks.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
