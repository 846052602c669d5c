"""Colours of clusters and of annotations, and what the legend says of them. No drawing here."""

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

# Okabe and Ito's palette, told apart by colour-blind readers too; yellow is left out, it vanishes
# on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Clusters that were found have colours of their own, darker ones of Paul Tol's muted palette: a
# cluster in the colour of a known class would look as if the two were one.
CLUSTER_PALETTE = ("#332288", "#CC6677", "#117733", "#AA4499", "#999933", "#882255", "#44AA99")
MISSING_COLOUR = "#D9D9D9"
NEUTRAL_COLOUR = "#737373"
_OUTLIER_COLOUR, _NO_COLOUR = "#000000", "none"
# From low to high, in steps of lightness: anchors of viridis.
_SEQUENTIAL_PALETTE = ("#FDE725", "#5EC962", "#21918C", "#3B528B", "#440154")
# With more levels than the palette: towards white or black by these shares.
_TINTS = (("#FFFFFF", 0.5), ("#000000", 0.45), ("#FFFFFF", 0.75))
_MAX_LEGEND_ENTRIES = 20
# Numbers with more levels than this are a scale, not names of groups.
_MAX_NUMERIC_LEVELS = 10

LegendEntry = tuple[str, str | None]  # what the legend says, and its colour


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationBar:
    """What is known of the samples, as colours."""

    name: str
    colours: tuple[str, ...]  # (n,), in the order of the samples
    legend: tuple[LegendEntry, ...]
    is_categorical: bool


def level_colours(
    n_levels: int, *, palette: Sequence[str] = PALETTE, start: int = 0
) -> tuple[str, ...]:
    """Return a colour for each level: those of the palette, then tints of them.

    Parameters
    ----------
    n_levels : int
        How many colours. Beyond 25 they repeat.
    palette : sequence of str
        Colours as `#RRGGBB`.
    start : int
        Where in the palette to begin.

    Examples
    --------
    >>> from mrshc.plotting import PALETTE, level_colours
    >>> level_colours(2) == PALETTE[:2]
    True
    >>> len(set(level_colours(25)))
    25
    """
    n_levels = check_n_clusters("n_levels", n_levels, low=0)
    turned = [palette[(start + i) % len(palette)] for i in range(len(palette))]
    # Black has no darker tint, and its lighter ones are kept for what is missing.
    tinted = [colour for colour in turned if colour != "#000000"]
    rounds = [[_mix_colours(c, other, share=share) for c in tinted] for other, share in _TINTS]
    colours = [*turned, *(colour for tints in rounds for colour in tints)]
    return tuple(colours[i % len(colours)] for i in range(n_levels))


def cluster_colours(n_clusters: int) -> tuple[str, ...]:
    """Return the colours of clusters 0, 1, ..., the same in every picture."""
    n_clusters = check_n_clusters("n_clusters", n_clusters, low=0)
    return level_colours(n_clusters, palette=CLUSTER_PALETTE)


def _rgb_channels(colour: str) -> Float:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _mix_colours(colour: str, other: str, *, share: float) -> str:
    red, green, blue = np.rint((1 - share) * _rgb_channels(colour) + share * _rgb_channels(other))
    return f"#{int(red):02X}{int(green):02X}{int(blue):02X}"


def sequential_colour(share: float) -> str:
    """Return the colour of a number that lies at this share of the way from lowest to highest."""
    place = float(np.clip(share, 0.0, 1.0)) * (len(_SEQUENTIAL_PALETTE) - 1)
    left = min(int(place), len(_SEQUENTIAL_PALETTE) - 2)
    return _mix_colours(_SEQUENTIAL_PALETTE[left], _SEQUENTIAL_PALETTE[left + 1], share=place - left)


