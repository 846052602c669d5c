"""Completion of option values in the shell, for options that typer cannot complete by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def complete_from(*choices: str) -> Callable[[str], list[str]]:
    """Return a function that completes a value to one of the given texts."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def complete_list(load_choices: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a function that completes the last entry of a list with commas between its entries."""

    def complete(incomplete: str) -> list[str]:
        *before, last = incomplete.split(",")
        start = "".join(f"{entry}," for entry in before)
        # An entry may occur only once.
        remaining = [choice for choice in load_choices() if choice not in before]
        return [start + choice for choice in remaining if choice.startswith(last)]

    return complete


def load_method_keys() -> Iterable[str]:
    """Return the keys of all methods that `mrshc compare` can fit."""
    from mrshc.methods import METHODS, VARIANTS

    return METHODS | VARIANTS


def load_picture_formats() -> Iterable[str]:
    """Return the file formats of pictures."""
    from mrshc.plotting.picture_files import PICTURE_FORMATS

    return PICTURE_FORMATS
