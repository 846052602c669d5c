"""Colours and legend entries of clusters and annotations. Nothing is drawn here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from mrshc.plotting.arguments import check_n_clusters
from mrshc.plotting.dendrogram_layout import shortened
from mrshc.plotting.palettes import (
    check_annotation_colours,
    check_level_colours,
    check_palette,
    check_scale,
)
from mrshc.shell.sample_alignment import SampleNames, align_samples, is_permuted_index
from mrshc.shell.text_cleaning import clean_text

# Colours of annotations: the palette of Okabe and Ito. Readers with colour vision deficiency can
# distinguish its colours. The yellow of the palette is left out, since it has too little contrast
# with a white background.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Colours of clusters: the darker colours of Paul Tol's muted palette. Clusters and annotations have
# different colours: if a cluster had the colour of a known class, readers might conclude that the
# cluster and the class are the same group.
CLUSTER_PALETTE = ("#332288", "#CC6677", "#117733", "#AA4499", "#999933", "#882255", "#44AA99")
# Colour of missing values: a light grey. Neither palette contains this colour, and it is not a tint
# of a colour in the palettes.
MISSING_COLOUR = "#D9D9D9"
# Colour of branches that join several clusters: a medium grey.
NEUTRAL_COLOUR = "#737373"
# Colours of outlying samples and of other samples in the bar that marks outlying samples. "none"
# means transparent in matplotlib.
_OUTLIER_COLOUR, _NO_COLOUR = "#000000", "none"
# Colours of a continuous scale: five colours of matplotlib's viridis colour map, from low values
# (light) to high values (dark). Other colours are obtained by interpolation.
_SEQUENTIAL_PALETTE = ("#FDE725", "#5EC962", "#21918C", "#3B528B", "#440154")
# If an annotation has more levels than the palette has colours, the remaining levels get tints:
# colours of the palette mixed with white or black. Each entry below contains the colour that is
# mixed in and its proportion. The proportions were chosen by eye: the seven colours of `PALETTE`
# and their 18 tints can be distinguished.
_TINTS = (("#FFFFFF", 0.5), ("#000000", 0.45), ("#FFFFFF", 0.75))
# Largest number of levels or clusters in a legend. A longer legend would be taller than the plot.
_MAX_LEGEND_ENTRIES = 20
# A numeric annotation with more than ten distinct values is drawn on a continuous scale. If there
# are at most ten, such as grades or batch numbers, each value is treated as a category.
_MAX_NUMERIC_LEVELS = 10
# Largest number of characters of a level in the legend. Longer text would leave too little space
# for the tree.
_MAX_LEVEL_LENGTH = 26
# Name of an annotation that is given as a Series without a name.
_NAME_OF_UNNAMED = "annotation"

# Colours with a larger luminance than this (0 for black, 1 for white) can hardly be seen on a white
# background: areas get an outline, and text is darkened. The colours of both palettes are darker.
_MAX_LUMINANCE = 0.6

LegendEntry = tuple[str, str | None]  # text, and colour of its symbol (None: no symbol)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationBar:
    """Colours and legend of one annotation of the samples.

    An annotation bar is drawn below a tree, with one coloured rectangle for each sample.

    Attributes
    ----------
    name : str
        Name of the annotation.
    colours : tuple of str, of length n_samples
        Colour of each sample, in the order of the samples: `#RRGGBB`, or "none" for no colour.
    legend : tuple of (str, str or None)
        Text of each legend entry, and the colour of its symbol. The colour is None if the entry has
        no symbol.
    is_categorical : bool
        True if each level (distinct value) of the annotation has its own colour. False for a
        numeric annotation on a continuous scale, and for the bar that marks outlying samples.
    """

    name: str
    colours: tuple[str, ...]
    legend: tuple[LegendEntry, ...]
    is_categorical: bool


def level_colours(
    n_levels: int, *, palette: Sequence[str] = PALETTE, start: int = 0
) -> tuple[str, ...]:
    """Return one colour for each level (distinct value) of an annotation.

    The first colours are those of the palette. They are followed by lighter and darker tints of
    these colours.

    Parameters
    ----------
    n_levels : int
        Number of colours to return. With the default palette, colours repeat from the 26th on.
    palette : sequence of str, default=PALETTE
        Colours as `#RRGGBB`.
    start : int, default=0
        Position in `palette` of the first colour to return. The colours before this position come
        after the last colour of the palette.

    Returns
    -------
    colours : tuple of str
        Colours as `#RRGGBB`.

    Examples
    --------
    >>> from mrshc.plotting import PALETTE, level_colours
    >>> level_colours(2) == PALETTE[:2]
    True
    >>> len(set(level_colours(25)))
    25
    """
    n_levels = check_n_clusters("n_levels", n_levels, low=0)
    rotated = [palette[(start + i) % len(palette)] for i in range(len(palette))]
    # Black has no tints: it cannot be darkened, and lighter tints would resemble the grey of
    # missing values.
    tintable = [colour for colour in rotated if colour != "#000000"]
    tints = [[_mix_colours(c, other, share=share) for c in tintable] for other, share in _TINTS]
    colours = [*rotated, *(colour for round_ in tints for colour in round_)]
    return tuple(colours[i % len(colours)] for i in range(n_levels))


def cluster_colours(n_clusters: int, *, palette: Any = None) -> tuple[str, ...]:
    """Return the colours of clusters 0, 1, ..., n_clusters - 1.

    With a given palette, the colour of a cluster depends only on its number, so it is the same in
    every plot.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. Colours of the default palette repeat from the 29th cluster on.
    palette : str, Colormap, list of colours or None, default=None
        Colours of the clusters, starting with cluster 0: colours that matplotlib knows, or a colour
        map such as "Set2". If there are more clusters than colours, lighter and darker tints
        follow. None stands for `CLUSTER_PALETTE`.

    Returns
    -------
    colours : tuple of str, of length n_clusters
        Colours as `#RRGGBB`.

    Examples
    --------
    >>> from mrshc.plotting import cluster_colours
    >>> cluster_colours(2)
    ('#332288', '#CC6677')
    """
    n_clusters = check_n_clusters("n_clusters", n_clusters, low=0)
    colours: tuple[str, ...] = CLUSTER_PALETTE
    if palette is not None:
        colours = check_palette("palette", palette, n=n_clusters)
    return level_colours(n_clusters, palette=colours)


def _rgb_channels(colour: str) -> NDArray[np.float64]:
    """Return the red, green and blue values of a colour `#RRGGBB`, each from 0 to 255."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _mix_colours(colour: str, other: str, *, share: float) -> str:
    """Return the mixture of two colours; `share` is the proportion of `other`, from 0 to 1."""
    mixture = (1 - share) * _rgb_channels(colour) + share * _rgb_channels(other)
    red, green, blue = np.rint(mixture)
    return f"#{int(red):02X}{int(green):02X}{int(blue):02X}"


