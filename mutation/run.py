"""Mutation testing of `core/`: the share of small faults in the source that the tests notice.

Run: make mutation, or python mutation/run.py [--n 300] [--seed 1] [--workers 2]. Writes
mutation/results.csv and prints the faults (mutants) that no test noticed. Works in copies of the
project. The tests are those of `core/` and of the estimators; they stop at the first failure. Of
these, the tests are run that execute the lines of the mutant; all of them where this is not known,
as for compiled functions.
"""

import argparse
import ast
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import Queue

import coverage

ROOT = Path(__file__).parents[1]
CORE, TESTS = ROOT / "src" / "mrshc" / "core", ROOT / "tests"
FIELDS = ("file", "line", "before", "after", "outcome")
# Seconds for one test and for all of them: no test takes a minute without a fault, even where
# kernels are compiled, and all of them take a few minutes.
TEST_LIMIT, LIMIT = 60, 1800
MEMORY = 8 << 30  # bytes, so that a mutant cannot take all memory

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def mutations(node):
    """Return what an expression or a statement may be replaced by."""
    match node:
        case ast.Compare(left, [op], right):
            return [ast.Compare(left, [new()], right) for new in COMPARISONS[type(op)]]
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return [ast.BinOp(left, OPERATORS[type(op)](), right)]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(OPERATORS[type(op)](), values)]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Constant(bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(int(value) | float(value)):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.IfExp(test, body, otherwise):
            return [ast.IfExp(test, otherwise, body)]
        case ast.Break():
            return [ast.Continue()]
        case ast.Continue():
            return [ast.Break()]
        case ast.AugAssign() | ast.Expr(ast.Call()):
            return [ast.Pass()]
    return []


def executed_nodes(node):
    """Yield the nodes of a syntax tree but for annotations, decorators and texts.

    A change of `strict=True` would be equivalent in all places.
    """
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "strict"):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from executed_nodes(child)


def sample_mutants(n_mutants, seed):
    """Draw mutants: the file and its source with one fault, at different places."""
    rng, places = random.Random(seed), []
    for file in sorted(CORE.rglob("*.py")):
        source = file.read_bytes()
        nodes = executed_nodes(ast.parse(source))
        places += [(file, source, node) for node in nodes if mutations(node)]
    drawn = rng.sample(places, min(n_mutants, len(places)))
    return [
        (file.relative_to(ROOT), source, node, replace(source, node, rng.choice(mutations(node))))
        for file, source, node in drawn
    ]


def replace(source, node, new):
    """Return the source with a node replaced."""
    ends = [0]
    for line in source.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    start = ends[node.lineno - 1] + node.col_offset
    stop = ends[node.end_lineno - 1] + node.end_col_offset
    # A new operator may bind less strongly than the old one.
    text = f"({ast.unparse(new)})" if isinstance(new, ast.expr) else ast.unparse(new)
    return source[:start] + text.encode() + source[stop:]


def copy_project(folder):
    """Copy what the tests need to a folder."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def files_of_tests(file=None):
    """Return the files of the tests, those of a file of the source first."""
    own = f"test_{'storage' if 'data' in file.parts else file.stem}.py" if file else ""
    files = [*sorted(TESTS.glob("core/test_*.py")), TESTS / "test_reference_fits.py"]
    files += [TESTS / "test_plain_twin.py", *sorted(TESTS.glob("estimators/test_*.py"))]
    files.sort(key=lambda path: path.name != own)
    return [str(path.relative_to(ROOT)) for path in files]


def record_coverage(folder):
    """Run all tests of a copy; return, for each file and line, the tests that execute it."""
    (folder / ".coveragerc").write_text("[run]\ndynamic_context = test_function\n")
    if not run_tests(
        folder, files_of_tests(), ["-m", "coverage", "run", "--source=src/mrshc/core"]
    ):
        sys.exit((folder / "log.txt").read_text() + "The tests must pass without a fault.")
    data = coverage.CoverageData(str(folder / ".coverage"))
    data.read()
    tests = {}
    for path in data.measured_files():
        for line, contexts in data.contexts_by_lineno(path).items():
            # A line that is executed outside a test, such as in a fixture, has the context "".
            names = [name.rpartition(".") for name in contexts]
            tests[Path(path).relative_to(folder), line] = {
                f"{module.replace('.', '/')}.py::{test}" if test else ""
                for module, _, test in names
            }
    return tests


def tests_of(tests, file, node):
    """Return the tests that execute a node; all of them if this is not known."""
    lines = range(node.lineno, node.end_lineno + 1)
    found = set().union(*(tests.get((file, line), set()) for line in lines))
    if not found or "" in found:
        return files_of_tests(file)
    order = {name: i for i, name in enumerate(files_of_tests(file))}
    return sorted(found, key=lambda test: (order[test.partition("::")[0]], test))


def run_tests(folder, tests, runner=(), file=None):
    """Run tests of the copy in a folder, perhaps with another program; return whether they pass."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={TEST_LIMIT}"]
    options += ["-o", "faulthandler_exit_on_timeout=true"]
    # A mutant of the kernels has its own compiled code: all kernels of a changed file are compiled
    # again, and the code of the others stays valid.
    cache = folder / ("mutants" if file and file.stem == "kernels" else "compiled")
    process = subprocess.Popen(
        [sys.executable, *runner, "-m", "pytest", *options, *tests],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": "src", "OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(cache)},
        stdout=(folder / "log.txt").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=limit_memory,
    )
    try:
        return process.wait(LIMIT) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder / "mutants", ignore_errors=True)


def limit_memory():
    """Limit the memory of this process."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def test_mutant(folders, tests, file, source, node, mutant):
    """Return the row of a mutant, whose tests run in a folder that is free."""
    folder = folders.get()
    before, after = source.decode().splitlines(), mutant.decode().splitlines()
    line = next(i for i, pair in enumerate(zip(before, after, strict=False)) if len({*pair}) > 1)
    times = (folder / file).stat()  # by which compiled code is found
    try:
        (folder / file).write_bytes(mutant)
        passes = run_tests(folder, tests_of(tests, file, node), file=file)
        outcome = "survived" if passes else "noticed"
    finally:
        (folder / file).write_bytes(source)
        os.utime(folder / file, ns=(times.st_atime_ns, times.st_mtime_ns))
        folders.put(folder)
    row = (file.as_posix(), line + 1, before[line].strip(), after[line].strip(), outcome)
    print(*row, sep=" | ", flush=True)
    return dict(zip(FIELDS, row, strict=True))


def main():
    """Sample mutants, test them, write the results and print the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="number of mutants (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=ROOT / "mutation" / "results.csv")
    arguments = parser.parse_args()
    folders = Queue()
    with ExitStack() as stack, ThreadPoolExecutor(arguments.workers) as pool:
        copies = [
            Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for _ in range(arguments.workers)
        ]
        for folder in copies:
            copy_project(folder)
            folders.put(folder)
        tests = record_coverage(copies[0])
        mutants = sample_mutants(arguments.n, arguments.seed)
        rows = list(pool.map(lambda mutant: test_mutant(folders, tests, *mutant), mutants))
    rows.sort(key=lambda row: (row["file"], row["line"]))
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    n_noticed = sum(row["outcome"] == "noticed" for row in rows)
    print(f"{n_noticed} of {len(rows)} mutants were noticed ({n_noticed / len(rows):.1%}).")


if __name__ == "__main__":
    main()
