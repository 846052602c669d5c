"""Render committed results of studies, and put their tables on the pages of the project.

    python studies/publish.py NAME ...

Writes studies/NAME.md, and replaces the table between the marks of the study in README.md and
docs/*.md. `make study NAME=table1` runs the study first.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from mrshc.study import render_brief, render_study
from mrshc.utils.atomic_files import write_text

ROOT = Path(__file__).resolve().parents[1]


def published(text: str, name: str, table: str) -> str:
    """Return a page with the table between its two marks replaced; as it was without marks."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n\n{table}\n{end}", text)


def publish(name: str, table: str, *, pages: list[Path], pictures: Path) -> None:
    """Put a table between its marks on every page that has them, its pictures linked from there."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        linked = table.replace("](", f"]({os.path.relpath(pictures, page.parent)}/")
        new = published(text, name, linked)
        if new != text:
            write_text(page, new)


def publish_study(name: str, *, root: Path = ROOT) -> None:
    """Render the results of a study, and show them on the pages that have a place for them."""
    results = root / "studies"
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    publish(name, render_study(name, out=results), pages=pages, pictures=results)
    brief = render_brief(name, out=results)
    if brief is not None:
        publish(f"{name} in brief", brief, pages=pages, pictures=results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="a study, such as table1")
    for name in parser.parse_args().names:
        publish_study(name)
