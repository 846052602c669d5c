"""The source of the site: complete, reachable, and without broken links. `make docs` builds it."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import mrshc

pytestmark = pytest.mark.documentation

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "gallery"
# Pages that `make docs` generates, and which are not committed.
GENERATED = [DOCS / "gallery", DOCS / "api" / "generated"]
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not any(page.is_relative_to(folder) for folder in GENERATED)
)
LINKED = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
MODULES = ("datasets", "exports", "io", "metrics", "pl", "plotting", "preprocessing", "tl")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
AUTOSUMMARY = re.compile(
    r"currentmodule:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   \S+\n)+)"
)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# Addresses of doi.org may contain a pair of parentheses.
LINK = re.compile(r"\]\(((?:[^()\s]|\([^()\s]*\))+)\)")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def public_names(module):
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def listed_pages(page: Path) -> Iterator[Path]:
    for toctree in TOCTREE.findall(read(page)):
        for line in toctree.splitlines():
            if line and not line.startswith(":"):
                # An entry may have a title: "Title <page>".
                name = re.sub(r".*<(.*)>", r"\1", line)
                yield (page.parent / f"{name}.md").resolve()


def slugs(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as code hosts and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def links(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", read(page)))


@pytest.mark.parametrize("name", ["mrshc", *(f"mrshc.{name}" for name in MODULES)])
def test_every_public_name_is_in_the_api_reference(name):
    documented = [
        entry
        for page in (DOCS / "api").glob("*.md")
        for module, entries in AUTOSUMMARY.findall(read(page))
        if module == name
        for entry in entries.split()
    ]
    assert len(documented) == len(set(documented))
    assert set(public_names(importlib.import_module(name))) <= set(documented)


def test_the_modules_are_the_public_ones():
    # These two have no names of their own: those that are public are imported from `mrshc`.
    assert set(mrshc._SUBMODULES) == {*MODULES, "comparison", "estimators"}


def test_every_page_is_in_one_toctree():
    listed = [target for page in PAGES for target in listed_pages(page)]
    assert len(listed) == len(set(listed))
    assert {*PAGES, DOCS / "gallery" / "index.md"} == {*listed, DOCS / "index.md"}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    for link in links(page):
        target, _, anchor = link.partition("#")
        if urlsplit(link).scheme:
            # There is no network in the tests.
            assert urlsplit(link).scheme in {"http", "https"}, link
            assert "." in urlsplit(link).netloc, link
            continue
        path = (page.parent / target).resolve() if target else page
        if path == DOCS / "gallery" / "index.rst":
            path = GALLERY / "GALLERY_HEADER.rst"
        assert path.exists(), link
        assert not anchor or anchor in slugs(path), link


def test_titles_of_pages_differ():
    titles = [re.search(r"^# (.*)$", read(page), re.MULTILINE) for page in PAGES]
    # The home page and the changes are included from files of the root.
    assert [p.stem for p, title in zip(PAGES, titles, strict=True) if not title] == [
        "changes",
        "index",
    ]
    texts = [title[1] for title in titles if title]
    assert len(texts) == len(set(texts))
