"""Checkpoint: a file with the finished steps of a search, from which the search can be continued.

A step is the computation of the feature set for one number of features and one rank, or the
evaluation of one feature set. The file may have been damaged or edited. Every value is therefore
validated when the file is read, since the compiled code that uses the values does not check them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.selection import Evaluation
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapCurve
from mrshc.core.trees.pruning import PrunedTree
from mrshc.core.trees.tree import Tree, check_linkage
from mrshc.errors import invalid_parameter_error
from mrshc.utils.step_journal import JournalMismatchError, StepJournal, damaged_line_error
from mrshc.version import __version__

# Patterns of the names of steps. The names are defined in `mrshc.core.search`. The name of a
# feature set contains the target number of features and the rank. The name of an evaluation
# contains the SHA-256 digest of the feature set that was evaluated.
_FEATURES_NAME = re.compile(r"features [0-9]+ ([0-9]+)")
_EVALUATION_NAME = re.compile(r"evaluation [0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSizes:
    """Properties of the steps of a search that are known before the search starts.

    Attributes
    ----------
    n_samples, n_features : int
        Shape of the data.
    n_leaves : int or None
        Largest number of clusters into which every tree is cut; None if the trees are pruned
        instead of cut.
    cut_scores : tuple of str, default=()
        Names of the scores that the selection rule computes for each cut of a tree.
    """

    n_samples: int
    n_features: int
    n_leaves: int | None
    cut_scores: tuple[str, ...] = ()


class Checkpoint(MutableMapping[str, "FeatureSet | Evaluation"]):
    """Mapping from the names of finished steps to their results, stored in a file.

    A step that is added to the mapping is appended to the file at once. If the process is killed,
    only unfinished steps are lost. Steps cannot be deleted.

    Parameters
    ----------
    path : str or path-like
        Path of the file, which is created if it does not exist.
    search : str
        Text that identifies the search. It depends on the data and on all parameters that affect
        the steps.
    sizes : StepSizes
        Properties that the steps in the file must have.

    Raises
    ------
    ParameterError
        If `path` is neither a string nor path-like.
    JournalMismatchError
        If the file belongs to a search with different data or parameters, or was written by another
        version of mrshc.
    DamagedJournalError
        If the file is not a checkpoint, or contains an invalid step.
    """

    def __init__(self, path: str | os.PathLike[str], *, search: str, sizes: StepSizes) -> None:
        if not isinstance(path, str | os.PathLike):
            raise invalid_parameter_error(
                "checkpoint", path, allowed="be the path of a file or None"
            )
        # Another version of mrshc may compute different results, which must not be mixed with the
        # results of this version.
        work = sha256(f"mrshc {__version__} {search}".encode()).hexdigest()
        file = Path(path)
        try:
            self._file = StepJournal(file, work=work)
        except JournalMismatchError:
            raise JournalMismatchError(
                f"{path} holds the steps of a search with other data, other parameters or another "
                "version of mrshc. Remove it to begin anew."
            ) from None
        self._steps = dict[str, FeatureSet | Evaluation]()
        for number, entry in enumerate(self._file.entries, start=2):  # the header is line 1
            try:
                name, content = _split_entry(entry)
                self._steps[name] = _step_from_json(name, content, sizes)
            # JSON allows integers of any size; numpy raises OverflowError for very large integers.
            except (ValueError, TypeError, OverflowError):
                raise damaged_line_error(file, number) from None

    def __getitem__(self, name: str) -> FeatureSet | Evaluation:
        return self._steps[name]

    def __setitem__(self, name: str, step: FeatureSet | Evaluation) -> None:
        # The step is written to the file first. If writing fails, the step is not added to the
        # mapping, so it does not count as finished.
        self._file.append([name, _step_to_json(step)])
        self._steps[name] = step

    def __delitem__(self, name: str) -> None:
        raise TypeError("Steps of a checkpoint cannot be deleted.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _step_to_json(step: FeatureSet | Evaluation) -> dict[str, Any]:
    """Return the content of a step as a dictionary that can be written as JSON.

    Floats need not be treated specially: Python writes enough digits to restore them exactly.
    """
    if isinstance(step, FeatureSet):
        return {
            "indices": step.indices.tolist(),
            "l1_bound": float(step.l1_bound),
            "rank": int(step.rank),
            "reached": bool(step.reached),
        }
    return {
        "linkage": step.pruned.tree.linkage_matrix.tolist(),
        "splits": [int(node) for node in step.pruned.splits],
        "tests": [
            [int(node), _gap_curve_to_json(test)] for node, test in step.pruned.tests.items()
        ],
        "silhouettes": step.silhouettes.tolist(),
        **{name: scores.tolist() for name, scores in step.scores.items()},
    }


def _gap_curve_to_json(curve: GapCurve) -> dict[str, Any]:
    return {
        "log_dispersion": curve.log_dispersion.tolist(),
        "reference": curve.reference.tolist(),
        "gap": curve.gap.tolist(),
        "standard_error": curve.standard_error.tolist(),
        "n_clusters": int(curve.n_clusters),
    }


def _split_entry(entry: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the content of a step from its entry in the file.

    Raise ValueError if `entry` is not a list that consists of a string and a dictionary.
    """
    _check_condition(isinstance(entry, list) and len(entry) == 2)
    name, content = entry
    _check_condition(isinstance(name, str) and isinstance(content, dict))
    return name, content


