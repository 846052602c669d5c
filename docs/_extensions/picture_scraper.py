"""Pictures of the gallery: the last value of a block of code, as a notebook shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def scrape_last_value(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the picture of the last value of a block; return the reStructuredText that shows it.

    The plots of mrshc do not use pyplot, so the scraper of sphinx-gallery would not find them.

    Parameters
    ----------
    block : tuple
        The block of code.
    block_vars : dict
        Variables of sphinx-gallery: names of the script, and iterator of paths for pictures.
    gallery_conf : dict
        Configuration of the gallery.
    """
    # Sphinx-gallery stores the value of the last expression of a block under this name.
    names = block_vars["example_globals"]
    value = names.get("___")
    if not hasattr(value, "_repr_png_"):
        return ""
    # The value stays until the next expression, and would be shown again after an assignment.
    names["___"] = None
    path = Path(next(block_vars["image_path_iterator"]))
    content, _ = value._repr_png_()
    path.write_bytes(content)
    return str(figure_rst([str(path)], gallery_conf["src_dir"]))
