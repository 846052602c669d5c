"""The scripts of the gallery run, with fewer repetitions than on the site."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.documentation

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))
# Simulations and subsamples take most of the time of a script. These numbers are small; a smaller
# number of simulations is not allowed.
REPETITIONS = {"n_simulations": 10, "n_resamples": 3}


def test_there_is_a_gallery():
    assert len(SCRIPTS) >= 6


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_run(script, capsys):
    source = script.read_text(encoding="utf-8")
    for name, number in REPETITIONS.items():
        source = re.sub(rf"\b{name}=\d+", f"{name}={number}", source)
    exec(compile(source, script.name, "exec"), {"__name__": "__main__"})
    assert "Error" not in capsys.readouterr().err


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_have_a_title_and_a_text(script):
    docstring = script.read_text(encoding="utf-8").split('"""')[1]
    title, underline, *text = docstring.strip().splitlines()
    assert underline == "=" * len(title)
    assert "".join(text)
