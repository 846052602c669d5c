"""The report as one HTML file: everything inside, nothing from any network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

_ASSETS = Path(__file__).with_name("assets")
_SCRIPTS = (
    *("tree.js", "values.js", "tables.js", "figures.js"),
    *("result.js", "comparison.js", "main.js"),
)


def page(title: str, *, sections: Sequence[tuple[str, str, str]], lead: str, data: Any) -> str:
    """Return a whole page; sections are (id, heading, content), content is HTML already."""
    from plotly.offline import get_plotlyjs

    links = "".join(f'<li><a href="#{key}">{escape(name)}</a></li>' for key, name, _ in sections)
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-title">'
        f'<h2 id="{key}-title">{escape(name)}</h2>{content}</section>'
        for key, name, content in sections
    )
    plotly, own = _inline(get_plotlyjs()), _inline("\n".join(map(asset, _SCRIPTS)))
    style = _inline(asset("page.css"))
    made = (
        f"Made by mrshc {escape(version('mrshc'))}. This file needs no network and can be mailed."
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(scripts=[plotly, own], style=style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{style}</style>
{_styles_not_wanted(plotly)}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><h1>{escape(title)}</h1>{lead}</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="main">{body}</main>
<footer>{made}</footer>
<div id="tip" role="status" aria-live="off"></div>
<script type="application/json" id="data">{_json(data)}</script>
<script>{plotly}</script>
<script>{own}</script>
</body>
</html>
"""


def policy(*, scripts: Iterable[str], style: str) -> str:
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
            f"script-src {_hashes(scripts)}",
            f"style-src-elem {_hashes(styles)}",
            # Plotly sets attributes on what it draws (how cells of a heat map are smoothed). Text
            # that it makes up as it runs has no hash; attributes can neither run nor load.
            "style-src-attr 'unsafe-inline'",
            # Heat maps are images in data: links, and so is the (empty) icon.
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hashes(texts: Iterable[str]) -> str:
    digests = (b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii") for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _inline(text: str) -> str:
    """Return the text of an element with the line endings that browsers make of others."""
    return re.sub("\r\n?", "\n", text)


def _styles_not_wanted(plotly: str) -> str:
    """Return elements that keep Plotly from adding style sheets when it is loaded.

    It carries those of maps, which no report draws; the policy would refuse them, with an error
    on the console. Each is added unless there is an element of its name, a SHA-256.
    """
    names = dict.fromkeys(re.findall(r'document\.getElementById\("([0-9a-f]{64})"\)', plotly))
    return "".join(f'<template id="{name}"></template>\n' for name in names)


def asset(name: str) -> str:
    """Return a file of the page."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def paragraphs(sentences: Iterable[str], *, kind: str = "") -> str:
    """Return sentences as paragraphs."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "".join(f"{opening}{escape(sentence)}</p>" for sentence in sentences)


def fact_list(facts: Iterable[tuple[str, Any]]) -> str:
    """Return numbers with their names."""
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in facts
    )
    return f'<dl class="facts">{cells}</dl>'


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str) -> str:
    """Return a small table."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_FORMULAS = (
    "Text that begins with =, +, -, @ or a tab gets an apostrophe in front: a spreadsheet would "
    "take it for a formula."
)


def data_table(key: str, what: str) -> str:
    """Return the place of a table that sorts, filters, copies and downloads."""
    return f"""<div class="controls actions">
<label>Filter {what} <input type="search" id="{key}-filter" autocomplete="off"></label>
<button type="button" class="copy" title="{_FORMULAS}">Copy as CSV</button>
<button type="button" class="download" title="{_FORMULAS}">Download CSV</button>
<span class="said" role="status"></span></div>
<div class="scroll" tabindex="0" role="region" aria-label="Table of {what}">
<table><thead></thead><tbody></tbody></table></div>"""


def plot(key: str, label: str) -> str:
    """Return the place of a figure, with words for those who cannot see it."""
    return f'<div class="plot" id="{key}" role="img" aria-label="{escape(label)}"></div>'


def code(text: str) -> str:
    """Return text as it is typed."""
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'