def is_light(colour: str) -> bool:
    """Return whether a colour `#RRGGBB` can hardly be seen on a white background."""
    # Relative luminance as defined for sRGB colours: a weighted mean of the linear channels. A
    # power of 2.2 approximates the exact conversion to linear channels well enough here.
    linear = (_rgb_channels(colour) / 255) ** 2.2
    return bool(linear @ (0.2126, 0.7152, 0.0722) > _MAX_LUMINANCE)


def text_colour(colour: str) -> str:
    """Return a colour in which text is legible on white: light colours are darkened."""
    return _mix_colours(colour, "#000000", share=0.5) if is_light(colour) else colour


def sequential_colour(share: float) -> str:
    """Return the colour of a number on a continuous scale, as `#RRGGBB`."""
    position = float(np.clip(share, 0.0, 1.0)) * (len(_SEQUENTIAL_PALETTE) - 1)
    # The highest number is the end of the last interval. Without the limit, it would be assigned to
    # a further interval, which does not exist.
    left = min(int(position), len(_SEQUENTIAL_PALETTE) - 2)
    ends = _SEQUENTIAL_PALETTE[left : left + 2]
    return _mix_colours(*ends, share=position - left)


def annotation_bars(
    annotations: Any,
    n: int,
    *,
    samples: SampleNames | None = None,
    colours: Any = None,
    start: int = 0,
    unit: str = "sample",
) -> tuple[AnnotationBar, ...]:
    """Return the colours and the legend of each annotation of the samples.

    A numeric annotation with more than ten distinct values gets a continuous colour scale from
    light to dark. Any other annotation gets one colour for each level (distinct value). Missing
    values, and infinite values on a continuous scale, are light grey.

    Parameters
    ----------
    annotations : mapping, DataFrame, Series or None
        Maps the name of each annotation to its values, one value for each sample; None for no
        annotations. A Series is a single annotation. If `samples` is given, a DataFrame or a Series
        is aligned with `samples` by its index. Other values must be in the order of the samples.
    n : int
        Number of samples.
    samples : SampleNames or None, default=None
        Names of the samples. If None, all annotations must be in the order of the samples.
    colours : mapping or None, default=None
        Maps names of annotations to their colours. The colours of an annotation with levels are a
        mapping from levels to colours, a list of colours for the sorted levels, or a colour map
        such as "Set2". Those of a continuous scale are a colour map or a list of colours, from low
        to high numbers. Other annotations have the colours of `PALETTE`.
    start : int, default=0
        Position in `PALETTE` of the first colour.
    unit : str, default="sample"
        What an annotation describes, "sample" or "feature", for error messages.

    Returns
    -------
    bars : tuple of AnnotationBar
        One bar for each annotation, in the order of the annotations.

    Examples
    --------
    >>> from mrshc.plotting import annotation_bars
    >>> bar, = annotation_bars({"class": ["b", "a", None]}, 3)
    >>> bar.legend
    (('a', '#0072B2'), ('b', '#D55E00'), ('missing', '#D9D9D9'))
    """
    columns = [(clean_text(str(k)), v) for k, v in _annotation_columns(annotations).items()]
    given = check_annotation_colours(colours, names=[name for name, _ in columns])
    bars: list[AnnotationBar] = []
    for name, values in columns:
        aligned = _align_annotation(name, values, samples=samples, unit=unit)
        series = _annotation_series(name, aligned, n=n, unit=unit)
        if _is_continuous(series):
            bars.append(_continuous_bar(name, series, colours=given.get(name)))
            continue
        levels = _sorted_levels(series)
        palette = _colours_of_levels(name, levels, colours=given.get(name), start=start)
        bars.append(
            _categorical_bar(name, series, colour_of=dict(zip(levels, palette, strict=True)))
        )
        # The next annotation starts with the next colour of the palette. If two bars had the same
        # colours, readers might conclude that their levels are the same.
        start += len(levels)
    return tuple(bars)


