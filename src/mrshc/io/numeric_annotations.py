"""Detection of columns and rows of numbers that are annotations, such as ages or batches.

If such a column were taken for a feature, it could determine the clusters. A column is suspected if
its title is a usual title of annotations, or if it contains whole numbers while the other columns
contain fractions. A row is suspected by its name only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.raw_table import RawTable
from mrshc.io.streams import FlawError
from mrshc.shell.data_matrix import as_data_matrix
from mrshc.shell.wording import Sentence, Setting

# Words that are usual titles of annotations of samples. Symbols of genes are avoided: "arm" and
# "run", for example, are genes of the fruit fly, and "chip" is a name of STUB1.
_WORDS = (
    "age|sex|gender|ethnicity|race|bmi|height|weight|smok(?:er|ing)|batch|plate|lane|"
    "cent(?:er|re)|site|cohort|study|replicates?|clusters?|class(?:es)?|labels?|targets?|groups?|"
    "subgroups?|subtypes?|types?|treatments?|therapy|doses?|time|time[ _.-]?points?|days?|weeks?|"
    "months?|years?|survival|status|events?|censor(?:ed|ing)?|deaths?|dead|alive|relapse|"
    "recurrence|metastas[ie]s|progression|outcomes?|responses?|responder|diagnosis|stages?|"
    "grades?|tumou?r[ _.-]?size|purity|rin|patients?|subjects?|individuals?|donors?|mouse|mice"
)
_BEFORE = (
    r"(?:patients?|samples?|subjects?|donors?|tumou?r|clinical|case|overall|disease|dfs|rfs|pfs|"
    r"follow[ _.-]?up|sequencing|library|array|tissue|cell|histological|pathological|true|known)"
)
_AFTER = (
    r"(?:ids?|nos?|nrs?|num(?:bers?)?|codes?|index|time|status|yrs?|years?|months?|days?|weeks?|"
    r"at[ _.-].*|in[ _.-].*|\(.*\)|\[.*\])"
)
_ANNOTATION_TITLE = re.compile(
    rf"(?:{_BEFORE}[ _.-]*)?(?:{_WORDS})(?:[ _.-]*{_AFTER})?"
    rf"|(?:{_BEFORE})[ _.-]*(?:ids?|nos?|nrs?|num(?:bers?)?)"
    r"|.*[ _.-](?:status|stage|grade|batch|survival)",
    re.IGNORECASE,
)
# A column of whole numbers is suspected if it has at least this many values other than 0. With
# fewer, rounded numbers may be whole by chance.
_MIN_WHOLE_VALUES = 5
# Smallest probability that is assumed for a number to be whole by chance: numbers are often rounded
# to two decimals.
_MIN_WHOLE_SHARE = 0.01
# Largest expected number of columns that are whole by chance. A table of any size then has a chance
# of at most one in a thousand of a false alarm, if its values are rounded independently.
_MAX_CHANCE = 1e-3
# Largest number of titles in a message.
_MAX_LISTED = 5


def refuse_numeric_annotations(table: RawTable) -> None:
    """Raise FlawError if some columns or rows of numbers are probably annotations.

    Tables whose format defines where the features are, such as GCT, are not checked: their
    annotations are separate from their values.
    """
    if table.features_in is not None:
        return
    if table.column_names is not None:
        values = as_data_matrix(table.values).values
        found = find_numeric_annotations(values, table.column_names)
        if found:
            raise _suspicion_error([table.column_names[j] for j in found], "column")
    named = [name for name in table.row_names or () if is_annotation_title(name)]
    if named and 2 * len(named) < len(table.row_names or ()):
        raise _suspicion_error(named, "row")


def _suspicion_error(titles: Sequence[str], kind: str) -> FlawError:
    """Return the error for columns or rows (`kind`) that are probably annotations."""
    one = len(titles) == 1
    shown = ", ".join(map(repr, titles[:_MAX_LISTED]))
    shown += ", ..." if len(titles) > _MAX_LISTED else ""
    return FlawError(
        Sentence(
            "has {count} of numbers that {look} of the samples, not {feature}: {shown}. Set {each} "
            "aside with {option}, or keep {them} among the values with {keep}",
            count=f"a {kind}" if one else f"{len(titles)} {kind}s",
            look="looks like an annotation" if one else "look like annotations",
            feature="a feature" if one else "features",
            shown=shown,
            each="it" if one else "each of them",
            option=Setting("annotations", titles[0]),
            them="it" if one else "them",
            keep=Setting("keep_numeric", True),
        )
    )


def is_annotation_title(title: str) -> bool:
    """Return whether a title is a usual title of annotations of samples, such as "age"."""
    return bool(_ANNOTATION_TITLE.fullmatch(title.strip()))


def find_numeric_annotations(values: NDArray[Any], titles: Sequence[str]) -> list[int]:
    """Return the positions of the columns that are probably annotations.

    If half of the columns or more are suspected, none is returned: in a table of such quantities,
    they are the measurements.
    """
    is_named = np.array([is_annotation_title(title) for title in titles])
    suspected = is_named | _are_whole_unlike_others(np.asarray(values), is_named)
    if 2 * suspected.sum() >= len(titles):
        return []
    return np.flatnonzero(suspected).tolist()


def _are_whole_unlike_others(
    values: NDArray[Any], is_named: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a mask of the columns that contain whole numbers, unlike most other columns.

    Values of 0 are not counted, since zeros are frequent in logarithms of counts. A column is also
    left out if it has a single value other than 0, which may be a limit of detection.
    """
    with np.errstate(invalid="ignore"):  # comparisons with NaN and infinity
        is_counted = np.isfinite(values) & (values != 0)
        is_whole = is_counted & (values == np.rint(values))
    n_counted, n_whole = is_counted.sum(axis=0), is_whole.sum(axis=0)
    all_whole = n_whole == n_counted
    others = ~all_whole & ~is_named
    none = np.zeros(values.shape[1], dtype=bool)
    # If most columns are whole, the table consists of counts or ranks.
    if 2 * others.sum() <= values.shape[1]:
        return none
    share = max(n_whole[others].sum() / n_counted[others].sum(), _MIN_WHOLE_SHARE)
    chance = values.shape[1] * share ** np.minimum(n_counted, 1000)
    candidates = all_whole & (n_counted >= _MIN_WHOLE_VALUES) & (chance < _MAX_CHANCE)
    for j in np.flatnonzero(candidates):
        none[j] = np.unique(values[is_counted[:, j], j]).size > 1 or not is_counted[:, j].all()
    return none
