"""Journal of simulated statistics: a file from which an interrupted significance test continues."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator, MutableMapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.utils.step_journal import JournalMismatchError, StepJournal, damaged_line_error
from mrshc.version import __version__

# Node of the tree, name of the procedure that is repeated, and number of the simulated data set.
# A node may be tested with several procedures.
SimulationKey = tuple[int, str, int]

# Parameters that do not affect the statistics. Each repeated fit has a seed of its own, so the seed
# of the model matters only for its tree, which is compared separately.
_PARAMETERS_WITHOUT_EFFECT = {"n_jobs", "verbose", "checkpoint", "random_state"}


class SimulationJournal(MutableMapping[SimulationKey, float]):
    """Mapping from simulated data sets to their statistics, stored in a file.

    A statistic that is added to the mapping is appended to the file at once. If the process is
    killed, only unfinished simulations are lost. An incomplete last line is ignored. Statistics
    cannot be deleted.

    The keys are triples (node, procedure, number). A statistic depends neither on the level of the
    test nor on the number of simulations, so a journal may be continued with other values of both.

    Parameters
    ----------
    path : str or path-like
        Path of the file, which is created if it does not exist.
    model : TreeClusterer
        Fitted estimator whose tree is tested.
    X : ndarray of shape (n_samples, n_features)
        The data of the fit.
    seed : int
        Seed of the simulations.

    Raises
    ------
    JournalMismatchError
        If the file belongs to other data, another model or another seed, or was written by another
        version of mrshc.
    DamagedJournalError
        If the file is not a journal, or contains an invalid statistic.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, model: Any, X: NDArray[Any], seed: int
    ) -> None:
        file = Path(path)
        try:
            self._file = StepJournal(file, work=_identify(model, X, seed))
        except JournalMismatchError:
            raise JournalMismatchError(
                f"{path} holds simulations for other data, another model, another seed or another "
                "version of mrshc. Remove it to begin anew."
            ) from None
        self._statistics = dict[SimulationKey, float]()
        n = len(X)
        for line, entry in enumerate(self._file.entries, start=2):  # the header is line 1
            if not _is_valid(entry, n_samples=n):
                raise damaged_line_error(file, line)
            node, procedure, number, statistic = entry
            # JSON has no NaN, which is the statistic of data without a split.
            self._statistics[node, procedure, number] = (
                math.nan if statistic is None else float(statistic)
            )

    def complete(
        self,
        numbers: Iterable[int],
        simulate: Callable[[list[int]], Generator[float, None, None]],
        *,
        node: int,
        procedure: str,
    ) -> Generator[float, None, None]:
        """Yield the statistics of simulated data sets, and simulate only those not in the journal.

        Parameters
        ----------
        numbers : iterable of int
            Numbers of the simulated data sets. The statistics are yielded in this order.
        simulate : callable
            Function that is called with the numbers of the data sets that are not in the journal,
            and returns a generator of their statistics.
        node : int
            Number of the node that is tested.
        procedure : str
            Name of the procedure that is repeated.
        """
        keys = [(node, procedure, number) for number in numbers]
        missing = [key for key in keys if key not in self]
        if not missing:  # workers need not be started
            yield from (self[key] for key in keys)
            return
        with closing(simulate([number for _, _, number in missing])) as simulated:
            for key in keys:
                if key not in self:
                    self[key] = next(simulated)
                yield self[key]

    def __getitem__(self, key: SimulationKey) -> float:
        return self._statistics[key]

    def __setitem__(self, key: SimulationKey, statistic: float) -> None:
        # The file is written first. If writing fails, the simulation does not count as finished.
        value = None if math.isnan(statistic) else float(statistic)
        self._file.append([*key, value])
        self._statistics[key] = float(statistic)

    def __delitem__(self, key: SimulationKey) -> None:
        raise TypeError("Statistics of a journal cannot be deleted.")

    def __iter__(self) -> Iterator[SimulationKey]:
        return iter(self._statistics)

    def __len__(self) -> int:
        return len(self._statistics)


def _identify(model: Any, X: NDArray[Any], seed: int) -> str:
    """Return a hash of everything on which the statistics depend."""
    parameters = model.get_params(deep=False)
    given = sorted(
        (k, repr(v)) for k, v in parameters.items() if k not in _PARAMETERS_WITHOUT_EFFECT
    )
    tree = sha256(model.linkage_matrix_.tobytes()).hexdigest()
    data = ArrayMatrix(X).fingerprint()
    text = f"mrshc {__version__} {type(model).__name__} {given} {tree} {data} {seed}"
    return sha256(text.encode()).hexdigest()


def _is_valid(entry: Any, *, n_samples: int) -> bool:
    """Return whether an entry of the file describes a simulation for a tree of `n_samples`."""
    if not isinstance(entry, list) or len(entry) != 4:
        return False
    node, procedure, number, statistic = entry
    # The types are compared exactly, since True is an instance of int.
    return (
        type(node) is int
        and n_samples <= node <= 2 * n_samples - 2
        and type(procedure) is str
        and type(number) is int
        and number >= 0
        and (statistic is None or type(statistic) in (int, float))
        and statistic == statistic  # not NaN, which Python writes as null here
    )
