"""Finished steps of a search in a file, so that a search that was interrupted goes on there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.selection import Evaluation
from mrshc.core.sparse_pca.l1_path import FeatureSet
from mrshc.core.trees.gap_statistic import GapCurve
from mrshc.core.trees.pruning import PrunedTree
from mrshc.core.trees.tree import Tree, check_linkage
from mrshc.errors import refused
from mrshc.utils.step_journal import OtherWorkError, StepJournal, damaged

_FEATURES_NAME = re.compile(r"features [0-9]+ ([0-9]+)")
_EVALUATION_NAME = re.compile(r"evaluation [0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSizes:
    """What is known of the steps of a search before any is done."""

    n_samples: int
    n_features: int
    n_leaves: int | None  # of every tree, if all are cut alike; None: pruning finds it
    cut_scores: tuple[str, ...] = ()  # names of the scores that the selection rule gives to cuts


class Checkpoint(MutableMapping[str, "FeatureSet | Evaluation"]):
    """The memory of a search, kept in a file line by line.

    Parameters
    ----------
    path : str or path
        A file, which is made if there is none.
    search : str
        What the steps depend on.
    sizes : StepSizes
        What the steps in the file must agree with.
    """

    def __init__(self, path: str | os.PathLike[str], *, search: str, sizes: StepSizes) -> None:
        if not isinstance(path, str | os.PathLike):
            raise refused("checkpoint", path, allowed="be the path of a file or None")
        work = sha256(f"mrshc {version('mrshc')} {search}".encode()).hexdigest()
        file = Path(path)
        try:
            self._file = StepJournal(file, work=work)
        except OtherWorkError:
            raise OtherWorkError(
                f"{path} holds the steps of a search in other data, with other parameters or of "
                "another version. Remove it to begin anew."
            ) from None
        self._steps = dict[str, FeatureSet | Evaluation]()
        for number, entry in enumerate(self._file.entries, start=2):
            try:
                name, content = _split_entry(entry)
                self._steps[name] = _step_from_json(name, content, sizes)
            except (ValueError, TypeError, OverflowError):
                raise damaged(file, number) from None

    def __getitem__(self, name: str) -> FeatureSet | Evaluation:
        return self._steps[name]

    def __setitem__(self, name: str, step: FeatureSet | Evaluation) -> None:
        self._file.append([name, _step_to_json(step)])
        self._steps[name] = step

    def __delitem__(self, name: str) -> None:
        raise TypeError("What is done stays done.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _step_to_json(step: FeatureSet | Evaluation) -> dict[str, Any]:
    """Return a step as JSON holds it; its numbers read back exactly."""
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
        "tests": [[int(node), _gap_curve_to_json(test)] for node, test in step.pruned.tests.items()],
        "silhouettes": step.silhouettes.tolist(),
        **{name: scores.tolist() for name, scores in step.scores.items()},
    }


def _gap_curve_to_json(test: GapCurve) -> dict[str, Any]:
    return {
        "log_dispersion": test.log_dispersion.tolist(),
        "reference": test.reference.tolist(),
        "gap": test.gap.tolist(),
        "standard_error": test.standard_error.tolist(),
        "n_clusters": int(test.n_clusters),
    }


def _split_entry(entry: Any) -> tuple[str, dict[str, Any]]:
    _check_condition(isinstance(entry, list) and len(entry) == 2)
    name, content = entry
    _check_condition(isinstance(name, str) and isinstance(content, dict))
    return name, content


def _check_condition(condition: bool) -> None:
    if not condition:
        raise ValueError("not a step")


def _step_from_json(name: str, content: dict[str, Any], sizes: StepSizes) -> FeatureSet | Evaluation:
    """Return a step; raise ValueError if it is none."""
    if of_features := _FEATURES_NAME.fullmatch(name):
        features = _feature_set_from_json(content, sizes)
        _check_condition(str(features.rank) == of_features[1])
        return features
    _check_condition(_EVALUATION_NAME.fullmatch(name) is not None)
    return _evaluation_from_json(content, sizes)


def _feature_set_from_json(content: dict[str, Any], sizes: StepSizes) -> FeatureSet:
    _check_condition(content.keys() == {"indices", "l1_bound", "rank", "reached"})
    _check_condition(type(content["rank"]) is int and type(content["reached"]) is bool)
    indices = np.array(content["indices"])
    _check_condition(indices.dtype.kind == "i" and indices.ndim == 1 and indices.size > 0)
    _check_condition(
        indices[0] >= 0 and indices[-1] < sizes.n_features and bool((np.diff(indices) > 0).all())
    )
    # Loadings have unit length: their absolute values add up to no more than sqrt(p).
    bound = float(_finite_array([content["l1_bound"]], (1,))[0])
    _check_condition(1.0 <= bound <= np.sqrt(sizes.n_features) * (1 + 1e-9))
    return FeatureSet(
        indices=indices.astype(np.intp),
        l1_bound=bound,
        rank=content["rank"],
        reached=content["reached"],
    )


def _evaluation_from_json(content: dict[str, Any], sizes: StepSizes) -> Evaluation:
    _check_condition(content.keys() == {"linkage", "splits", "tests", "silhouettes", *sizes.cut_scores})
    n = sizes.n_samples
    tree = Tree(linkage_matrix=check_linkage(content["linkage"], n_samples=n))
    pruned = PrunedTree(
        tree=tree,
        splits=_splits_from_json(content["splits"], tree),
        tests=dict(_gap_curve_from_json(entry, tree) for entry in content["tests"]),
    )
    silhouettes = _finite_array(content["silhouettes"], (pruned.n_leaves,))
    _check_condition(bool((np.abs(silhouettes) <= 1).all()))
    _check_condition(sizes.n_leaves is None or pruned.n_leaves == sizes.n_leaves)
    n_cuts = pruned.n_leaves - 1
    scores = {name: _finite_array(content[name], (n_cuts,)) for name in sizes.cut_scores}
    return Evaluation(pruned=pruned, silhouettes=silhouettes, scores=scores)


def _splits_from_json(splits: Any, tree: Tree) -> tuple[int, ...]:
    """Return the nodes that were split: each is there when its turn comes."""
    _check_condition(isinstance(splits, list))
    there = {tree.root}
    for node in splits:
        _check_condition(type(node) is int and node in there and node >= tree.n_samples)
        there.remove(node)
        there.update(tree.children(node))
    return tuple(splits)


def _gap_curve_from_json(entry: Any, tree: Tree) -> tuple[int, GapCurve]:
    _check_condition(isinstance(entry, list) and len(entry) == 2)
    node, test = entry
    _check_condition(type(node) is int and tree.n_samples <= node <= tree.root)
    arrays = ("log_dispersion", "reference", "gap", "standard_error")
    _check_condition(isinstance(test, dict) and test.keys() == {*arrays, "n_clusters"})
    drawn, k = np.shape(test["reference"])
    n_clusters = test["n_clusters"]
    # One cluster is compared with two or more, over reference samples that have a deviation.
    _check_condition(drawn >= 2 and k >= 2 and type(n_clusters) is int and 1 <= n_clusters <= k)
    return node, GapCurve(
        log_dispersion=_finite_array(test["log_dispersion"], (k,)),
        reference=_finite_array(test["reference"], (drawn, k)),
        gap=_finite_array(test["gap"], (k,)),
        standard_error=_finite_array(test["standard_error"], (k,)),
        n_clusters=n_clusters,
    )


def _finite_array(values: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.array(values)
    _check_condition(array.dtype.kind in "if" and array.shape == shape)
    _check_condition(bool(np.isfinite(array).all()))
    return array.astype(np.float64)
