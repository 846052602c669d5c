"""The pages list every format and every picture of the registries."""

import re
from pathlib import Path

import pytest

from mrshc.io.formats import known_formats
from mrshc.plotting.result_pictures import PICTURES

pytestmark = pytest.mark.documentation

DOCS = Path(__file__).parents[2] / "docs" / "guide"


def test_the_documentation_lists_every_picture():
    page = (DOCS / "result-folder.md").read_text(encoding="utf-8")
    for name in PICTURES:
        assert f"`{name}." in page


def test_the_documentation_lists_the_formats_of_the_registry():
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)[1:]
    assert rows == [
        (
            ", ".join(known.labels),
            ", ".join(f"`{suffix}`" for suffix in known.suffixes),
            f"`{known.extra}`" if known.extra else "",
            "yes" if known.open_matrix else "",
        )
        for known in known_formats()
    ]
