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
        ("from mrshc import MrSHC, SHC, HighVarianceHC, sparse_components", HEAVY),
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
