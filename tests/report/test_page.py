"""The page as a text: the policy that it declares, and how it reaches a file."""

import os
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from mrshc.report import html_page as pages


class Elements(HTMLParser):
    """The policy of a page, and the text of its scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.policies, self.texts, self.open = [], {"script": [], "style": []}, None
        self.seen = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.seen.append((tag, attributes))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            assert not any(self.texts.values()), "the policy must come first"
            self.policies.append(attributes["content"])
        if tag in self.texts:
            # The browser runs no data: they need no hash.
            self.open = None if attributes.get("type") == "application/json" else tag
            if self.open:
                self.texts[tag].append("")

    def handle_data(self, data):
        if self.open:
            self.texts[self.open][-1] += data

    def handle_endtag(self, tag):
        if tag in self.texts:
            self.open = None


def simple_page():
    sections = [("one", "One", "<p>Content</p>")]
    return pages.page("A title", sections=sections, lead="", data={"kind": "result"})


def directives(html):
    (policy,) = Elements(html).policies
    parts = (part.split() for part in policy.split(";"))
    return {name: set(values) for name, *values in parts}


def hashes(texts):
    return {f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts}


def changed_asset(name):
    return f"/* another {name} with ünicode */\r\n"


@pytest.mark.parametrize("assets", ["as they are", "changed"])
def test_the_policy_allows_the_scripts_and_the_style_of_the_page_only(assets, monkeypatch):
    if assets == "changed":
        monkeypatch.setattr(pages, "asset", changed_asset)
    html = simple_page()
    assert ("another main.js" in html) == (assets == "changed")
    found, allowed = Elements(html), directives(html)
    # The parser of a browser turns each line ending into \n before it hashes.
    texts = {tag: [re.sub("\r\n?", "\n", t) for t in found.texts[tag]] for tag in found.texts}
    assert allowed["script-src"] == hashes(texts["script"])
    # Plotly makes an element without content, and fills it rule by rule.
    assert allowed["style-src-elem"] == hashes([*texts["style"], ""])


def test_the_policy_allows_no_network_and_no_other_code():
    allowed = directives(simple_page())
    assert allowed["default-src"] == {"'none'"}
    assert allowed["base-uri"] == allowed["form-action"] == {"'none'"}
    assert allowed["img-src"] == {"data:"}
    for name, values in allowed.items():
        assert "'unsafe-eval'" not in values
        assert "'unsafe-inline'" not in values or name == "style-src-attr"
        assert not any(value.startswith(("http", "*", "blob", "'self'")) for value in values)


def test_the_page_itself_uses_neither_style_nor_event_attributes():
    for tag, attributes in Elements(simple_page()).seen:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag


def test_a_page_is_written_in_utf_8_whatever_the_locale(tmp_path):
    path = tmp_path / "page.html"
    code = (
        "import pathlib, sys; from mrshc.utils.atomic_files import write_text;"
        " write_text(pathlib.Path(sys.argv[1]), '\\u2026 \\u25b4')"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(path)], env=os.environ | plain, check=True)
    assert path.read_bytes() == "… ▴".encode()
