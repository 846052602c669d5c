"""The recipes of the page on extensions work as they are printed."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.io import mmwrite

from mrshc import HighVarianceHC
from mrshc.io import read_table
from mrshc.io.formats import registry
from tiny import tiny_result

pytestmark = pytest.mark.documentation

PAGE = Path(__file__).parents[2] / "docs" / "developer" / "extending.md"
RECIPE = re.compile(
    r"Save it\s+as\s+`src/(?P<path>[\w/]+)\.py`:\s+```python\n(?P<code>.*?)```", flags=re.DOTALL
)
X = np.random.default_rng(0).normal(size=(20, 30))
X[:10, :5] += 4


@pytest.fixture(scope="module")
def recipes():
    """Return the names that each file of a recipe defines, by the name of the file."""
    modules = {}
    for recipe in RECIPE.finditer(PAGE.read_text("utf-8")):
        name = recipe["path"].replace("/", ".")
        names = {"__name__": name}
        exec(compile(recipe["code"], f"{recipe['path']}.py", "exec"), names)
        modules[name.rpartition(".")[2]] = names
    return modules


def test_there_are_three_recipes(recipes):
    assert len(recipes) == 3


def test_the_comparison_method_selects_the_largest_deviations(recipes):
    model = recipes["high_mad_hc"]["HighMadHC"](5, n_clusters=2).fit(X)
    deviations = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    assert set(np.flatnonzero(model.get_support())) == set(np.argsort(-deviations)[:5])
    assert set(model.labels_) == {0, 1}


def test_the_file_format_is_read(recipes, tmp_path):
    known = recipes["matrix_market"]["MATRIX_MARKET"]
    registry.register(known)
    try:
        content = io.BytesIO()
        mmwrite(content, X)
        (tmp_path / "table.mtx").write_bytes(content.getvalue())
        table = read_table(tmp_path / "table.mtx", features="columns")
    finally:
        registry.unregister(known)
    np.testing.assert_allclose(table.X, X)


def test_the_plot_shows_the_sizes_of_the_clusters(recipes):
    ax = Figure().subplots()
    model = HighVarianceHC(5, n_clusters=2).fit(X)
    assert recipes["cluster_sizes_plot"]["cluster_sizes"](model, ax) is ax
    assert sorted(bar.get_height() for bar in ax.patches) == sorted(np.bincount(model.labels_))
    assert recipes["cluster_sizes_plot"]["cluster_sizes"](tiny_result()).patches
