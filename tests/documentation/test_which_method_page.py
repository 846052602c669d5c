"""The page "Which method?" shows the committed results of the studies, and names known methods."""

import re
from pathlib import Path

import pytest
from studies import which_method

from mrshc.methods import METHODS, VARIANTS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.documentation
PAGE = which_method.PAGE.read_text(encoding="utf-8")


def test_the_table_is_rendered_from_the_committed_results():
    table = which_method.render_table(which_method.summarise())
    assert f"<!-- which method -->\n\n{table}\n<!-- end of which method -->" in PAGE


def test_every_method_has_results():
    summary = which_method.summarise()
    for method in which_method.METHODS:
        row = summary.loc[method.label]
        is_simulated = bool(method.in_tables or method.in_association_study)
        assert (row["Simulation I", "cer"] >= 0) == is_simulated
        assert (row["real", "ari"] > 0) == (method.real is not None)
        assert is_simulated or method.real


def test_commands_name_registered_methods():
    keys = {key for line in re.findall(r"--methods (\S+)", PAGE) for key in line.split(",")}
    assert keys
    assert keys <= set(METHODS | VARIANTS)
    described = set(re.findall(r"^\*\*.*?\*\* \(`([a-z0-9-]+)`", PAGE, re.MULTILINE))
    assert described == {
        *("association", "hmv-500-ward", "mrshc", "shc", "shc-ssl"),
        *("sparse-kmeans", "cosa"),
    }
