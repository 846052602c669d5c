"""Errors that the user can correct, and how tables of results show errors."""

import pickle

import pytest

from mrshc.app.execution_backends import ResourceLostError
from mrshc.comparison import format_error
from mrshc.errors import MissingPackageError, UserError


def test_tables_of_results_name_python_classes_of_errors():
    assert format_error(UserError("rank must be 1, got 0.")) == "ValueError: rank must be 1, got 0."
    assert format_error(MissingPackageError("pandas is missing.")) == (
        "ImportError: pandas is missing."
    )
    assert format_error(ResourceLostError("gone")) == "OSError: gone"
    assert format_error(RuntimeError("no")) == "RuntimeError: no"


@pytest.mark.parametrize("kind", [UserError, MissingPackageError, ResourceLostError])
def test_errors_are_pickled_with_their_sentences(kind):
    error = kind("It is gone.")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (kind, "It is gone.")
    assert isinstance(error, UserError) == isinstance(error, ValueError)
