"""Execution backends: the current process, a Dask cluster, or a device such as a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.data.files import UnreadableError
from mrshc.core.data.matrix import BLOCK_CELLS, DataMatrix
from mrshc.errors import UserError
from mrshc.io.memory import format_size
from mrshc.shell.data_matrix import as_data_matrix

# Seconds to wait for a scheduler to respond, and for its first worker. Dask's default of 30 seconds
# is long for a mistyped address. The value is not tuned: it does not affect results.
_CONNECTION_TIMEOUT = 10
# Maximum number of times that a chunk is computed again after a worker was lost, so that the loss
# of one worker does not end a run. The value is not tuned: it does not affect results.
_N_RETRIES = 3


class ResourceLostError(OSError):
    """Error raised if a resource outside this process, such as a compute cluster, is lost.

    The message states which resource is no longer available, and what the user can do.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExecutionBackend:
    """Process, cluster or device on which the data are stored and the estimator is fitted.

    Attributes
    ----------
    name : str
        Name of the backend in messages; empty for the current process.
    transfer : callable
        Function that takes a `DataMatrix` and returns a `DataMatrix` with the same values, stored
        on the backend. The function must be called inside the context manager that `activate`
        returns.
    transfers_arrays : bool
        Whether arrays in memory are transferred to the backend. Out-of-core data, which are read
        from a file in blocks, are always transferred.
    activate : callable
        Function that returns a context manager. Computations on the backend must run inside this
        context manager, in the thread that entered it.
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
    """Yield an execution backend: a Dask cluster, a device or, by default, the current process."""
    if dask is not None and device is not None:
        raise UserError("--dask and --device cannot be combined. Leave one of them out.")
    if dask is not None:
        with _connect(dask) as client:
            yield ExecutionBackend(
                name=f"the workers of {dask}",
                transfer=lambda X: _to_workers(X, client),
                # Each worker reads its part of a file itself, but an array in memory would have to
                # be sent over the network. For arrays, therefore, only whole fits are distributed,
                # as those of the significance and of the stability.
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
    """Yield a client that is connected to the Dask scheduler at `address`.

    Raises UserError if Dask is not installed, if the scheduler does not respond or has no workers,
    or if a worker cannot import mrshc.
    """
    try:
        import distributed
    except ImportError:
        raise UserError("--dask needs the extra 'dask': pip install 'mrshc[dask]'.") from None
    # The user is informed of a failure by the exceptions below. Without this setting, Dask would
    # also log the failure.
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
    """Raise UserError if a cluster has no workers, or if a worker cannot import mrshc."""
    try:
        client.wait_for_workers(1, timeout=_CONNECTION_TIMEOUT)
        # A worker imports mrshc to unpickle the function, so the call fails if mrshc is not
        # installed on a worker.
        client.run(_worker_memory_limit)
    except TimeoutError:
        raise UserError(
            f"The scheduler at {address} has no workers. Start some, for example with: dask worker "
            f"{address}"
        ) from None
    except Exception as error:  # the error of a worker may have any class
        raise UserError(
            f"The workers of {address} cannot use mrshc: {error}. Install the same packages on the "
            "workers as here, including mrshc."
        ) from None


def _worker_memory_limit(dask_worker: Any) -> int:
    """Return the memory limit of a Dask worker in bytes; 0 if the worker has no limit."""
    # Dask passes the worker object to every function that has a parameter named `dask_worker`.
    return int(dask_worker.memory_manager.memory_limit or 0)


def _to_workers(X: DataMatrix, client: Any) -> DataMatrix:
    """Return X as a matrix of Dask chunks, which the workers read from the file of X.

    X itself is returned if other processes cannot read it.
    """
    if not getattr(X, "is_opened_by_others", False):
        return X
    import dask.array

    n, p = X.shape
    width = max(BLOCK_CELLS // n // X.chunk_width, 1) * X.chunk_width
    chunks = (n, min(width, p))
    empty = np.empty((0, 0), X.dtype)
    # With `name=False`, Dask does not compute a hash of X to name the array. With `meta`, Dask does
    # not index X in this process to determine the type of the chunks.
    array = dask.array.from_array(X, chunks=chunks, name=False, asarray=False, meta=empty)
    # Keep X in the memory of the workers if X takes less than half of that memory. The other half
    # is left for computations.
    if 2 * n * p * X.dtype.itemsize < sum(client.run(_worker_memory_limit).values()):
        array = client.persist(array, retries=_N_RETRIES)
    return as_data_matrix(array)


@contextmanager
def _joblib_on_workers(address: str) -> Iterator[None]:
    """Run joblib tasks on the workers of a Dask cluster while the context is active.

    Raises ResourceLostError if the connection to the cluster is lost.
    """
    import joblib
    from distributed import KilledWorker

    try:
        with joblib.parallel_config("dask"):
            yield
    except (OSError, KilledWorker, CancelledError) as error:
        # Unlike an OSError of the file system, an OSError due to a lost connection has no error
        # number. Errors of the file system are raised unchanged, and so is `UnreadableError`, which
        # means that a part of X cannot be read.
        if isinstance(error, UnreadableError) or getattr(error, "errno", None) is not None:
            raise
        raise ResourceLostError(
            f"The cluster at {address} is lost: {str(error).rstrip('.')}. Start it again, and make "
            "sure that its workers have enough memory."
        ) from error


def _check_device(device: str) -> None:
    """Raise UserError if PyTorch cannot compute in double precision on a device.

    The error is also raised if PyTorch or array_api_compat is not installed.
    """
    try:
        import array_api_compat  # noqa: F401 - needed later to use torch arrays
        import torch
    except ImportError:
        raise UserError("--device needs the extra 'gpu': pip install 'mrshc[gpu]'.") from None
    try:
        # Fits compute sums in double precision, which some devices do not support. One such sum is
        # computed here as a test.
        torch.zeros(1, dtype=torch.float64, device=device).sum().item()
    except Exception as error:  # the class of the error depends on the device
        reason = str(error).strip().splitlines()[0].split(". ")[0].rstrip(".")
        raise UserError(
            f"There is no device {device!r} that can be used: {reason}. Name another, such as "
            "cuda, cuda:1 or cpu."
        ) from None


def _copy_to_device(X: DataMatrix, device: str) -> DataMatrix:
    """Return a copy of X on a device.

    The copy is made block by block, so little additional memory is needed in this process. Raises
    `torch.OutOfMemoryError` if the memory of the device is too small.
    """
    import torch

    try:
        copy = torch.empty(X.shape, dtype=getattr(torch, X.dtype.name), device=device)
    # If memory is exhausted, some devices raise OutOfMemoryError, which is a subclass of
    # RuntimeError; others raise a plain RuntimeError.
    except RuntimeError:
        raise torch.OutOfMemoryError from None
    for start, block in X.map(lambda block, start: (start, block)):
        stop = start + block.shape[1]
        # PyTorch warns about read-only arrays, such as those of a memory map, so `np.require`
        # copies read-only arrays.
        copy[:, start:stop] = torch.from_numpy(np.require(block, requirements="W"))
    return as_data_matrix(copy)


@contextmanager
def _explain_lack_of_memory(device: str) -> Iterator[None]:
    """Raise UserError if the memory of a device is exhausted while the context is active."""
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
