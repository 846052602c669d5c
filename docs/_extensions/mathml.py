"""Formulas as MathML, which browsers show without a script.

The converter is that of docutils, so pages need neither a network connection nor LaTeX.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
_WORD_JOINER = "\N{WORD JOINER}"
# Without \left and \right, docutils would take the second bar of a norm for an operator of its
# own, and its index would be too low.
_NORM = re.compile(r"\\\|(.+?)\\\|")


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula inside a line; the line is not broken before a comma after the formula."""
    translator.body.append(f"{_to_mathml(node)}{_WORD_JOINER}")
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, which can be scrolled if it is too wide."""
    translator.body.append(f'<div class="formula">{_to_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _to_mathml(node: nodes.Element, *, as_block: bool = False) -> str:
    """Return a formula as MathML; a formula that cannot be converted is a warning of the build."""
    formula = _NORM.sub(r"\\left\\|\1\\right\\|", node.astext())
    try:
        return str(tex2mathml(formula, as_block=as_block))
    except MathError as error:
        logger.warning("formula %r: %s", formula, error, location=node)
        return ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
