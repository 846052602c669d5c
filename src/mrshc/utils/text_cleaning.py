"""Clean text from files and libraries, and guard text that a spreadsheet may read as a formula."""

from __future__ import annotations

import re

# Control characters and separators, which would break lines, control a terminal or make XML
# invalid: C0, DEL, C1, the line and paragraph separators, and code points that XML 1.0 excludes.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")
# Marks that change the direction of text: a name must not reorder the text around it.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
# Halves of UTF-16 pairs, by which Python represents bytes that it cannot decode: no encoding can
# write them.
_SURROGATES = re.compile("[\ud800-\udfff]")
# First characters by which spreadsheets recognise a formula, after any number of guards. Guarded
# text is guarded again, so that removing one guard always restores the original.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
# Spreadsheets read a cell with a leading apostrophe as text.
_GUARD = "'"


def clean_text(text: str) -> str:
    r"""Return a text without characters that are unsafe on a terminal, in XML or in a table.

    Control characters become blanks, marks of text direction are dropped, and bytes that could not
    be decoded become U+FFFD.

    Parameters
    ----------
    text : str
        Name, title or message from a file, a library or the operating system.

    Returns
    -------
    str
        The text without these characters, and without leading and trailing blanks.

    Examples
    --------
    >>> from mrshc.utils.text_cleaning import clean_text
    >>> clean_text("gene\x1b[31m\u202e7\n")
    'gene [31m7'
    """
    # By far the most frequent case, and much faster than three substitutions.
    if text.isascii() and text.isprintable():
        return text.strip()
    text = _DIRECTIONS.sub("", _CONTROLS.sub(" ", text))
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).strip()


def guard_formula(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula; `unguard_formula` reverses it.

    An apostrophe is put in front of texts that begin with ``=``, ``+``, ``-``, ``@``, a tab or a
    carriage return, unless they are a number or a single character, such as a sign that is used as
    a category.

    Parameters
    ----------
    text : str
        Text of a cell.

    Returns
    -------
    str
        The text, guarded if necessary.

    Examples
    --------
    >>> from mrshc.utils.text_cleaning import guard_formula
    >>> [guard_formula(text) for text in ("=1+1", "-", "-1.5", "TP53")]
    ["'=1+1", '-', '-1.5', 'TP53']
    """
    return _GUARD + text if _is_formula(text) else text


def unguard_formula(text: str) -> str:
    """Return the original of a text that `guard_formula` returned.

    Parameters
    ----------
    text : str
        Text of a cell.

    Returns
    -------
    str
        The text without the guard, if it has one.

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
