"""Where a fit takes place: here, on the workers of a cluster, or on a device."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.data.conversion import data_matrix
from mrshc.core.data.data_matrix import DataMatrix, UnreadableError
from mrshc.errors import LostError, UserError
from mrshc.io.memory import size

# Seconds until a scheduler and a worker must have answered.
_PATIENCE = 10
# A chunk that cannot be had is tried again this often.
_RETRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """Where X is put, and where the work is done."""

    name: str  # for a sentence; empty: here
    put: Callable[[DataMatrix], DataMatrix]  # while it is at work
    takes_arrays: bool  # also those that are in memory here
    working: Callable[[], AbstractContextManager[None]]  # to be entered by the thread that works


HERE = Place(name="", put=lambda X: X, takes_arrays=False, working=nullcontext)


@contextmanager
def place_of(*, dask: str | None = None, device: str | None = None) -> Iterator[Place]:
    """Give the place that was asked for: the address of a scheduler, or the name of a device."""
    if dask is not None and device is not None:
        raise UserError("--dask and --device do not go together. Leave one of them out.")
    if dask is not None:
        with _client(dask) as client:
            yield Place(
                name=f"the workers of {dask}",
                put=lambda X: _on_workers(X, client),
                takes_arrays=False,
                working=lambda: _spread(dask),
            )
    elif device is not None:
        _refuse_unknown(device)
        yield Place(
            name=device,
            put=lambda X: _on_device(X, device),
            takes_arrays=True,
            working=lambda: _enough_memory(device),
        )
    else:
        yield HERE


@contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        import distributed
    except ImportError:
        raise UserError("--dask needs the extra 'dask': pip install 'mrshc[dask]'.") from None
    for logger in ("distributed", "distributed.client"):  # what they say, we say
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No scheduler of Dask answers at {address!r}: {error}. Give the address that it "
            "showed when it was started, such as tcp://10.0.0.1:8786."
        ) from None
    with client:
        _refuse_idle(client, address)
        yield client


def _refuse_idle(client: Any, address: str) -> None:
    """Refuse a cluster that cannot do the work."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
        client.run(_room)
    except TimeoutError:
        raise UserError(
            f"The scheduler at {address} has no workers. Start some, such as by: dask worker "
            f"{address}"
        ) from None
    except Exception as error:  # of many kinds: it comes from elsewhere
        raise UserError(
            f"The workers of {address} cannot use mrshc: {error}. Install the same packages there "
            "as here, mrshc among them."
        ) from None


def _room(dask_worker: Any) -> int:
    """Return the memory that a worker may use; none if it does not know."""
    return int(dask_worker.memory_manager.memory_limit or 0)


def _on_workers(X: DataMatrix, client: Any) -> DataMatrix:
    """Return X as chunks that workers read from its file themselves, and keep if they can."""
    if X.chunk_widths is None:
        return X
    import dask.array

    chunks = (X.shape[0], X.chunk_widths)
    empty = np.empty((0, 0), X.dtype)
    array = dask.array.from_array(X, chunks=chunks, name=False, asarray=False, meta=empty)
    if 2 * X.nbytes < sum(client.run(_room).values()):
        array = client.persist(array, retries=_RETRIES)
    return data_matrix(array)


@contextmanager
def _spread(address: str) -> Iterator[None]:
    """Let joblib send tasks to the workers; say so if they are lost for good."""
    import joblib
    from distributed import KilledWorker

    try:
        with joblib.parallel_config("dask"):
            yield
    except (OSError, KilledWorker, CancelledError) as error:
        # Errors of files have a number; that a part of X cannot be read is said already.
        if isinstance(error, UnreadableError) or getattr(error, "errno", None) is not None:
            raise
        raise LostError(
            f"The cluster at {address} is lost: {str(error).rstrip('.')}. Start it again, and see "
            "that its workers have enough memory."
        ) from error


def _refuse_unknown(device: str) -> None:
    try:
        import array_api_compat  # noqa: F401 - what torch's arrays are used by
        import torch
    except ImportError:
        raise UserError("--device needs the extra 'gpu': pip install 'mrshc[gpu]'.") from None
    try:
        torch.zeros(1, dtype=torch.float64, device=device).sum().item()
    except Exception as error:  # of many kinds
        said = str(error).strip().splitlines()[0].split(". ")[0].rstrip(".")
        raise UserError(
            f"There is no device {device!r} that can be used: {said}. Name another, such as cuda, "
            "cuda:1 or cpu."
        ) from None


def _on_device(X: DataMatrix, device: str) -> DataMatrix:
    """Return a copy of X on a device; only blocks of it are here meanwhile."""
    import torch

    try:
        there = torch.empty(X.shape, dtype=getattr(torch, X.dtype.name), device=device)
    except RuntimeError:  # for want of memory, which has an error of its own on some devices only
        raise torch.OutOfMemoryError from None
    for start, block in X.map_blocks(_block):
        stop = start + block.shape[1]
        there[:, start:stop] = torch.from_numpy(np.require(block, requirements="W"))
    return data_matrix(there)


def _block(block: Any, start: int, _: Any) -> tuple[int, Any]:
    return start, block


@contextmanager
def _enough_memory(device: str) -> Iterator[None]:
    """Say so if a device has too little memory."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        kind, room = torch.device(device), ""
        if kind.type == "cuda":
            room = f" (it has {size(torch.cuda.mem_get_info(kind)[1])})"
        raise UserError(
            f"The memory of {device}{room} does not suffice for X. Leave --device out: what does "
            "not fit is read in blocks."
        ) from None
