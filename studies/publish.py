"""Render committed results of studies, and insert their tables into the pages of the project.

    python studies/publish.py NAME ...

Writes studies/NAME.md, and replaces the text between `<!-- NAME -->` and `<!-- end of NAME -->` in
README.md and in the pages below docs/. `make study NAME=table1` runs the study first.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from mrshc.shell.atomic_files import write_text
from mrshc.study import render_brief, render_study

ROOT = Path(__file__).resolve().parents[1]


def replace_section(text: str, name: str, content: str) -> str:
    """Return a page with the section between two marks replaced; unchanged if it has no marks.

    Parameters
    ----------
    text : str
        The page.
    name : str
        Name of the section in its marks, which are comments of HTML.
    content : str
        New content of the section, such as a table.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    # A function as replacement, since backslashes in a plain replacement have a meaning.
    return pattern.sub(lambda _: f"{begin}\n\n{content}\n{end}", text)


def update_pages(name: str, table: str, *, pages: list[Path], pictures: Path) -> None:
    """Insert a table into every page that has its marks.

    Parameters
    ----------
    name : str
        Name of the section.
    table : str
        Markdown with links to pictures by their file names.
    pages : list of Path
        Pages to update.
    pictures : Path
        Folder of the pictures, to which links are made relative from each page.
    """
    for page in pages:
        text = page.read_text(encoding="utf-8")
        linked = table.replace("](", f"]({os.path.relpath(pictures, page.parent)}/")
        new = replace_section(text, name, linked)
        # Pages without changes keep their time stamp.
        if new != text:
            write_text(page, new)


def publish_study(name: str, *, root: Path = ROOT) -> None:
    """Render the results of a study, and insert them into the pages that have its marks."""
    results = root / "studies"
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    update_pages(name, render_study(name, out=results), pages=pages, pictures=results)
    brief = render_brief(name, out=results)
    if brief is not None:
        update_pages(f"{name} in brief", brief, pages=pages, pictures=results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="name of a study, such as table1")
    for name in parser.parse_args().names:
        publish_study(name)
