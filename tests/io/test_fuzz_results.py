"""Whatever is done to the files of a result, it is loaded as it was or refused in one sentence.

MRSHC_FUZZ_CASES sets the number of cases of each kind.
"""

import csv
import hashlib
import io
import json
import os
import shutil

import numpy as np
import pytest

from mrshc.errors import UserError
from mrshc.exports import newick, treeview
from mrshc.io import load_result
from mrshc.io.result import ResultError, write_result
from mrshc.plotting import dendrogram_lines
from mrshc.report.report_file import result_report
from tiny import tiny_result, tiny_table

pytestmark = pytest.mark.slow

CASES, PARTS = int(os.environ.get("MRSHC_FUZZ_CASES", "1500")), 10
# The page holds a whole plotting library: a share of the cases is enough.
CASES_PER_PAGE = 40

TABLES = (
    *("clusters.csv", "features.csv", "silhouettes.csv", "markers.csv", "linkage.csv"),
    "centers.csv",
)
FILES = (*TABLES, "selected.gct", "result.json")
HOSTILE = (
    *("-1", "0", "1", "2", "7", "1e308", "-1e308", "nan", "NaN", "inf", "-inf", "", "text", "0.5"),
    *("1000000", "1000000000000", str(2**62)),  # which 64 bits hold
    *("9" * 30, "9" * 5000, "True", "False", "true", "1_0", " 1", "1,2", '"', "'", "\0", "\ud7ff"),
)
HOSTILE_JSON = (
    *(None, True, False, 0, 1, -1, 0.5, 1e308, -1e308, 10**30, 10**400, "", "text", "1"),
    *(10**6, 10**12, 2**62),  # which 64 bits hold
    *([], {}, [None], [[]], {"a": 1}, [1, "a"], float("nan"), float("inf")),
)


def put(path, content):
    """Write a file anew: some file systems are slow to write over one."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def cut(content, rng):
    return content[: rng.integers(len(content))]


def edit_bytes(content, rng):
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at, kind = int(rng.integers(len(content) + 1)), rng.integers(3)
        if kind == 0:
            content[at : at + 1] = rng.bytes(1)
        elif kind == 1:
            content[at:at] = rng.choice([b",", b"\n", b'"', b"\r", b"\0", b"\xff", b"\t", b"9"])
        else:
            del content[at : at + int(rng.integers(1, 9))]
    return bytes(content)


def edit_cells(content, rng, separator):
    """Put a hostile value into a cell, or copy, drop or exchange rows or columns.

    Return also how many cells this changes at most.
    """
    text = content.decode()
    if separator == ",":
        rows = list(csv.reader(io.StringIO(text, newline="")))
    else:
        rows = [line.split(separator) for line in text.splitlines()]
    i, j = (int(rng.integers(len(rows))) for _ in range(2))
    kind = rng.integers(8)
    if kind < 4:
        rows[i][rng.integers(len(rows[i]))] = str(rng.choice(HOSTILE))
    elif kind == 4:
        rows.insert(j, list(rows[i]))
    elif kind == 5:
        rows[i], rows[j] = rows[j], rows[i]
    elif kind == 6:
        del rows[i]
    else:
        a, b = rng.integers(min(map(len, rows)), size=2)
        for row in rows:
            row[a], row[b] = row[b], row[a]
    most = 1 if kind < 4 else sum(map(len, rows))
    if separator != ",":
        return "".join(separator.join(row) + "\n" for row in rows).encode(), most
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode(), most


def places(value, path=()):
    """Yield the way to each entry of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(entry, (*path, key))


def edit_json(content, rng):
    value = json.loads(content)
    every = list(places(value))
    *way, last = every[rng.integers(1, len(every))]
    parent = value
    for key in way:
        parent = parent[key]
    kind = rng.integers(4)
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, list):
        parent.append(parent[last])
    elif kind == 2 and rng.random() < 0.05:
        depth = int(rng.choice([50, 900, 100_000]))
        text = json.dumps(value)
        return (text.replace('"a test"', "[" * depth + "]" * depth, 1) + "\n").encode()
    else:
        parent[last] = HOSTILE_JSON[rng.integers(len(HOSTILE_JSON))]
    return (json.dumps(value) + "\n").encode()


def damage(content, name, rng):
    """Return a damaged file, and how many cells of tables may change; cuts change nothing."""
    kind = rng.integers(4)
    if kind == 0:
        return cut(content, rng), 0
    if kind == 1:
        return edit_bytes(content, rng), len(content)
    if name == "result.json":
        return edit_json(content, rng), 6  # a column of numbers may be declared to be text
    return edit_cells(content, rng, "\t" if name.endswith(".gct") else ",")


def with_checksum(about, name, content):
    """Return result.json as somebody forges it who knows what it checks."""
    value = json.loads(about)
    value["files"][name] = hashlib.sha256(content).hexdigest()
    return (json.dumps(value) + "\n").encode()


