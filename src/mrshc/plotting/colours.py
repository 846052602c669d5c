"""Colours of clusters and annotations, with the entries of their legends. Nothing is drawn here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mrshc.core.array_types import Float
from mrshc.plotting.arguments import check_n_clusters
from mrshc.plotting.dendrogram_layout import shortened
from mrshc.utils.sample_alignment import SampleNames, align_samples
from mrshc.utils.text_cleaning import clean_text

# The palette of Okabe and Ito, which readers with colour vision deficiency can distinguish. Its
# yellow is left out: it has too little contrast on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Clusters use other colours than annotations, the darker ones of Paul Tol's muted palette. A
# cluster in the colour of a known class would suggest that the two are the same group.
CLUSTER_PALETTE = ("#332288", "#CC6677", "#117733", "#AA4499", "#999933", "#882255", "#44AA99")
# Light grey, which neither palette nor any of its tints contains.
MISSING_COLOUR = "#D9D9D9"
# Medium grey of branches that join several clusters.
NEUTRAL_COLOUR = "#737373"
# "none" is matplotlib's transparent colour; samples that are not outlying leave their bar empty.
_OUTLIER_COLOUR, _NO_COLOUR = "#000000", "none"
# Five colours of viridis, from low to high values. Colours between them are interpolated.
_SEQUENTIAL_PALETTE = ("#FDE725", "#5EC962", "#21918C", "#3B528B", "#440154")
# Further levels get the colours of the palette mixed with white or black. The shares were chosen by
# eye so that all 25 colours differ.
_TINTS = (("#FFFFFF", 0.5), ("#000000", 0.45), ("#FFFFFF", 0.75))
# Longer legends would be taller than the picture.
_MAX_LEGEND_ENTRIES = 20
# A numeric annotation with more distinct values is drawn on a continuous scale. Up to ten values,
# such as grades or batch numbers, are treated as groups.
_MAX_NUMERIC_LEVELS = 10
# Characters of a level in the legend; longer texts would make the legend wider than the tree.
_MAX_LEVEL_LENGTH = 26

LegendEntry = tuple[str, str | None]  # text, and colour of the symbol before it


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationBar:
    """Colours of one annotation of the samples.

    Attributes
    ----------
    name : str
        Name of the annotation.
    colours : tuple of str, of length n_samples
        Colour of each sample as `#RRGGBB`, or "none", in the order of the samples.
    legend : tuple of (str, str or None)
        Text and colour of each entry of the legend.
    is_categorical : bool
        Whether the annotation has levels; otherwise it is numeric, on a continuous scale.
    """

    name: str
    colours: tuple[str, ...]
    legend: tuple[LegendEntry, ...]
    is_categorical: bool


def level_colours(
    n_levels: int, *, palette: Sequence[str] = PALETTE, start: int = 0
) -> tuple[str, ...]:
    """Return a colour for each level of an annotation.

    The colours of the palette come first, then lighter and darker tints of them.

    Parameters
    ----------
    n_levels : int
        Number of colours. From the 26th on they repeat.
    palette : sequence of str, default=PALETTE
        Colours as `#RRGGBB`.
    start : int, default=0
        Position in the palette of the first colour.

    Returns
    -------
    colours : tuple of str
        Colours as `#RRGGBB`.

    See Also
    --------
    cluster_colours : Colours of clusters.

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
    # Black cannot be darkened, and lightened it would resemble the grey of missing values.
    tintable = [colour for colour in rotated if colour != "#000000"]
    tints = [[_mix_colours(c, other, share=share) for c in tintable] for other, share in _TINTS]
    colours = [*rotated, *(colour for round_ in tints for colour in round_)]
    return tuple(colours[i % len(colours)] for i in range(n_levels))


def cluster_colours(n_clusters: int) -> tuple[str, ...]:
    """Return the colours of clusters 0, 1, ..., which are the same in every plot.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.

    Returns
    -------
    colours : tuple of str, of length n_clusters
        Colours as `#RRGGBB`.

    See Also
    --------
    level_colours : Colours of the levels of an annotation.

    Examples
    --------
    >>> from mrshc.plotting import cluster_colours
    >>> cluster_colours(2)
    ('#332288', '#CC6677')
    """
    n_clusters = check_n_clusters("n_clusters", n_clusters, low=0)
    return level_colours(n_clusters, palette=CLUSTER_PALETTE)


