"""Configuration of the documentation site, which `make docs` builds without network access."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import picture_scraper  # noqa: E402 - a module of the folder that was added to the path
from sphinx_gallery.sorting import FileNameSortKey  # noqa: E402

from mrshc import __version__  # noqa: E402

project = "mrshc"
author = "The mrshc developers"
project_copyright = "The mrshc developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_members",
    "command_reference",
    "mathml",
]
root_doc = "index"
exclude_patterns = ["_extensions", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]
# In docstrings, names of parameters and values are in single backquotes.
default_role = "literal"
# Quotation marks are part of the values of parameters.
smartquotes = False
# Blocks of code without a language are output or commands.
highlight_language = "none"
nitpicky = True
# Objects of other packages cannot be looked up without network access.
nitpick_ignore_regex = [
    (r"py:.*", r"(anndata|joblib|matplotlib|numpy|pandas|scipy|sklearn)\..*"),
]
suppress_warnings = [
    # The configuration of the gallery contains functions, which Sphinx cannot store.
    "config.cache",
]

# Markdown pages. Headings have the anchors that code hosts give them, so links work in both places.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# API reference
autosummary_generate = True
# Signatures with annotations are too long to read; the types are in the section Parameters.
autodoc_typehints = "none"
# Longer signatures have one line for each parameter.
python_maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
# The template of classes lists the members.
numpydoc_show_class_members = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "within_subsection_order": FileNameSortKey,
    "image_scrapers": (picture_scraper.scrape_last_value,),
    "reset_modules": (),
    # Tables and summaries are shown; the text of an Axes object would be of no use.
    "capture_repr": ("_repr_html_",),
    "ignore_repr_types": r"matplotlib|mrshc\.plotting",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "backreferences_dir": None,
    # A warning in an example is an error, as in the tests.
    "abort_on_example_error": True,
}
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
warnings.simplefilter("error", UserWarning)

# Pages of HTML
html_theme = "pydata_sphinx_theme"
html_title = f"mrshc {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "mrshc"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_version_warning_banner": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# The theme needs the mode in which pages are shown first.
html_context = {"default_mode": "auto"}
# The home page and the list of changes need no navigation on the left.
html_sidebars = {"index": [], "changes": []}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