def about_in(content):
    return {key: value for key, value in json.loads(content).items() if key != "files"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A result as files, and as it was before."""
    folder = tmp_path_factory.mktemp("whole")
    write_result(tiny_result(), folder)
    return {name: (folder / name).read_bytes() for name in FILES}, load_result(folder)


def assert_sentence(error):
    assert "\n" not in str(error)
    assert str(error).endswith(".")
    assert len(str(error)) < 1000


def cells_of(result):
    """Return all cells of all tables, as text: NaN differs from itself."""
    names = ("samples", "features", "silhouettes", "markers", "selected", "centers")
    frames = [getattr(result, name) for name in names]
    parts = [part for f in frames for part in (f.columns.tolist(), f.index.tolist())]
    parts += [row for f in frames for row in f.to_numpy().tolist()]
    return [repr(cell) for part in [*parts, *result.linkage_matrix_.tolist()] for cell in part]


def use(result):
    """Do what reads a result."""
    names = list(result.samples.index)
    newick(result.linkage_matrix_, names)
    treeview(
        result.selected.to_numpy(),
        sample_tree=result.linkage_matrix_,
        feature_tree=None,
        sample_names=names,
        feature_names=list(result.selected.columns),
    )
    dendrogram_lines(result.linkage_matrix_)
    table = tiny_table()
    try:
        assert len(result.predict(table)) == len(table.sample_names)
    except UserError as error:
        assert_sentence(error)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of values near the largest number
def test_a_damaged_result_is_refused_in_a_sentence_or_as_it_was(saved, tmp_path, part):
    files, whole = saved
    rng, before = np.random.default_rng(part), cells_of(whole)
    for name, content in files.items():
        put(tmp_path / name, content)
    n_refused = n_pages = 0
    for _ in range(CASES // PARTS):
        name = FILES[rng.integers(len(FILES))]
        content, n_changed = damage(files[name], name, rng)
        put(tmp_path / name, content)
        if forged := name != "result.json" and rng.random() < 0.5:
            put(tmp_path / "result.json", with_checksum(files["result.json"], name, content))
        try:
            found = load_result(tmp_path)
        except ResultError as error:
            assert_sentence(error)
            n_refused += 1
        else:
            assert name == "result.json" or n_changed > 0, "a file was cut off"
            assert name == "result.json" or forged or content == files[name]
            assert found.about == (about_in(content) if name == "result.json" else whole.about)
            after = cells_of(found)
            assert sum(a != b for a, b in zip(after, before, strict=True)) <= n_changed
            use(found)
            n_pages += 1
            if n_pages % CASES_PER_PAGE == 1:
                result_report(found)
        for changed in {name, "result.json"}:
            put(tmp_path / changed, files[changed])
    assert 0 < n_refused < CASES // PARTS


def test_every_cut_of_every_file_is_noticed(saved, tmp_path):
    files, _ = saved
    for name, content in files.items():
        put(tmp_path / name, content)
    for name, content in files.items():
        step = max(1, len(content) // 60)
        for length in {*range(0, len(content), step), len(content) - 1}:
            put(tmp_path / name, content[:length])
            with pytest.raises(ResultError, match=r"is not a complete result: .* Make it again\."):
                load_result(tmp_path)
        put(tmp_path / name, content)
    load_result(tmp_path)


# Trees ---------------------------------------------------------------------------------------


def broken_tree(Z, rng):
    Z = Z.copy()
    n = len(Z) + 1
    for _ in range(rng.integers(1, 4)):
        row, column = int(rng.integers(len(Z))), int(rng.integers(4))
        values = (-1, 0, 1, n, n + row, 2 * n - 2, 2 * n, 0.5, 1e18, 1e308, np.nan, np.inf, -np.inf)
        kind = rng.integers(5)
        if kind < 2:
            Z[row, column] = rng.choice(values)
        elif kind == 2:
            Z[row, :2] = Z[row, 1::-1]  # the same tree, turned
        elif kind == 3:
            other = int(rng.integers(len(Z)))
            Z[[row, other]] = Z[[other, row]]
        else:
            Z[row, 2] = rng.random()  # heights need not increase
    return Z


def is_tree(Z):
    """Build the tree by hand: nodes are joined once, and were there before."""
    n = len(Z) + 1
    if not np.isfinite(Z).all():
        return False
    there = dict.fromkeys(range(n), 1)
    for row, (left, right, height, size) in enumerate(Z.tolist()):
        sizes = [there.pop(node, None) for node in (left, right)]
        if None in sizes or height < 0 or size != sum(sizes):
            return False
        there[n + row] = size
    return True


@pytest.mark.parametrize("part", range(PARTS))
def test_every_matrix_that_is_no_tree_is_refused(saved, part):
    rng, whole = np.random.default_rng(part), saved[1].linkage_matrix_
    names = [f"s{i}" for i in range(len(whole) + 1)]
    X = np.zeros((len(names), 1))
    n_trees = 0
    for _ in range(CASES // PARTS):
        Z = broken_tree(whole, rng)
        if is_tree(Z):
            n_trees += 1
            assert newick(Z, names).count("(") == len(Z)
            assert len(dendrogram_lines(Z).order) == len(names)
            continue
        for function in (
            lambda Z: newick(Z, names),
            lambda Z: treeview(
                X, sample_tree=Z, feature_tree=None, sample_names=names, feature_names=["g"]
            ),
            dendrogram_lines,
        ):
            with pytest.raises(ValueError, match=r"linkage_matrix|sample_tree") as refused:
                function(Z)
            assert_sentence(refused.value)
    assert 0 < n_trees < CASES // PARTS


def test_files_that_are_not_files_are_refused(saved, tmp_path):
    files, _ = saved
    for name, content in files.items():
        put(tmp_path / name, content)
    for name in FILES:
        (tmp_path / name).unlink()
        (tmp_path / name).mkdir()
        with pytest.raises(ResultError, match=f"{name} is not a file"):
            load_result(tmp_path)
        shutil.rmtree(tmp_path / name)
        if hasattr(os, "mkfifo"):
            os.mkfifo(tmp_path / name)
            with pytest.raises(ResultError, match=f"{name} is not a file"):
                load_result(tmp_path)
            (tmp_path / name).unlink()
        put(tmp_path / name, files[name])
