"""Nobody waits for what they do not use."""

import subprocess
import sys

import pytest

HEAVY = {"jinja2", "numba", "matplotlib"}


def loaded_by(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in done.stderr.split() if "." not in name}


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import mrshc", HEAVY | {"numpy", "pandas", "rich", "sklearn"}),
        ("from mrshc import MrSHC, SHC, HighVarianceHC, sparse_components", HEAVY - {"numba"}),
        ("import mrshc.app.cli", HEAVY | {"numpy", "pandas", "rich", "sklearn"}),
        (
            "from typer.main import get_command; from mrshc.app.cli import make_app; "
            "get_command(make_app(['--help']))",
            HEAVY | {"numpy", "pandas", "sklearn"},
        ),
        (
            "from typer.main import get_command; from mrshc.app.cli import make_app; "
            "get_command(make_app(['cluster', '--help']))",
            HEAVY | {"pandas", "sklearn"},
        ),
        (
            "from typer.main import get_command; from mrshc.app.cli import make_app; "
            "get_command(make_app(['cluster', 'x.tsv', '--out', 'here']))",
            HEAVY | {"numpy", "pandas", "sklearn"},
        ),
    ],
)
def test_imports_are_light(code, unwanted):
    assert not loaded_by(code) & unwanted


STOP_AT_FIRST_SENTENCE = """
import sys
from mrshc.app.cli.terminal_output import TerminalOutput

def stop(output, sentence):
    print(*sys.modules, file=sys.stderr)
    raise SystemExit

TerminalOutput.print_sentence = stop
from mrshc.app.cli import main
main()
"""


@pytest.mark.parametrize("command", [["cluster", "table.tsv"], ["demo"]])
def test_the_first_sentence_is_printed_before_slow_imports(command, tmp_path):
    (tmp_path / "table.tsv").write_text(
        "gene\ta\tb\tc\td\n" + "".join(f"g{i}\t1\t2\t{i}\t4\n" for i in range(6)),
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-c", STOP_AT_FIRST_SENTENCE, *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "pandas" in done.stderr.split(), "the table was read"
    unwanted = HEAVY | {"sklearn", "scipy.stats", "torch", "dask", "zarr", "h5py"}
    assert not set(done.stderr.split()) & unwanted


def test_every_public_name_is_found_and_listed():
    import mrshc

    for name in mrshc.__all__:
        assert getattr(mrshc, name).__name__ == name
        assert name in dir(mrshc)
    for room in ("datasets", "metrics", "plotting"):
        assert getattr(mrshc, room).__name__ == f"mrshc.{room}"
        assert room in dir(mrshc)
    with pytest.raises(AttributeError, match="has no attribute 'MrSch'"):
        mrshc.MrSch  # noqa: B018