def _align_annotation(name: str, values: Any, *, samples: SampleNames | None, unit: str) -> Any:
    """Return the values of an annotation in the order of the samples.

    Without names of samples, only the default index of pandas in another order is refused.
    """
    what = f"Annotation {name!r}"
    if samples is not None:
        return align_samples(values, samples, what=what, unit=unit)
    if hasattr(values, "iloc") and is_permuted_index(values.index):
        return align_samples(values, SampleNames(of_fit=None), what=what, unit=unit)
    return values


def _colours_of_levels(name: str, levels: list[Any], *, colours: Any, start: int) -> Sequence[str]:
    """Return one colour for each level: those that the user gave, or those of the palette."""
    if colours is None:
        return level_colours(len(levels), start=start)
    argument = f"colours[{name!r}]"
    if isinstance(colours, Mapping):
        return check_level_colours(argument, colours, levels=levels)
    return level_colours(len(levels), palette=check_palette(argument, colours, n=len(levels)))


def count_levels(bars: Sequence[AnnotationBar]) -> int:
    """Return the number of colours that the levels of several annotations have."""
    used = {colour for bar in bars if bar.is_categorical for colour in bar.colours}
    return len(used - {MISSING_COLOUR})


def outlier_bars(model: Any, n: int) -> tuple[AnnotationBar, ...]:
    """Return the bar that marks the outlying samples of a fit."""
    outlying = set(map(int, getattr(model, "outlier_samples_", ())))
    if not outlying:
        return ()
    return (
        AnnotationBar(
            name="outlying",
            colours=tuple(_OUTLIER_COLOUR if i in outlying else _NO_COLOUR for i in range(n)),
            legend=(("excluded from the fit,\nadded to the tree last", _OUTLIER_COLOUR),),
            is_categorical=False,
        ),
    )


