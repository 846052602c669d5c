"""Finished steps of a search in a file, so that a search that was interrupted goes on there."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.far import FarData
from mrshc.core.gap import GapCurve
from mrshc.core.pruning import PrunedTree
from mrshc.core.search import Evaluation
from mrshc.core.sparsity import FeatureSet
from mrshc.core.tree import Tree
from mrshc.files import Journal, OtherWorkError

# Rows hashed at a time: a table in another order of memory is copied in pieces.
_HASHED_ROWS = 64


def fingerprint(X: NDArray[Any] | FarData) -> str:
    """Return a hash of the values of a table; it depends on their type, not on their layout.

    Of data that live elsewhere, the means of features and the sums of samples stand for the values.
    """
    digest = sha256(f"{X.dtype.str} {X.shape}".encode())
    if isinstance(X, FarData):
        digest.update(X.found.means.data)
        digest.update(X.found.row_sums.data)
        return digest.hexdigest()
    for start in range(0, X.shape[0], _HASHED_ROWS):
        digest.update(np.ascontiguousarray(X[start : start + _HASHED_ROWS]).data)
    return digest.hexdigest()


class Checkpoint(MutableMapping[str, "FeatureSet | Evaluation"]):
    """The memory of a search, kept in a file line by line."""

    def __init__(self, path: str | os.PathLike[str], *, search: str) -> None:
        work = sha256(f"mrshc {version('mrshc')} {search}".encode()).hexdigest()
        try:
            self._file = Journal(Path(path), work=work)
        except OtherWorkError:
            raise OtherWorkError(
                f"{path} holds the steps of a search in other data, with other parameters or of "
                "another version. Remove it to begin anew."
            ) from None
        self._steps = {name: _read(content) for name, content in self._file.entries}

    def __getitem__(self, name: str) -> FeatureSet | Evaluation:
        return self._steps[name]

    def __setitem__(self, name: str, step: FeatureSet | Evaluation) -> None:
        self._file.append([name, _written(step)])
        self._steps[name] = step

    def __delitem__(self, name: str) -> None:
        raise TypeError("What is done stays done.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _written(step: FeatureSet | Evaluation) -> dict[str, Any]:
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
        "tests": [[int(node), _written_test(test)] for node, test in step.pruned.tests.items()],
        "silhouettes": step.silhouettes.tolist(),
        "evidence": step.evidence.tolist(),
    }


def _written_test(test: GapCurve) -> dict[str, Any]:
    return {
        "log_dispersion": test.log_dispersion.tolist(),
        "reference": test.reference.tolist(),
        "gap": test.gap.tolist(),
        "standard_error": test.standard_error.tolist(),
        "n_clusters": int(test.n_clusters),
    }


def _read(content: dict[str, Any]) -> FeatureSet | Evaluation:
    if "indices" in content:
        indices = np.array(content.pop("indices"), dtype=np.intp)
        return FeatureSet(indices=indices, **content)
    pruned = PrunedTree(
        tree=Tree(linkage_matrix=np.array(content["linkage"])),
        splits=tuple(content["splits"]),
        tests={node: _read_test(test) for node, test in content["tests"]},
    )
    return Evaluation(
        pruned=pruned,
        silhouettes=np.array(content["silhouettes"]),
        evidence=np.array(content["evidence"], dtype=np.float64),
    )


def _read_test(test: dict[str, Any]) -> GapCurve:
    n_clusters = test.pop("n_clusters")
    return GapCurve(**{name: np.array(v) for name, v in test.items()}, n_clusters=n_clusters)
