"""Values of options that consist of several parts, or that are a number or a word."""

from __future__ import annotations

from typing import Any

from mrshc.errors import UserError


def parse_number_or_auto(option: str, text: str | None) -> int | str | None:
    """Return the value of an option: a whole number, "auto", or None if the option was not given.

    Raises UserError if `text` is neither None, "auto" nor a whole number.
    """
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{option} must be a whole number or auto, got {text!r}.") from None


def parse_keys(text: str | None) -> list[str] | None:
    """Return the keys in a text, which are separated by commas; None if the text is None."""
    return None if text is None else [key.strip() for key in text.split(",")]


def parse_numbers_or_auto(option: str, text: str | None, *, kind: type = int) -> Any:
    """Return the value of an option: a number, a list of numbers, "auto" or None."""
    if text is None or text == "auto":
        return text
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        noun = "a whole number" if kind is int else "a number"
        raise UserError(
            f"{option} must be {noun}, several with commas between them, or auto, got {text!r}."
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers
