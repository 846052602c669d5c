"""The report as one HTML file: everything inside, nothing from any network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
    own, style = "\n".join(map(asset, _SCRIPTS)), asset("page.css")
    made = (
        f"Made by mrshc {escape(version('mrshc'))}. This file needs no network and can be mailed."
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><h1>{escape(title)}</h1>{lead}</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="main">{body}</main>
<footer>{made}</footer>
<div id="tip" role="status" aria-live="off"></div>
<script type="application/json" id="data">{_json(data)}</script>
<script>{get_plotlyjs()}</script>
<script>
{own}</script>
</body>
</html>
"""


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
