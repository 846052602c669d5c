"""The report as one HTML file: everything inside, nothing from any network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_ASSETS = Path(__file__).with_name("assets")
_TEMPLATES = Path(__file__).with_name("templates")
_SCRIPTS = (
    *("tree.js", "values.js", "tables.js", "figures.js"),
    *("result.js", "comparison.js", "main.js"),
)


def render_page(template: str, *, content: Mapping[str, Any], data: Any) -> str:
    """Return a whole page as HTML.

    Parameters
    ----------
    template : str
        Name of a file in templates/.
    content : mapping of str to object
        Variables of the template, among them `title` and `lead`. Texts are escaped there. A
        variable that the template uses must be given.
    data : object
        What the scripts of the page draw, as JSON holds it.

    Returns
    -------
    html : str
        The page, with its scripts, style sheet and data inside.

    Raises
    ------
    jinja2.UndefinedError
        If the template uses a variable that is not in `content`.
    """
    return _environment().get_template(template).render({**content, **_layout_variables(data)})


@cache
def _environment() -> Environment:
    """Return the environment of the templates: it escapes every text and refuses unknown names."""
    # Imported late, as Plotly is: commands that make no report start without them.
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
    """Return the variables of page.html that all pages share."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    plotly, own = _normalise_line_endings(get_plotlyjs()), _normalise_line_endings("\n".join(map(read_asset, _SCRIPTS)))
    style = _normalise_line_endings(read_asset("page.css"))
    return {
        "policy": security_policy(scripts=[plotly, own], style=style),
        "mrshc_version": version("mrshc"),
        "unwanted_style_ids": _unwanted_style_ids(plotly),
        # Browsers take the text of script and style as it is. Escaping would change the code, and
        # the policy would refuse it, since its hash is that of the text here. All of it comes
        # from this package and from Plotly; none from the data.
        "scripts": [Markup(plotly), Markup(own)],
        "style": Markup(style),
        # Browsers do not undo escaping inside script either, and the page could not parse the
        # JSON. `_serialise_json` has replaced all letters that mean something in HTML.
        "json_data": Markup(_serialise_json(data)),
    }


def security_policy(*, scripts: Iterable[str], style: str) -> str:
    """Return the content security policy of a page: what the browser lets it do.

    Names of samples and features come from files of others. They are escaped; should one slip
    through as markup nevertheless, the browser runs nothing but the scripts that the page was made
    with, known by their SHA-256, and loads nothing from any network.
    """
    # Plotly makes a <style> without content and adds its rules one by one: no text, but a hash.
    styles = [style, ""]
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_csp_hashes(scripts)}",
            f"style-src-elem {_csp_hashes(styles)}",
            # Plotly sets attributes on what it draws (how cells of a heat map are smoothed). Text
            # that it makes up as it runs has no hash; attributes can neither run nor load.
            "style-src-attr 'unsafe-inline'",
            # Heat maps are images in data: links, and so is the (empty) icon.
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _csp_hashes(texts: Iterable[str]) -> str:
    digests = (b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii") for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _normalise_line_endings(text: str) -> str:
    """Return the text of an element with the line endings that browsers make of others."""
    return re.sub("\r\n?", "\n", text)


def _unwanted_style_ids(plotly: str) -> list[str]:
    """Return ids of elements that keep Plotly from adding style sheets when it is loaded.

    It carries those of maps, which no report draws; the policy would refuse them, with an error
    on the console. Each is added unless there is an element of its name, a SHA-256.
    """
    return list(dict.fromkeys(re.findall(r'document\.getElementById\("([0-9a-f]{64})"\)', plotly)))


def read_asset(name: str) -> str:
    """Return a file of the page."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def _serialise_json(data: Any) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