def annotation_names(annotations: Any) -> list[str]:
    """Return the names of annotations as they are shown; the errors are as for the bars."""
    return [clean_text(str(name)) for name in _annotation_columns(annotations)]


def _annotation_columns(annotations: Any) -> dict[Any, Any]:
    """Return a dictionary from the names of the annotations to their values.

    Raise TypeError if `annotations` is neither a mapping nor a DataFrame or Series, and ValueError
    if two columns of a DataFrame have the same name.
    """
    if annotations is None:
        return {}
    # A Series has a method `items` like a mapping, but its items are the values of one annotation.
    if isinstance(annotations, pd.Series):
        has_name = annotations.name is not None
        return {annotations.name if has_name else _NAME_OF_UNNAMED: annotations}
    if hasattr(annotations, "columns"):
        names, counts = np.unique([str(c) for c in annotations.columns], return_counts=True)
        # If two columns have the same name, annotations[name] is a table instead of a column.
        if np.any(counts > 1):
            raise ValueError(
                "The columns of annotations must have different names, but "
                f"{counts.max()} of them are called {str(names[counts.argmax()])!r}. Rename them."
            )
        return {name: annotations[name] for name in annotations.columns}
    if not hasattr(annotations, "items"):
        raise TypeError(
            "annotations must be a mapping, a DataFrame or a Series with values of the samples, "
            f"got a {type(annotations).__name__}. Write {{'class': values}} for a single "
            "annotation."
        )
    return dict(annotations)


def _annotation_series(name: str, values: Any, *, n: int, unit: str) -> pd.Series:
    """Return the values of an annotation as a Series with the index 0, 1, ..., n - 1.

    Raise ValueError if there is not exactly one scalar value for each of the n samples (or
    features, as `unit` states).
    """
    is_list = isinstance(values, Iterable) and not isinstance(values, str)
    listed = list(values) if is_list else [values]
    if not is_list or len(listed) != n:
        got = f"{len(listed)} values" if is_list else repr(values)
        raise ValueError(
            f"Annotation {name!r} must hold one value for each of the {n} {unit}s, got {got}. "
            "Use None or NaN where a value is missing."
        )
    if (invalid := next((v for v in listed if not _is_scalar(v)), None)) is not None:
        raise ValueError(
            f"Annotation {name!r} must hold real numbers, text or other single values, got a "
            f"{type(invalid).__name__}. Convert its values, for example with str()."
        )
    # Keep the categorical data type, which contains the order of the categories, and the types of
    # pandas for numbers with missing values.
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) or (
        pd.api.types.is_extension_array_dtype(dtype) and pd.api.types.is_numeric_dtype(dtype)
    ):
        return pd.Series(listed, dtype=dtype)
    cleaned = [clean_text(v) if isinstance(v, str) else v for v in listed]
    try:
        return pd.Series(cleaned)
    except OverflowError:  # by pandas 2, for whole numbers that are larger than any float
        return pd.Series(cleaned, dtype=object)


def _is_scalar(value: Any) -> bool:
    """Return whether a value of an annotation is hashable and not a complex number."""
    try:
        hash(value)
    except TypeError:
        return False
    return not isinstance(value, complex | np.complexfloating)


def _is_continuous(series: pd.Series) -> bool:
    """Return whether an annotation is numeric and has more than ten distinct finite values."""
    is_number = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
    finite = series[series.abs() < np.inf] if is_number else series
    return bool(is_number and finite.nunique() > _MAX_NUMERIC_LEVELS)


