"""Remove unsafe characters from text, and protect text that spreadsheets may read as a formula.

Text is protected by putting an apostrophe, which is called the guard, in front of it.
"""

from __future__ import annotations

import re

# Control characters and separators that would break lines, control a terminal or make XML invalid.
# These are the C0 and C1 control characters, DEL, the line and paragraph separators, and two code
# points that XML 1.0 does not allow.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]+")
# Characters that change the direction of text. With them, a name could change the order of the text
# that surrounds it.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
# Surrogates (halves of UTF-16 pairs). Python uses surrogates to represent bytes that it cannot
# decode. Surrogates cannot be encoded as UTF-8.
_SURROGATES = re.compile("[\ud800-\udfff]")
# Any number of apostrophes, followed by a character with which a formula starts in a spreadsheet.
# Text that already has an apostrophe gets another one, so that removing one apostrophe always
# restores the original text.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
# Spreadsheets treat an entry with a leading apostrophe as text.
_GUARD = "'"


def clean_text(text: str) -> str:
    r"""Return text without characters that are unsafe on a terminal, in XML or in a table.

    Each sequence of control characters is replaced by a blank. Characters that change the direction
    of text are removed. Bytes that Python could not decode are replaced by U+FFFD, the replacement
    character.
    """
    # Most strings are printable ASCII. For these, this test is much faster than three
    # substitutions.
    if text.isascii() and text.isprintable():
        return text.strip()
    text = _DIRECTIONS.sub("", _CONTROLS.sub(" ", text))
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).strip()


def guard_formula(text: str) -> str:
    """Return text in a form that spreadsheets do not interpret as a formula.

    An apostrophe is put in front of the text if the text begins with ``=``, ``+``, ``-``, ``@``, a
    tab or a carriage return, or with apostrophes followed by one of these characters. Numbers are
    not changed. Text of only one character is not changed either, since a plus or minus sign may be
    the name of a category. `unguard_formula` restores the original text.
    """
    return _GUARD + text if _is_formula(text) else text


def unguard_formula(text: str) -> str:
    """Return the original text, given the text that `guard_formula` returned."""
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
