"""Rules of the code base that no linter knows."""

import ast
from pathlib import Path

import mrshc
from mrshc.core.data.matrix import DataMatrix

PACKAGE = Path(mrshc.__file__).parent
# Types by which code could ask where X is stored.
STORAGE_TYPES = {"ndarray", "memmap", "sparray", "spmatrix", "Dataset", "Group", "Array"}


def subclasses(kind):
    return {kind} | {other for sub in kind.__subclasses__() for other in subclasses(sub)}


def names_in(node):
    """Return all names and attributes in an expression."""
    return {getattr(part, "attr", getattr(part, "id", None)) for part in ast.walk(node)}


def questions_of_storage(code):
    """Return the lines on which code asks by `isinstance` or `type` where data are stored."""
    kinds = {kind.__name__ for kind in subclasses(DataMatrix)}
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", None) in ("isinstance", "issubclass")
        and names_in(node.args[1]) & (kinds | STORAGE_TYPES)
    ]


def test_questions_of_storage_are_recognised():
    assert questions_of_storage("isinstance(X, np.ndarray | None)") == [1]
    assert questions_of_storage("\nissubclass(K, (int, ArrayMatrix))") == [2]
    assert not questions_of_storage("isinstance(X, str)")


def test_only_core_data_and_readers_of_files_ask_where_x_is_stored():
    readers = {PACKAGE / "core" / "data", PACKAGE / "io" / "stored"}
    asked = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if not readers & set(path.parents)
        and (lines := questions_of_storage(path.read_text(encoding="utf-8")))
    }
    assert asked == {}
