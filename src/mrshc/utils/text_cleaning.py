"""Text from outside: clean it where it enters, and guard it where a spreadsheet may read it."""

from __future__ import annotations

import re

# Separators and controls, which would break lines, drive a terminal or make XML invalid: C0, DEL,
# C1, the line and paragraph separators, and code points that XML 1.0 excludes.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")
# Marks that change the direction of the text around them: a name must not reorder its neighbours.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
# Halves of UTF-16 pairs, by which Python represents bytes that it cannot decode: no encoding can
# write them.
_SURROGATES = re.compile("[\ud800-\udfff]")
# The beginnings by which spreadsheets recognise a formula, behind any number of guards.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARD = "'"


def clean_text(text: str) -> str:
    r"""Return a text without characters that are unsafe on a terminal, in XML or in a table.

    Control characters become blanks, marks of text direction are dropped, and bytes that could not
    be decoded become U+FFFD.

    Parameters
    ----------
    text : str
        A name, a title or a message from a file, a library or the operating system.

    Returns
    -------
    str
        The same text if it holds none of these; leading and trailing blanks are removed.

    Examples
    --------
    >>> from mrshc.utils.text_cleaning import clean_text
    >>> clean_text("gene\x1b[31m\u202e7\n")
    'gene [31m7'
    """
    if text.isascii() and text.isprintable():  # by far the most frequent case
        return text.strip()
    text = _DIRECTIONS.sub("", _CONTROLS.sub(" ", text))
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).strip()


def guard_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula; `unguard_formula` undoes it.

    An apostrophe is put in front of texts that begin with ``=``, ``+``, ``-`` or ``@``, unless they
    are a single character, such as a plus or minus sign as a level, or a number.

    Examples
    --------
    >>> from mrshc.utils.text_cleaning import guard_formula
    >>> [guard_formula(text) for text in ("=1+1", "-", "-1.5", "TP53")]
    ["'=1+1", '-', '-1.5', 'TP53']
    """
    return _GUARD + text if _is_formula(text) else text


def unguard_formula(text: str) -> str:
    """Return the text that `guard_formula` was given.

    Examples
    --------
    >>> from mrshc.utils.text_cleaning import guard_formula, unguard_formula
    >>> unguard_formula(guard_formula("'=1+1"))
    "'=1+1"
    """
    inner = text.removeprefix(_GUARD)
    return inner if inner != text and _is_formula(inner) else text


def _is_formula(text: str) -> bool:
    if len(text) < 2 or not _FORMULA.match(text):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
