"""Sections of README.md and of the pages below docs/ that are made from results."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def replace_section(text: str, name: str, content: str) -> str:
    """Return a page with new content between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    # A function as replacement, since backslashes in a plain replacement have a meaning.
    return pattern.sub(lambda _: f"{begin}\n\n{content}\n{end}", text)


def update_pages(name: str, content: str, *, root: Path = ROOT) -> None:
    """Insert Markdown, with links relative to studies/, into every page that has its marks."""
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        folder = os.path.relpath(root / "studies", page.parent)
        new = replace_section(text, name, content.replace("](", f"]({folder}/"))
        if new != text:  # pages without changes keep their time stamp
            page.write_text(new, encoding="utf-8")
