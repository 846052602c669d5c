"""Every public object is documented as numpydoc prescribes, and the source explains itself."""

import importlib
import inspect
import io
import tokenize
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "mrshc"
MODULES = [
    "mrshc",
    "mrshc.datasets",
    "mrshc.exports",
    "mrshc.io",
    "mrshc.metrics",
    "mrshc.plotting",
    "mrshc.preprocessing",
]
# Rules of numpydoc that are not asked for. GL01: the summary begins on the line of the quotes, as
# PEP 257 has it. ES01: an extended summary only where there is more to say. RT02: results have
# names where there are several. YD01: Yields. SA01, SA04: See Also only where it helps.
NOT_ASKED = {"GL01", "ES01", "RT02", "YD01", "SA01", "SA04"}
# Methods belong to a class, and exceptions and results to a function, which has the examples.
NOT_ASKED_OF_PARTS = {"EX01"}
# Results are made by functions: their fields are documented as attributes, not as parameters.
# Nor are exceptions and warnings made by users.
NOT_ASKED_OF_RESULTS = NOT_ASKED_OF_PARTS | {"PR01"}


def public_names():
    for module in map(importlib.import_module, MODULES):
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module.__name__}.{name}"


def value_of(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def methods_of(name):
    value = value_of(name)
    if inspect.isclass(value):
        for method, function in vars(value).items():
            if not method.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{method}"


def faults(name, not_asked):
    from numpydoc.validate import validate

    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in not_asked]


def not_asked_of(name):
    value = value_of(name)
    if is_dataclass(value):
        return NOT_ASKED | NOT_ASKED_OF_RESULTS
    is_exception = inspect.isclass(value) and issubclass(value, Exception)
    return NOT_ASKED | (NOT_ASKED_OF_RESULTS if is_exception else set())


@pytest.mark.parametrize("name", list(public_names()))
def test_public_objects_are_documented_as_numpydoc_prescribes(name):
    assert not faults(name, not_asked_of(name))


@pytest.mark.parametrize("name", [name for name in public_names() if is_dataclass(value_of(name))])
def test_the_fields_of_results_are_documented(name):
    from numpydoc.docscrape import ClassDoc

    page = ClassDoc(value_of(name))
    documented = [item.name for part in ("Parameters", "Attributes") for item in page[part]]
    written = [part.strip() for names in documented for part in names.split(",")]
    fields_of_result = [field.name for field in fields(value_of(name))]
    assert set(written) >= set(fields_of_result)


@pytest.mark.parametrize("name", [method for name in public_names() for method in methods_of(name)])
def test_public_methods_are_documented_as_numpydoc_prescribes(name):
    returns_self = {"RT03"} if name.endswith(".fit") else set()  # which needs no description
    assert not faults(name, NOT_ASKED | NOT_ASKED_OF_PARTS | returns_self)


def test_one_line_of_code_in_fourteen_has_a_comment_that_says_why():
    n_comments = n_lines = 0
    for file in SOURCE.rglob("*.py"):
        code, comments = set(), set()
        for token in tokenize.generate_tokens(io.StringIO(file.read_text("utf-8")).readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
            elif token.type not in {tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}:
                is_docstring = token.type == tokenize.STRING and token.line.strip().startswith(
                    '"""'
                )
                code |= set() if is_docstring else set(range(token.start[0], token.end[0] + 1))
        n_comments += len(comments)
        n_lines += len(code - comments) + len(comments)
    assert n_comments / n_lines >= 0.07
