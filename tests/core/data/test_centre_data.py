"""Data in memory are centred as an array, unless they have very many columns."""

import threading

import numpy as np
import pytest

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.centre_data import centre
from mrshc.core.data.centred_array import CentredArray
from mrshc.core.data.centred_blocks import CentredBlocks
from storage_backends import ArrayInBlocks, use_small_blocks


def centred_type(array, kind=ArrayMatrix):
    return type(centre(kind(array), center="columns", drop_constant=True))


@pytest.mark.parametrize(
    ("p", "expected"), [(199_999, CentredArray), (200_000, CentredBlocks), (200_001, CentredBlocks)]
)
def test_an_array_of_200_000_columns_is_read_in_blocks(p, expected):
    assert centred_type(np.zeros((2, p), np.float32)) is expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 5), CentredBlocks),
        ((5, 5), CentredArray),  # as many rows as "very many columns"
        ((6, 7), CentredArray),
        ((4, 4), CentredArray),
        ((1, 9), CentredBlocks),
    ],
)
def test_many_columns_and_fewer_rows_are_read_in_blocks(monkeypatch, shape, expected):
    monkeypatch.setattr("mrshc.core.data.centre_data._MANY_FEATURES", 5)
    array = np.arange(np.prod(shape), dtype=float).reshape(shape)
    assert centred_type(array) is expected
    assert centred_type(array, ArrayInBlocks) is CentredBlocks


def test_the_first_pass_is_that_of_the_statistics(monkeypatch):
    use_small_blocks(monkeypatch, 8)
    A, reports = np.arange(20.0).reshape(4, 5), []
    matrix = centre(
        ArrayInBlocks(A),
        center="none",
        drop_constant=False,
        on_block=lambda *report: reports.append(report),
    )
    assert matrix.n_passes == 1
    threads = set(matrix.map_blocks(lambda _block, _start, _xp: threading.get_ident()))
    assert threads == {threading.get_ident()}  # one thread by default
    assert matrix.n_passes == 2
    assert reports == [(2, 2), (2, 4), (2, 5)]
