"""Execution backends: this process, the workers of a Dask cluster, or a device such as a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.data.data_matrix import DataMatrix, UnreadableError
from mrshc.errors import ResourceLostError, UserError
from mrshc.io.memory import format_size

# Seconds to wait for an answer of a scheduler, and for its first worker. Dask's own default of 30
# is long for a mistyped address. Not tuned: results do not depend on it.
_CONNECTION_TIMEOUT = 10
# Attempts to compute a chunk again after a worker was lost, so that the loss of one worker does
# not end a run. Not tuned: results do not depend on it.
_N_RETRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExecutionBackend:
    """Where X is stored during a fit, and where the fit is computed.

    Attributes
    ----------
    name : str
        Name of the backend as a message uses it; empty for this process.
    transfer : callable
        Takes a `DataMatrix` and returns it as stored on the backend. To be called within
        `activate`.
    transfers_arrays : bool
        Whether arrays in memory are transferred too, or only out-of-core data.
    activate : callable
        Returns a context manager within which computations run on the backend. The thread that
        computes must enter it.
    """

    name: str
    transfer: Callable[[DataMatrix], DataMatrix]
    transfers_arrays: bool
    activate: Callable[[], AbstractContextManager[None]]


LOCAL_BACKEND = ExecutionBackend(
    name="", transfer=lambda X: X, transfers_arrays=False, activate=nullcontext
)


@contextmanager
def open_backend(
    *, dask: str | None = None, device: str | None = None
) -> Iterator[ExecutionBackend]:
    """Yield an execution backend; by default this process.

    Parameters
    ----------
    dask : str or None, default=None
        Address of a Dask scheduler.
    device : str or None, default=None
        Name of a device as PyTorch knows it, such as "cuda".
    """
    if dask is not None and device is not None:
        raise UserError("--dask and --device cannot be combined. Leave one of them out.")
    if dask is not None:
        with _connect(dask) as client:
            yield ExecutionBackend(
                name=f"the workers of {dask}",
                transfer=lambda X: _to_workers(X, client),
                # A worker reads its part of a file itself; an array in memory would have to be
                # sent over the network, so only the tasks of the search are distributed.
                transfers_arrays=False,
                activate=lambda: _joblib_on_workers(dask),
            )
    elif device is not None:
        _check_device(device)
        yield ExecutionBackend(
            name=device,
            transfer=lambda X: _copy_to_device(X, device),
            transfers_arrays=True,
            activate=lambda: _explain_lack_of_memory(device),
        )
    else:
        yield LOCAL_BACKEND


@contextmanager
def _connect(address: str) -> Iterator[Any]:
    """Yield a client of a Dask scheduler whose workers can run mrshc."""
    try:
        import distributed
    except ImportError:
        raise UserError("--dask needs the extra 'dask': pip install 'mrshc[dask]'.") from None
    # Failures are reported below in one sentence; Dask would log them a second time.
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=_CONNECTION_TIMEOUT)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No Dask scheduler answers at {address!r}: {error}. Give the address that it "
            "showed when it was started, such as tcp://10.0.0.1:8786."
        ) from None
    with client:
        _check_workers(client, address)
        yield client


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or with workers that cannot import mrshc."""
    try:
        client.wait_for_workers(1, timeout=_CONNECTION_TIMEOUT)
        # The function is unpickled by import, so the call fails where mrshc is not installed.
        client.run(_worker_memory_limit)
    except TimeoutError:
        raise UserError(
            f"The scheduler at {address} has no workers. Start some, for example with: dask worker "
            f"{address}"
        ) from None
    except Exception as error:  # any error of a worker is raised here, whatever its class
        raise UserError(
            f"The workers of {address} cannot use mrshc: {error}. Install the same packages on the "
            "workers as here, including mrshc."
        ) from None


def _worker_memory_limit(dask_worker: Any) -> int:
    """Return the bytes that a worker may use; 0 if the worker has no limit."""
    # Dask passes the worker to a function that has a parameter of this name.
    return int(dask_worker.memory_manager.memory_limit or 0)


def _to_workers(X: DataMatrix, client: Any) -> DataMatrix:
    """Return X as a Dask array whose chunks the workers read from its file themselves."""
    if X.chunk_widths is None:
        return X
    import dask.array

    chunks = (X.shape[0], X.chunk_widths)
    empty = np.empty((0, 0), X.dtype)
    # `name=False` avoids a hash of the content, and `meta` an access to learn the type: either
    # would read from the file here.
    array = dask.array.from_array(X, chunks=chunks, name=False, asarray=False, meta=empty)
    # Keep X in the memory of the workers if that leaves as much again for computations.
    if 2 * X.nbytes < sum(client.run(_worker_memory_limit).values()):
        array = client.persist(array, retries=_N_RETRIES)
    return as_data_matrix(array)


@contextmanager
def _joblib_on_workers(address: str) -> Iterator[None]:
    """Run joblib's tasks on the workers; raise `ResourceLostError` if the cluster is lost."""
    import joblib
    from distributed import KilledWorker

    try:
        with joblib.parallel_config("dask"):
            yield
    except (OSError, KilledWorker, CancelledError) as error:
        # Errors of the file system have an error number, those of connections have none. An
        # unreadable part of X has its own message.
        if isinstance(error, UnreadableError) or getattr(error, "errno", None) is not None:
            raise
        raise ResourceLostError(
            f"The cluster at {address} is lost: {str(error).rstrip('.')}. Start it again, and make "
            "sure that its workers have enough memory."
        ) from error


def _check_device(device: str) -> None:
    """Refuse a device that PyTorch cannot use, or a missing extra."""
    try:
        import array_api_compat  # noqa: F401 - the interface by which torch arrays are used
        import torch
    except ImportError:
        raise UserError("--device needs the extra 'gpu': pip install 'mrshc[gpu]'.") from None
    try:
        # Sums are made in double precision, which some devices lack: try it out.
        torch.zeros(1, dtype=torch.float64, device=device).sum().item()
    except Exception as error:  # its class depends on the kind of device
        reason = str(error).strip().splitlines()[0].split(". ")[0].rstrip(".")
        raise UserError(
            f"There is no device {device!r} that can be used: {reason}. Name another, such as "
            "cuda, cuda:1 or cpu."
        ) from None


def _copy_to_device(X: DataMatrix, device: str) -> DataMatrix:
    """Return a copy of X on a device, made block by block to need little memory here."""
    import torch

    try:
        copy = torch.empty(X.shape, dtype=getattr(torch, X.dtype.name), device=device)
    # Only some devices raise OutOfMemoryError; the others raise RuntimeError.
    except RuntimeError:
        raise torch.OutOfMemoryError from None
    for start, block in X.map_blocks(_block_with_start):
        stop = start + block.shape[1]
        # torch warns of arrays that cannot be written to, such as those of a memory map.
        copy[:, start:stop] = torch.from_numpy(np.require(block, requirements="W"))
    return as_data_matrix(copy)


def _block_with_start(block: Any, start: int, _: Any) -> tuple[int, Any]:
    """Return the first column of a block and the block; a function for `map_blocks`."""
    return start, block


@contextmanager
def _explain_lack_of_memory(device: str) -> Iterator[None]:
    """Raise `UserError` with the memory of the device if it is exhausted."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        kind, capacity = torch.device(device), ""
        if kind.type == "cuda":
            capacity = f" (it has {format_size(torch.cuda.mem_get_info(kind)[1])})"
        raise UserError(
            f"The memory of {device}{capacity} does not suffice for X. Leave --device out: data "
            "that do not fit into memory are then read in blocks."
        ) from None
