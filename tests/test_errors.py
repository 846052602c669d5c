"""Errors keep the parameters that they name, and can be rendered with other names."""

import copy
import pickle
import warnings

import numpy as np
import pytest

from mrshc import SHC, HighVarianceHC, MrSHC, UnsupportedClustersWarning
from mrshc.errors import UserError, format_error
from mrshc.preprocessing import Log2, RangeFilter, Thresholds, VarianceFilter
from mrshc.shell.wording import (
    Parameter,
    ParameterError,
    PythonOnly,
    Sentence,
    Setting,
    invalid_parameter_error,
    reword,
)
from mrshc.validation import check_n_jobs

X = np.random.default_rng(0).normal(size=(9, 6))


def in_capitals(parameter):
    """Return a parameter as the options of a command line might be written."""
    value = getattr(parameter, "value", None)
    return parameter.name.upper() + ("" if value is None else f" {value}")


@pytest.mark.parametrize(
    ("fit", "parameters", "value", "sentence"),
    [
        (
            lambda: VarianceFilter(7).fit(X),
            ("n_features",),
            7,
            "N_FEATURES must be a whole number in [1, 6], got 7. Lower it, or relax the filters "
            "before this one.",
        ),
        (
            lambda: Thresholds(5, 4).fit(X),
            ("floor", "ceiling"),
            (5, 4),
            "FLOOR must not lie above CEILING, got 5 and 4. Exchange them.",
        ),
        (
            lambda: HighVarianceHC(2, linkage="ward", metric="cityblock").fit(X),
            ("linkage", "metric"),
            "cityblock",
            "LINKAGE ward is defined for METRIC sqeuclidean and METRIC correlation only, got "
            "'cityblock'. Choose another linkage or one of these metrics.",
        ),
        (
            lambda: HighVarianceHC(2, n_clusters=10).fit(X),
            ("n_clusters",),
            10,
            "N_CLUSTERS must be a whole number in [1, 9], got 10.",
        ),
        (
            lambda: SHC(2, l1_bound=1.5).fit(X),
            ("n_features_to_select", "l1_bound"),
            (2, 1.5),
            "Give N_FEATURES_TO_SELECT or L1_BOUND, not both, got 2 and 1.5. The bound decides on "
            "the number of features.",
        ),
        (
            lambda: check_n_jobs(0),
            ("n_jobs",),
            0,
            "N_JOBS must be a whole number of workers, -1 for every core, got 0.",
        ),
    ],
)
def test_an_error_keeps_its_parameters_and_can_be_rendered_with_other_names(
    fit, parameters, value, sentence
):
    with pytest.raises(ParameterError) as caught:
        fit()
    error = caught.value
    assert (error.parameters, error.value) == (parameters, value)
    assert reword(error, in_capitals) == sentence
    assert not any(name.upper() in str(error) for name in parameters), "Python names by default"


def test_parameter_names_are_not_searched_for_in_the_text():
    """A feature called n_clusters, or a value with braces, is not changed."""
    with pytest.raises(ParameterError, match=r"leave min_ratio out") as caught:
        RangeFilter(min_ratio=5).fit(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert "such as FLOOR 100 for Affymetrix" in reword(caught.value, in_capitals)
    error = invalid_parameter_error("linkage", "{metric} linkage", allowed="be one of 'ward'")
    assert reword(error, in_capitals) == "LINKAGE must be one of 'ward', got '{metric} linkage'."


def test_parts_for_python_only_are_left_out_elsewhere():
    with pytest.raises(ParameterError, match=r"Thresholds\(floor=\.\.\.\)") as caught:
        Log2().fit(-X)
    assert "Raise them with FLOOR Ellipsis, or add a larger PSEUDOCOUNT." in reword(
        caught.value, in_capitals
    )
    sentence = Sentence("{a}.{none}", a=Parameter("a"), none=PythonOnly(" None is fine."))
    assert (str(sentence), sentence.reword(in_capitals)) == ("a. None is fine.", "A.")


def test_sentences_may_contain_sentences_and_errors():
    inner = Sentence("needs {memory}", memory=Setting("in_memory", True))
    for field in (inner, UserError(inner)):
        outer = Sentence("{name} {flaw}.", name="x.csv", flaw=field)
        assert outer == "x.csv needs in_memory=True."
        assert outer.reword(in_capitals) == "x.csv needs IN_MEMORY True."
    assert reword("as it is", in_capitals) == "as it is"
    assert reword(ValueError("as it is"), in_capitals) == "as it is"


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copied_and_pickled_errors_keep_all_attributes(copy_of):
    error = invalid_parameter_error(
        "rank", {"a": "{b}"}, allowed="be a whole number", advice="Try 1."
    )
    again = copy_of(error)
    assert type(again) is ParameterError
    assert (again.parameters, again.value, again.advice) == (("rank",), {"a": "{b}"}, "Try 1.")
    assert str(again) == str(error)
    assert reword(again, in_capitals) == reword(error, in_capitals)
    sentence = copy_of(Sentence("{a} is wrong.", a=Parameter("a")))
    assert (sentence, sentence.reword(in_capitals)) == ("a is wrong.", "A is wrong.")
    warning = copy_of(UnsupportedClustersWarning("None.", "Use cut(2)."))
    assert (str(warning), warning.finding) == ("None. Use cut(2).", "None.")


def test_tables_of_results_name_python_classes_of_errors():
    assert (
        format_error(invalid_parameter_error("rank", 0, allowed="be 1"))
        == "ValueError: rank must be 1, got 0."
    )
    assert format_error(RuntimeError("no")) == "RuntimeError: no"


def test_a_warning_of_unsupported_clusters_tells_finding_from_advice():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MrSHC(4, rank=1, random_state=0).fit(X)
    (warning,) = (w.message for w in caught)
    assert isinstance(warning, UnsupportedClustersWarning)
    assert warning.finding == "The gap statistic finds a single cluster, whatever the features."
    assert warning.advice == "labels_ holds no more: use cut(2) to cut the tree all the same."
    assert str(warning) == f"{warning.finding} {warning.advice}"