def _rgb_channels(colour: str) -> Float:
    """Return red, green and blue of a colour `#RRGGBB`, from 0 to 255."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _mix_colours(colour: str, other: str, *, share: float) -> str:
    """Return the mixture of two colours; `share` in [0, 1] is the share of `other`."""
    mixture = (1 - share) * _rgb_channels(colour) + share * _rgb_channels(other)
    red, green, blue = np.rint(mixture)
    return f"#{int(red):02X}{int(green):02X}{int(blue):02X}"


def sequential_colour(share: float) -> str:
    """Return the colour of a number on a continuous scale.

    Parameters
    ----------
    share : float
        Position of the number between the lowest (0) and the highest (1) of the scale.
    """
    position = float(np.clip(share, 0.0, 1.0)) * (len(_SEQUENTIAL_PALETTE) - 1)
    # The highest number belongs to the last interval, since no interval begins at it.
    left = min(int(position), len(_SEQUENTIAL_PALETTE) - 2)
    ends = _SEQUENTIAL_PALETTE[left : left + 2]
    return _mix_colours(*ends, share=position - left)


def annotation_bars(
    annotations: Any, n: int, *, samples: SampleNames | None = None
) -> tuple[AnnotationBar, ...]:
    """Return the colours and legends of annotations of samples.

    Numeric annotations with more than ten distinct values get a continuous scale from light to
    dark. All others get one colour for each level. Missing values are light grey.

    Parameters
    ----------
    annotations : mapping, DataFrame or None
        Values for each sample, by the name of the annotation. A DataFrame or Series is aligned with
        `samples` by its index; other values must be in the order of the samples.
    n : int
        Number of samples.
    samples : SampleNames or None, default=None
        Names of the samples; None if all annotations are in the order of the samples.

    Returns
    -------
    bars : tuple of AnnotationBar
        One for each annotation, in their order.

    Raises
    ------
    TypeError
        If `annotations` is neither a mapping nor a DataFrame.
    ValueError
        If an annotation does not hold one scalar value for each sample, or two columns have the
        same name.

    See Also
    --------
    dendrogram : Draw the bars below a tree.

    Examples
    --------
    >>> from mrshc.plotting import annotation_bars
    >>> bar, = annotation_bars({"class": ["b", "a", None]}, 3)
    >>> bar.legend
    (('a', '#0072B2'), ('b', '#D55E00'), ('missing', '#D9D9D9'))
    """
    bars: list[AnnotationBar] = []
    start = 0
    for title, values in _annotation_columns(annotations).items():
        name = clean_text(str(title))
        if samples is not None:
            values = align_samples(values, samples, what=f"Annotation {name!r}")
        series = _annotation_series(name, values, n=n)
        if _is_continuous(series):
            bars.append(_continuous_bar(name, series))
            continue
        levels = _sorted_levels(series)
        bars.append(_categorical_bar(name, series, levels=levels, start=start))
        # The next annotation continues in the palette, so that equal colours in two bars do not
        # suggest equal levels.
        start += len(levels)
    return tuple(bars)


def outlier_bars(model: Any, n: int) -> tuple[AnnotationBar, ...]:
    """Return a bar that marks the outlying samples of a fit.

    Parameters
    ----------
    model : fitted estimator or result
        Its attribute `outlier_samples_`, if present, holds the indices of the outlying samples.
    n : int
        Number of samples.

    Returns
    -------
    bars : tuple of AnnotationBar
        One bar, or none if the model has no outlying samples.
    """
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


def _annotation_columns(annotations: Any) -> dict[Any, Any]:
    """Return the values of each annotation by its name."""
    if annotations is None:
        return {}
    if hasattr(annotations, "columns"):
        names, counts = np.unique([str(c) for c in annotations.columns], return_counts=True)
        # annotations[name] would be a table, not a column, if two columns share the name.
        if np.any(counts > 1):
            raise ValueError(
                "The columns of annotations must have different names, but "
                f"{counts.max()} of them are called {str(names[counts.argmax()])!r}. Rename them."
            )
        return {name: annotations[name] for name in annotations.columns}
    # A Series has items too: those are its entries, not annotations.
    if isinstance(annotations, pd.Series) or not hasattr(annotations, "items"):
        raise TypeError(
            "annotations must be a mapping or a DataFrame, from names to values of the samples, "
            f"got a {type(annotations).__name__}. Write {{'class': values}} for a single "
            "annotation."
        )
    return dict(annotations)


def _annotation_series(name: str, values: Any, *, n: int) -> pd.Series:
    """Return the values of an annotation as a Series with a default index."""
    is_list = isinstance(values, Iterable) and not isinstance(values, str)
    listed = list(values) if is_list else [values]
    if not is_list or len(listed) != n:
        got = f"{len(listed)} values" if is_list else repr(values)
        raise ValueError(
            f"Annotation {name!r} must hold one value for each of the {n} samples, got {got}. "
            "Use None or NaN where a value is missing."
        )
    if (invalid := next((v for v in listed if not _is_scalar(v)), None)) is not None:
        raise ValueError(
            f"Annotation {name!r} must hold real numbers, text or other single values, got a "
            f"{type(invalid).__name__}. Convert its values, for example with str()."
        )
    # The order of categories is information that a list of values would lose.
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return pd.Series(listed, dtype=values.dtype)
    return pd.Series([clean_text(v) if isinstance(v, str) else v for v in listed])


def _is_scalar(value: Any) -> bool:
    """Return whether a value can be a level or a number on a scale."""
    try:
        hash(value)
    except TypeError:
        return False
    return not isinstance(value, complex | np.complexfloating)


def _is_continuous(series: pd.Series) -> bool:
    """Return whether an annotation is drawn on a continuous scale."""
    is_number = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
    finite = series[series.abs() < np.inf] if is_number else series
    return bool(is_number and finite.nunique() > _MAX_NUMERIC_LEVELS)


def _sorted_levels(series: pd.Series) -> list[Any]:
    """Return the levels that occur: in the order of the categories, or sorted naturally."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        present = set(series.dropna())
        return [level for level in series.cat.categories if level in present]
    return sorted(series.dropna().unique(), key=natural_sort_key)


