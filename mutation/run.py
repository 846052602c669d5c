"""Mutation testing of `core/`: the share of small faults that the tests of their folder notice.

Run: make mutation, or python mutation/run.py [--n 320] [--seed 1] [FOLDER ...]. Writes
mutation/results.csv and lists the mutants that no test noticed. Works in copies of the project, so
the source is never changed.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from queue import Empty, Queue

sys.path.insert(0, str(Path(__file__).parent))

from mutants import ROOT, sample_mutants

RESULTS = ROOT / "mutation" / "results.csv"
FIELDS = ("file", "line", "operator", "occurrence", "before", "after", "outcome")
# A mutant that loops for ever is noticed by its time. Tests that pass take far less than this
# many times their own duration, also on a busy machine. The minimum, in seconds, covers the start
# of pytest and the compilation of loops for other types.
PATIENCE = 6
SHORTEST_LIMIT = 90


def tests_folder(file):
    """Return the tests that mirror a file of `core/`: its folder, or the files beside it."""
    folder = Path("tests/core", *Path(file).relative_to("src/mrshc/core").parts[:-1])
    if folder == Path("tests/core"):
        return [
            path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).glob("test_*"))
        ]
    return [folder.as_posix()]


class Worker:
    """A process that runs tests of mutants in a copy of the project."""

    def __init__(self, folder):
        self.folder = Path(folder)
        files = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        for name in files:
            if (
                name.startswith(("src/", "tests/", "mutation/", "pyproject"))
                and (ROOT / name).exists()
            ):
                target = self.folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MRSHC_LINES": str(self.folder / "lines.json"),
        }
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "mutation" / "worker.py", self.folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, tests, *, file="", source="", limit, options=()):
        """Run tests with a file replaced; return "passed", "failed" or "timeout"."""
        log = str(self.folder / "log.txt")
        request = {
            "file": file, "source": source, "tests": tests, "limit": limit, "log": log,
            "options": list(options),
        }  # fmt: skip
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())["outcome"]

    def measure(self, tests):
        """Run the tests of a folder without a fault; return the tests by line, and seconds."""
        outcome = self.run(tests, limit=3600, options=("-p", "line_contexts"))
        if outcome != "passed":
            log = (self.folder / "log.txt").read_text(encoding="utf-8")
            raise RuntimeError(f"The tests must pass without a fault, but {tests}:\n{log}")
        found = json.loads((self.folder / "lines.json").read_text(encoding="utf-8"))
        lines = {Path(k).relative_to(self.folder).as_posix(): v for k, v in found["lines"].items()}
        return lines, found["seconds"]


def test_mutants(mutants, n_workers):
    """Return a row for each mutant, with the outcome of the tests of its folder."""
    folders = sorted({tuple(tests_folder(mutant.file)) for mutant in mutants})
    measured, rows = {}, []
    to_measure, to_test = Queue(), Queue()
    for tests in folders:
        to_measure.put(tests)
    for mutant in mutants:
        to_test.put(mutant)
    ready = threading.Barrier(n_workers)

    def work(folder):
        worker = Worker(folder)
        try:
            for tests in _items(to_measure):
                measured[tests] = worker.measure(list(tests))
                seconds = sum(measured[tests][1].values())
                print(f"{' '.join(tests)}: {seconds:.0f} seconds", flush=True)
        except BaseException:
            # The other workers would wait for this one.
            ready.abort()
            raise
        ready.wait()
        for mutant in _items(to_test):
            rows.append(_test_mutant(worker, mutant, measured))
            print(f"{len(rows)} of {len(mutants)}: {rows[-1]['outcome']}", flush=True)
        worker.process.stdin.close()

    with tempfile.TemporaryDirectory() as scratch:
        threads = [
            threading.Thread(target=work, args=(Path(scratch, str(i)),)) for i in range(n_workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if len(rows) < len(mutants):
        raise SystemExit("The tests were not run for all mutants; the messages above say why.")
    return sorted(rows, key=lambda row: (row["file"], int(row["line"]), row["operator"]))


def _items(queue):
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return


def _test_mutant(worker, mutant, measured):
    """Run the tests that execute the mutated line; all of the folder for a line run on import."""
    original = (worker.folder / mutant.file).read_text(encoding="utf-8")
    lines, seconds = measured[tuple(tests_folder(mutant.file))]
    chosen = lines.get(mutant.file, {}).get(str(mutant.line), [""])
    # Lines inside of an expression over several lines are attributed to its first line.
    chosen = list(seconds) if "" in chosen else chosen
    # Pytest stops at the first failure, so the fastest tests come first.
    chosen = sorted(chosen, key=seconds.get)
    limit = SHORTEST_LIMIT + PATIENCE * sum(map(seconds.get, chosen))
    outcome = worker.run(chosen, file=mutant.file, source=mutant.source(original), limit=limit)
    before, after = mutant.difference(original)
    noticed = {"passed": "survived", "failed": "noticed", "timeout": "noticed (time)"}[outcome]
    return {**mutant.as_row(), "before": before, "after": after, "outcome": noticed}


def main():
    """Sample mutants, test them, write the results and print the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help="parts of core/, such as trees; all without")
    parser.add_argument("--n", type=int, default=320, help="number of mutants (default: 320)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="table to be written")
    arguments = parser.parse_args()
    mutants = sample_mutants(arguments.n, arguments.seed, arguments.folders)
    rows = test_mutants(mutants, arguments.workers)
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    survivors = [row for row in rows if row["outcome"] == "survived"]
    for row in survivors:
        print(f"{row['file']}:{row['line']}\n  - {row['before']}\n  + {row['after']}")
    share = 1 - len(survivors) / len(rows)
    print(f"{len(rows) - len(survivors)} of {len(rows)} mutants noticed ({share:.1%}).")


if __name__ == "__main__":
    main()