def _check_condition(condition: bool) -> None:
    """Raise ValueError if `condition` is False.

    The message of the error is not shown to the user. `Checkpoint` replaces the error by another
    error, whose message contains the line number in the file.
    """
    if not condition:
        raise ValueError("not a step")


def _step_from_json(
    name: str, content: dict[str, Any], sizes: StepSizes
) -> FeatureSet | Evaluation:
    """Return the step with the given name and JSON content.

    Raise ValueError, TypeError or OverflowError if the name or the content is invalid.
    """
    if match := _FEATURES_NAME.fullmatch(name):
        features = _feature_set_from_json(content, sizes)
        _check_condition(str(features.rank) == match[1])
        return features
    _check_condition(_EVALUATION_NAME.fullmatch(name) is not None)
    return _evaluation_from_json(content, sizes)


def _feature_set_from_json(content: dict[str, Any], sizes: StepSizes) -> FeatureSet:
    _check_condition(content.keys() == {"indices", "l1_bound", "rank", "reached"})
    # The types are compared exactly rather than with `isinstance`, since True is an instance of int
    # but not a valid rank.
    _check_condition(type(content["rank"]) is int and type(content["reached"]) is bool)
    indices = np.array(content["indices"])
    _check_condition(indices.dtype.kind == "i" and indices.ndim == 1 and indices.size > 0)
    # The indices must be strictly increasing, so the first index is the smallest and the last index
    # is the largest.
    _check_condition(
        indices[0] >= 0 and indices[-1] < sizes.n_features and bool((np.diff(indices) > 0).all())
    )
    # A vector of p entries with unit Euclidean norm has an L1 norm between 1 and sqrt(p), where p
    # is the number of features. The factor 1 + 1e-9 allows for rounding errors. It has not been
    # tuned, since it does not affect the result.
    bound = float(_finite_array([content["l1_bound"]], (1,))[0])
    _check_condition(1.0 <= bound <= np.sqrt(sizes.n_features) * (1 + 1e-9))
    return FeatureSet(
        indices=indices.astype(np.intp),
        l1_bound=bound,
        rank=content["rank"],
        reached=content["reached"],
    )


def _evaluation_from_json(content: dict[str, Any], sizes: StepSizes) -> Evaluation:
    _check_condition(
        content.keys() == {"linkage", "splits", "tests", "silhouettes", *sizes.cut_scores}
    )
    n = sizes.n_samples
    tree = Tree(linkage_matrix=check_linkage(content["linkage"], n_samples=n))
    pruned = PrunedTree(
        tree=tree,
        splits=_splits_from_json(content["splits"], tree),
        tests=dict(_gap_curve_from_json(entry, tree) for entry in content["tests"]),
    )
    silhouettes = _finite_array(content["silhouettes"], (pruned.n_leaves,))
    _check_condition(bool((np.abs(silhouettes) <= 1).all()))  # silhouettes are in [-1, 1]
    _check_condition(sizes.n_leaves is None or pruned.n_leaves == sizes.n_leaves)
    n_cuts = pruned.n_leaves - 1  # cuts into 2, 3, ... clusters; one cluster has no score
    scores = {name: _finite_array(content[name], (n_cuts,)) for name in sizes.cut_scores}
    return Evaluation(pruned=pruned, silhouettes=silhouettes, scores=scores)


def _splits_from_json(splits: Any, tree: Tree) -> tuple[int, ...]:
    """Return the nodes that were split, in the order of the splits.

    At first, the root is the only cluster. Each split replaces a cluster by its two children. Raise
    ValueError if a node in `splits` is a leaf, or is not a cluster when it is split.
    """
    _check_condition(isinstance(splits, list))
    clusters = {tree.root}
    for node in splits:
        _check_condition(type(node) is int and node in clusters and node >= tree.n_samples)
        clusters.remove(node)
        clusters.update(tree.children(node))
    return tuple(splits)


def _gap_curve_from_json(entry: Any, tree: Tree) -> tuple[int, GapCurve]:
    """Return a pair: the number of a tested node, and the gap statistic of the node.

    Raise ValueError or OverflowError if `entry` is not the JSON form of such a pair.
    """
    _check_condition(isinstance(entry, list) and len(entry) == 2)
    node, test = entry
    _check_condition(type(node) is int and tree.n_samples <= node <= tree.root)
    arrays = ("log_dispersion", "reference", "gap", "standard_error")
    _check_condition(isinstance(test, dict) and test.keys() == {*arrays, "n_clusters"})
    n_references, k = np.shape(test["reference"])
    n_clusters = test["n_clusters"]
    # The gap statistic compares one cluster with two or more clusters, and its standard error
    # requires at least two reference data sets.
    _check_condition(
        n_references >= 2 and k >= 2 and type(n_clusters) is int and 1 <= n_clusters <= k
    )
    return node, GapCurve(
        log_dispersion=_finite_array(test["log_dispersion"], (k,)),
        reference=_finite_array(test["reference"], (n_references, k)),
        gap=_finite_array(test["gap"], (k,)),
        standard_error=_finite_array(test["standard_error"], (k,)),
        n_clusters=n_clusters,
    )


def _finite_array(values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return `values` as an array of floats with the given shape.

    Raise ValueError if `values` has another shape or contains anything but finite numbers. Text and
    booleans are not converted to numbers.
    """
    array = np.array(values)
    _check_condition(array.dtype.kind in "if" and array.shape == shape)
    _check_condition(bool(np.isfinite(array).all()))
    return array.astype(np.float64)