def _sorted_levels(series: pd.Series) -> list[Any]:
    """Return the distinct values of an annotation in sorted order.

    If the data type is categorical, the order is that of the categories. Other values are sorted by
    `natural_sort_key`.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        present = set(series.dropna())
        return [level for level in series.cat.categories if level in present]
    return sorted(series.dropna().unique(), key=natural_sort_key)


def natural_sort_key(value: Any) -> tuple[Any, ...]:
    """Return a sort key that sorts numbers inside names by size: "class 2" before "class 10".

    Values that are numbers come before values that are text.
    """
    # With a capturing group, re.split returns text at even positions and numbers at odd positions.
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    texts = tuple((float(p), "") if i % 2 else (0.0, p) for i, p in enumerate(parts))
    is_number = isinstance(value, int | float | np.number)
    try:
        return (float(value) if is_number else np.inf, texts)
    except OverflowError:  # an int with more than 308 digits
        return (np.inf if value > 0 else -np.inf, texts)


def _categorical_bar(name: str, series: pd.Series, *, colour_of: dict[Any, str]) -> AnnotationBar:
    """Return the bar of an annotation; `colour_of` maps its levels, in order, to their colours."""
    is_missing = series.isna()
    return AnnotationBar(
        name=name,
        colours=tuple(
            MISSING_COLOUR if missing else colour_of[value]
            for value, missing in zip(series, is_missing, strict=True)
        ),
        legend=(
            *_truncate_legend([(_format_level(level), c) for level, c in colour_of.items()]),
            *_missing_entries(is_missing),
        ),
        is_categorical=True,
    )


def _continuous_bar(name: str, series: pd.Series, *, colours: Any) -> AnnotationBar:
    """Return the bar of an annotation that is drawn on a continuous scale.

    The legend shows the highest number, the lowest number, and the number midway between the two.
    `colours` is the scale that the user gave, or None.
    """
    scale = None if colours is None else check_scale(f"colours[{name!r}]", colours)

    def colour_at(share: float) -> str:
        return sequential_colour(share) if scale is None else str(to_hex(scale(share))).upper()

    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    finite = np.isfinite(values)
    low, high = values[finite].min(), values[finite].max()
    # Halve the numbers before subtracting them, since high - low would overflow if `high` and `low`
    # had opposite signs and were both close to the largest float in absolute value.
    shares = (values / 2 - low / 2) / (high / 2 - low / 2)
    ticks = [
        (1.0, f"{high:.4g} (highest)"),
        (0.5, f"{low / 2 + high / 2:.4g}"),
        (0.0, f"{low:.4g} (lowest)"),
    ]
    return AnnotationBar(
        name=name,
        colours=tuple(
            colour_at(share) if is_finite else MISSING_COLOUR
            for share, is_finite in zip(shares, finite, strict=True)
        ),
        legend=(
            *((text, colour_at(share)) for share, text in ticks),
            *_missing_entries(~finite),
        ),
        is_categorical=False,
    )


def _format_level(value: Any) -> str:
    """Return the text of a level in the legend, shortened if it is too long."""
    is_float = isinstance(value, float | np.floating)
    return shortened(f"{value:g}" if is_float else value, length=_MAX_LEVEL_LENGTH)


def _truncate_legend(entries: list[LegendEntry]) -> list[LegendEntry]:
    """Return the first 20 entries of a legend.

    If entries are left out, an additional entry states how many.
    """
    if len(entries) <= _MAX_LEGEND_ENTRIES:
        return entries
    n_others = len(entries) - _MAX_LEGEND_ENTRIES
    return [*entries[:_MAX_LEGEND_ENTRIES], (f"... and {n_others} more", None)]


def _missing_entries(is_missing: Any) -> list[LegendEntry]:
    """Return a list with a legend entry for missing values; it is empty if none is missing."""
    return [("missing", MISSING_COLOUR)] if np.any(is_missing) else []


def cluster_legend_entries(colours: Sequence[str]) -> tuple[LegendEntry, ...]:
    """Return the legend entries of at most 20 clusters, and a note if there are more clusters.

    The cluster with label 0 is called "cluster 1". `colours` are the colours of the clusters.
    """
    entries = [(f"cluster {k + 1}", colour) for k, colour in enumerate(colours)]
    return tuple(_truncate_legend([*entries]))