def natural_sort_key(value: Any) -> tuple[Any, ...]:
    """Return a sort key that orders numbers inside names by size: class 2 before class 10.

    Numbers come before texts.
    """
    # With a capturing group, re.split returns texts at even and numbers at odd positions.
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    texts = tuple((float(p), "") if i % 2 else (0.0, p) for i, p in enumerate(parts))
    is_number = isinstance(value, int | float | np.number)
    try:
        return (float(value) if is_number else np.inf, texts)
    except OverflowError:  # an int of more than 308 digits
        return (np.inf if value > 0 else -np.inf, texts)


def _categorical_bar(
    name: str, series: pd.Series, *, levels: list[Any], start: int
) -> AnnotationBar:
    """Return the bar of an annotation with levels."""
    colour_of = dict(zip(levels, level_colours(len(levels), start=start), strict=True))
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


def _continuous_bar(name: str, series: pd.Series) -> AnnotationBar:
    """Return the bar of a numeric annotation, with three numbers in its legend."""
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    finite = np.isfinite(values)
    low, high = values[finite].min(), values[finite].max()
    # Halved before the subtraction: high - low overflows if both are near the largest number.
    shares = (values / 2 - low / 2) / (high / 2 - low / 2)
    ticks = [
        (1.0, f"{high:.4g} (highest)"),
        (0.5, f"{low / 2 + high / 2:.4g}"),
        (0.0, f"{low:.4g} (lowest)"),
    ]
    return AnnotationBar(
        name=name,
        colours=tuple(
            sequential_colour(share) if is_finite else MISSING_COLOUR
            for share, is_finite in zip(shares, finite, strict=True)
        ),
        legend=(
            *((text, sequential_colour(share)) for share, text in ticks),
            *_missing_entries(~finite),
        ),
        is_categorical=False,
    )


def _format_level(value: Any) -> str:
    """Return the text of a level in the legend."""
    is_float = isinstance(value, float | np.floating)
    return shortened(f"{value:g}" if is_float else value, length=_MAX_LEVEL_LENGTH)


def _truncate_legend(entries: list[LegendEntry]) -> list[LegendEntry]:
    """Return the first entries of a legend, and one that counts the others."""
    if len(entries) <= _MAX_LEGEND_ENTRIES:
        return entries
    n_others = len(entries) - _MAX_LEGEND_ENTRIES
    return [*entries[:_MAX_LEGEND_ENTRIES], (f"... and {n_others} more", None)]


def _missing_entries(is_missing: Any) -> list[LegendEntry]:
    """Return the legend entry of missing values; none if no value is missing."""
    return [("missing", MISSING_COLOUR)] if np.any(is_missing) else []


def cluster_legend_entries(n_clusters: int) -> tuple[LegendEntry, ...]:
    """Return the legend entries of clusters; label 0 is shown as cluster 1."""
    colours = cluster_colours(n_clusters)
    entries = [(f"cluster {k + 1}", colour) for k, colour in enumerate(colours)]
    return tuple(_truncate_legend([*entries]))
