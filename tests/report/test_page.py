"""The HTML of the page: its security policy, escaping and encoding."""

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from jinja2 import UndefinedError

from mrshc.app import compare_methods, comparison_json_content, fit, make_plan
from mrshc.report import comparison_report, result_report
from mrshc.report import html_page as pages
from mrshc.report.comparison_sections import comparison_content
from mrshc.report.page_data import result_data
from mrshc.report.result_sections import result_content
from tiny import tiny_result, tiny_table

HOSTILE = "</script></title><img src=x onerror=\"alert(1)\"> 'quoted' &lt; {{ 7 * 7 }}"


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


def simple_page(title="A title", lead="A lead"):
    content = {"title": title, "lead": lead, "sections": []}
    return pages.render_page("page.html", content=content, data={"kind": "result"})


def named_table(name):
    """Return a table whose texts all begin with a name."""
    table = tiny_table()
    samples = np.array([f"{name}{i}" for i in range(6)], dtype=object)
    features = np.array([f"{name}{j}" for j in range(5)], dtype=object)
    classes = table.sample_annotations.set_axis(samples).rename(columns={"class": f"{name} class"})
    classes[f"{name} class"] = [f"{name}{value}" for value in "uuuvvv"]
    loci = table.feature_annotations.set_axis(features).rename(columns={"locus": name})
    return replace(
        table,
        sample_names=samples,
        feature_names=features,
        sample_annotations=classes,
        feature_annotations=loci.assign(**{name: name}),
        source=name,
        notes=(name,),
    )


def pages_named(name):
    """Return the pages of a result and of a comparison that hold a name wherever they can."""
    plan = make_plan(
        named_table(name),
        method="mrshc",
        parameters={"n_features_to_select": [2, 3], "n_references": 3, "random_state": 0},
        truth=f"{name} class",
        command=name,
    )
    step = {"step": "Log2()", "description": name, "n_features_before": 5, "n_features_after": 5}
    others = {"preprocessing": [step], "versions": {"mrshc": name, name: name}}
    result = fit(plan)
    result = replace(result, about=result.about | others | {"warnings": [name]})
    about = (
        comparison_json_content(plan, compare_methods(plan, n_clusters=2), n_clusters=2) | others
    )
    about |= {
        "notes": [name],
        "scores": [row | {"method": name + row["method"], name: name} for row in about["scores"]],
        "methods": {name + method: entry for method, entry in about["methods"].items()},
    }
    return {"result": result_report(result), "comparison": comparison_report(about)}


@pytest.fixture(scope="module")
def named_pages():
    return {"plain": pages_named("plain"), "hostile": pages_named(HOSTILE)}


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
        monkeypatch.setattr(pages, "read_asset", changed_asset)
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


@pytest.mark.parametrize("kind", ["result", "comparison"])
def test_the_page_itself_uses_neither_style_nor_event_attributes(named_pages, kind):
    for tag, attributes in Elements(named_pages["plain"][kind]).seen:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag


class Texts(HTMLParser):
    """The elements and attributes of a page that hold a text."""

    def __init__(self, html, text):
        super().__init__()
        self.text, self.found, self.tag = text, set(), None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        self.found |= {f"{tag} {name}" for name, value in attrs if self.text in (value or "")}

    def handle_data(self, data):
        if self.text in data and self.tag != "script":
            self.found.add(self.tag)


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("result", {"p", "dt", "th", "td", "code"}),
        (
            "comparison",
            {"p", "th", "td", "code", "h3", "summary", "div aria-label", "button aria-label"},
        ),
    ],
)
def test_hostile_names_annotations_and_notes_are_escaped_everywhere(named_pages, kind, places):
    plain, hostile = (named_pages[name][kind] for name in ("plain", "hostile"))
    # The same elements with the same attributes: no text has become markup.
    structure, expected = (
        [(tag, list(a)) for tag, a in Elements(h).seen] for h in (hostile, plain)
    )
    assert structure == expected
    assert Texts(hostile, HOSTILE).found == places
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile)[1]
    assert json.loads(data)["samples"]["names"] == [f"{HOSTILE}{i}" for i in range(6)]


def test_a_hostile_title_is_escaped():
    hostile = simple_page(title=HOSTILE, lead=HOSTILE)
    assert [tag for tag, _ in Elements(hostile).seen] == [
        tag for tag, _ in Elements(simple_page()).seen
    ]
    assert Texts(hostile, HOSTILE).found == {"title", "h1", "p"}


@pytest.mark.parametrize(
    ("metric", "linkage", "label"),
    [
        ("correlation", "complete", "1 - correlation"),
        ("correlation", "centroid", "height of merge"),
        ("cityblock", "complete", "height of merge"),
    ],
)
def test_the_scale_of_heights_names_correlations(metric, linkage, label):
    parameters = {"n_features_to_select": 3, "n_references": 3, "random_state": 0}
    parameters |= {"metric": metric, "linkage": linkage}
    result = fit(make_plan(tiny_table(), method="mrshc", parameters=parameters))
    assert result_data(result)["height_label"] == label


def test_no_template_turns_escaping_off():
    for path in Path(pages.__file__).with_name("templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape|Markup", path.read_text(encoding="utf-8")), path


def contents():
    """Return the variables of both templates."""
    parameters = {"n_features_to_select": 2}
    plan = make_plan(tiny_table(), method="mrshc", parameters=parameters, truth="class")
    about = comparison_json_content(plan, compare_methods(plan, n_clusters=2), n_clusters=2)
    result = tiny_result()
    return {
        "result.html": result_content(result, values=result_data(result)["values"]),
        "comparison.html": comparison_content(about),
    }


def test_a_template_with_an_undefined_variable_fails():
    for template, content in contents().items():
        pages.render_page(template, content=content, data={})
        for name in content:
            rest = {key: value for key, value in content.items() if key != name}
            with pytest.raises(UndefinedError, match=f"'{name}' is undefined"):
                pages.render_page(template, content=rest, data={})


def test_a_template_with_an_undefined_attribute_fails():
    content = contents()["comparison.html"] | {"run": SimpleNamespace()}
    with pytest.raises(UndefinedError, match="has no attribute 'reading_notes'"):
        pages.render_page("comparison.html", content=content, data={})


def test_page_is_written_in_utf_8_in_any_locale(tmp_path):
    path = tmp_path / "page.html"
    code = (
        "import pathlib, sys; from mrshc.shell.atomic_files import write_text;"
        " write_text(pathlib.Path(sys.argv[1]), '\\u2026 \\u25b4')"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(path)], env=os.environ | plain, check=True)
    assert path.read_bytes() == "… ▴".encode()