def annotation_bars(
    annotations: Any, n: int, *, samples: SampleNames | None = None
) -> tuple[AnnotationBar, ...]:
    """Return the colours of annotations of n samples.

    Parameters
    ----------
    annotations : mapping, DataFrame or None
        Values for each sample by the annotation's name. A DataFrame or Series is matched to
        `samples` by its index; anything else is in the order of the samples.
        Numbers with more than ten different values become a scale from light to dark, anything
        else a colour for each level. Missing values are light grey.
    n : int
        Number of samples.
    samples : SampleNames or None
        Names of the samples; None if all annotations are in their order.

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
        # A level of the next annotation does not look like one of this.
        bars.append(_categorical_bar(name, series, levels=levels, start=start))
        start += len(levels)
    return tuple(bars)


def outlier_bars(model: Any, n: int) -> tuple[AnnotationBar, ...]:
    """Return a bar that marks the samples that a model set apart; none if there are none."""
    outlying = set(map(int, getattr(model, "outlier_samples_", ())))
    if not outlying:
        return ()
    return (
        AnnotationBar(
            name="outlying",
            colours=tuple(_OUTLIER_COLOUR if i in outlying else _NO_COLOUR for i in range(n)),
            legend=(("set apart, attached last", _OUTLIER_COLOUR),),
            is_categorical=False,
        ),
    )


def _annotation_columns(annotations: Any) -> dict[Any, Any]:
    if annotations is None:
        return {}
    if hasattr(annotations, "columns"):
        names, counts = np.unique([str(c) for c in annotations.columns], return_counts=True)
        if np.any(counts > 1):
            raise ValueError(
                "Columns of annotations must have different names, but "
                f"{str(names[counts.argmax()])!r} names {counts.max()} of them. Rename them."
            )
        return {name: annotations[name] for name in annotations.columns}
    if isinstance(annotations, pd.Series) or not hasattr(annotations, "items"):
        raise TypeError(
            "annotations must be a mapping or a DataFrame, from names to values of the samples, "
            f"got {type(annotations).__name__}. Write {{'class': values}} for a single one."
        )
    return dict(annotations)


def _annotation_series(name: str, values: Any, *, n: int) -> pd.Series:
    is_list = isinstance(values, Iterable) and not isinstance(values, str)
    listed = list(values) if is_list else [values]
    if not is_list or len(listed) != n:
        got = f"{len(listed)} values" if is_list else repr(values)
        raise ValueError(
            f"Annotation {name!r} must hold one value for each of the {n} samples, got {got}. "
            "Use None or NaN where a value is missing."
        )
    if (odd := next((v for v in listed if not _is_scalar(v)), None)) is not None:
        raise ValueError(
            f"Annotation {name!r} must hold real numbers, text or other single values, got a "
            f"{type(odd).__name__}. Convert its values, such as by str()."
        )
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):  # which orders its levels
        return pd.Series(listed, dtype=values.dtype)
    return pd.Series([clean_text(v) if isinstance(v, str) else v for v in listed])


def _is_scalar(value: Any) -> bool:
    """Tell whether a value can be a level or lie on a scale."""
    try:
        hash(value)
    except TypeError:
        return False
    return not isinstance(value, complex | np.complexfloating)


def _is_continuous(series: pd.Series) -> bool:
    is_number = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
    finite = series[series.abs() < np.inf] if is_number else series
    return bool(is_number and finite.nunique() > _MAX_NUMERIC_LEVELS)


def _sorted_levels(series: pd.Series) -> list[Any]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        present = set(series.dropna())
        return [level for level in series.cat.categories if level in present]
    return sorted(series.dropna().unique(), key=natural_sort_key)


def natural_sort_key(value: Any) -> tuple[Any, ...]:
    """Sort numbers by size, also those inside names: class 2 comes before class 10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    texts = tuple((float(p), "") if i % 2 else (0.0, p) for i, p in enumerate(parts))
    is_number = isinstance(value, int | float | np.number)
    try:
        return (float(value) if is_number else np.inf, texts)
    except OverflowError:  # a whole number of more than 308 digits
        return (np.inf if value > 0 else -np.inf, texts)


def _categorical_bar(name: str, series: pd.Series, *, levels: list[Any], start: int) -> AnnotationBar:
    colour = dict(zip(levels, level_colours(len(levels), start=start), strict=True))
    missing = series.isna()
    return AnnotationBar(
        name=name,
        colours=tuple(
            MISSING_COLOUR if gone else colour[v] for v, gone in zip(series, missing, strict=True)
        ),
        legend=(*_truncate_legend([(_format_level(v), c) for v, c in colour.items()]), *_missing_entries(missing)),
        is_categorical=True,
    )


def _continuous_bar(name: str, series: pd.Series) -> AnnotationBar:
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    finite = np.isfinite(values)
    low, high = values[finite].min(), values[finite].max()
    # Halved first: the range of very large numbers is not a number.
    shares = (values / 2 - low / 2) / (high / 2 - low / 2)
    marks = [
        (1.0, f"{high:.4g} (highest)"),
        (0.5, f"{low / 2 + high / 2:.4g}"),
        (0.0, f"{low:.4g} (lowest)"),
    ]
    return AnnotationBar(
        name=name,
        colours=tuple(
            sequential_colour(s) if ok else MISSING_COLOUR for s, ok in zip(shares, finite, strict=True)
        ),
        legend=(*((text, sequential_colour(share)) for share, text in marks), *_missing_entries(~finite)),
        is_categorical=False,
    )


def _format_level(value: Any) -> str:
    is_fraction = isinstance(value, float | np.floating)
    return shortened(f"{value:g}" if is_fraction else value, length=26)


def _truncate_legend(entries: list[LegendEntry]) -> list[LegendEntry]:
    if len(entries) <= _MAX_LEGEND_ENTRIES:
        return entries
    return [*entries[:_MAX_LEGEND_ENTRIES], (f"... and {len(entries) - _MAX_LEGEND_ENTRIES} more", None)]


def _missing_entries(missing: Any) -> list[LegendEntry]:
    return [("missing", MISSING_COLOUR)] if np.any(missing) else []


def cluster_legend_entries(n_clusters: int) -> tuple[LegendEntry, ...]:
    """Return what the legend says of clusters; they are counted from one for readers."""
    colours = cluster_colours(n_clusters)
    return tuple(_truncate_legend([(f"cluster {k + 1}", colour) for k, colour in enumerate(colours)]))
