"""Colours, palettes and colour maps that users give: their validation and conversion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, to_hex, to_rgba

from mrshc.plotting.arguments import refusal
from mrshc.shell.text_cleaning import clean_text

# A colour map with at most this many colours is a list of separate colours, such as "Set2" or
# "tab20", which has the most. Colour maps with more colours are continuous scales.
_MAX_SEPARATE_COLOURS = 20
_PALETTE_ADVICE = "Pass a list such as ['#1B9E77', 'orange'], or the name of a colour map."


def check_colour(name: str, colour: Any) -> str:
    """Return a colour as `#RRGGBB`; raise ParameterError if matplotlib does not know the colour.

    The error message calls the argument `name`.
    """
    try:
        # "none" is a valid colour for matplotlib, but it would hide what it colours.
        if to_rgba(colour)[3] > 0:
            return str(to_hex(colour)).upper()
    except (TypeError, ValueError):
        pass
    raise refusal(
        name,
        colour,
        allowed="hold colours that matplotlib knows",
        advice="Write a colour as '#1B9E77', 'orange' or (0.1, 0.6, 0.5).",
    )


def check_colour_map(name: str, colour_map: Any) -> Colormap:
    """Return a colour map, given as such or by its name in matplotlib.

    Raise ParameterError if there is no such colour map. The error message calls the argument
    `name`.
    """
    if isinstance(colour_map, Colormap):
        return colour_map
    if isinstance(colour_map, str) and colour_map in colormaps:
        return colormaps[colour_map]
    similar = get_close_matches(str(colour_map), list(colormaps), n=1)
    advice = f"Did you mean {similar[0]!r}?" if similar else "Choose one such as 'RdBu_r'."
    raise refusal(
        name,
        colour_map,
        allowed="be a matplotlib colour map or the name of one",
        advice=advice,
    )


def check_palette(name: str, palette: Any, *, n: int) -> tuple[str, ...]:
    """Return the colours of a palette as `#RRGGBB`."""
    if isinstance(palette, str | Colormap):
        scale = check_colour_map(name, palette)
        if isinstance(scale, ListedColormap) and scale.N <= _MAX_SEPARATE_COLOURS:
            return tuple(str(to_hex(scale(i))).upper() for i in range(scale.N))
        return tuple(str(to_hex(scale(x))).upper() for x in np.linspace(0.0, 1.0, max(1, n)))
    is_list = isinstance(palette, Iterable) and not isinstance(palette, Mapping | bytes)
    colours = tuple(check_colour(name, colour) for colour in palette) if is_list else ()
    if not colours:
        raise refusal(
            name,
            palette,
            allowed="be a list of colours or the name of a colour map",
            advice=_PALETTE_ADVICE,
        )
    return colours


def check_scale(name: str, scale: Any) -> Colormap:
    """Return a continuous colour scale, given as a colour map, its name or a list of colours.

    With a list, colours between those of the list are interpolated. Raise ParameterError if the
    scale is not valid. The error message calls the argument `name`.
    """
    if isinstance(scale, str | Colormap):
        return check_colour_map(name, scale)
    colours = check_palette(name, scale, n=1)
    # A scale needs two ends; a single colour would give every number the same colour.
    if len(colours) < 2:
        raise refusal(
            name,
            scale,
            allowed="hold at least two colours for a continuous scale",
            advice="The first colour is that of the lowest number.",
        )
    return LinearSegmentedColormap.from_list("given", colours)


def check_level_colours(name: str, colours: Mapping[Any, Any], *, levels: list[Any]) -> list[str]:
    """Return the colour of each level of an annotation, from a mapping of levels to colours.

    Raise ParameterError if the mapping lacks a level, or if a colour is not valid. The error
    message calls the argument `name`.
    """
    absent = [level for level in levels if level not in colours]
    if absent:
        raise refusal(
            name,
            list(colours),
            allowed=f"have a colour for each level, such as {absent[0]!r}",
            advice="Add the level, or pass a list of colours.",
        )
    return [check_colour(name, colours[level]) for level in levels]


def check_annotation_colours(colours: Any, *, names: Iterable[str]) -> dict[str, Any]:
    """Return the argument `colours`, which maps names of annotations to their colours.

    Raise ParameterError if it is not a mapping, or if there is no annotation of some name.
    """
    if colours is None:
        return {}
    if not isinstance(colours, Mapping):
        raise refusal(
            "colours",
            colours,
            allowed="map names of annotations to their colours",
            advice="Write {'class': ['orange', '#1B9E77']}; palette has the colours of clusters.",
        )
    known = list(names)
    unknown = [name for name in colours if clean_text(str(name)) not in known]
    if unknown:
        shown = ", ".join(map(repr, known)) if known else "none"
        raise refusal(
            "colours",
            unknown[0],
            allowed=f"have names of annotations as keys, which are {shown}",
            advice="Correct the name, or add the annotation.",
        )
    return {clean_text(str(name)): value for name, value in colours.items()}
