"""Without the packages of the extras, fits work; all else says in a sentence what to install."""

import re
import subprocess
import sys

import pytest

from mrshc.comparison import format_error
from mrshc.errors import MissingPackageError, UserError
from mrshc.optional_packages import CLI_PACKAGES, require_packages
from project_metadata import project_table, requirements

# Names by which packages are imported, where they differ from those by which they are installed.
IMPORT_NAMES = {"array-api-compat": "array_api_compat"}
# An entry None in sys.modules would not do: libraries ask there whether a package was imported.
HIDE = """
import sys
from importlib.machinery import PathFinder

class FinderOfOthers(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_hidden = name.partition(".")[0] in {names!r}
        return None if is_hidden else super().find_spec(name, path, target)

sys.meta_path[:] = [FinderOfOthers if f is PathFinder else f for f in sys.meta_path]
"""
FIT = """
import numpy as np
from mrshc import SHC, MrSHC
X = np.random.default_rng(0).standard_normal((12, 9))
X[:6, :3] += 9
model = MrSHC([3], rank=1, n_clusters=2, n_references=2).fit(X)
assert sorted(np.bincount(model.labels_)) == [6, 6]
assert list(model.search_results_["chosen"]) == [True]
model.predict(X), model.summary(), model.transform(X)
SHC(n_features_to_select=3).fit(X).cut(2)
try:
    model.markers(X)
except ImportError as error:
    print(error)
"""


def names_of(*extras):
    """Return the import names of all packages that extras install in addition to mrshc."""
    project = project_table()
    added = set(requirements(project, *extras)) - set(project["dependencies"])
    names = {re.match(r"[\w-]+", line)[0] for line in added}
    return sorted(IMPORT_NAMES.get(name, name) for name in names)


def run_without(names, code, *arguments):
    """Run code in a process in which some packages seem not to be installed."""
    return subprocess.run(
        [sys.executable, "-c", HIDE.format(names=names) + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_fit_needs_only_the_dependencies():
    done = run_without(names_of("all", "gpu"), FIT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "markers needs pandas, which is not installed: pip install 'mrshc[tables]'.",
    ]


def test_modules_name_the_extra_that_is_missing():
    modules = ("comparison", "io", "pl", "plotting", "report", "tl")
    code = f"""
for name in {modules!r}:
    try:
        __import__("mrshc." + name)
    except ImportError as error:
        print(error)
"""
    done = run_without(names_of("all"), code)
    install = "installed: pip install"
    assert done.stdout.splitlines() == [
        f"mrshc.comparison needs pandas, which is not {install} 'mrshc[tables]'.",
        f"mrshc.io needs pandas and psutil, which are not {install} 'mrshc[tables]'.",
        f"mrshc.pl needs matplotlib and pandas, which are not {install} 'mrshc[plot]'.",
        f"mrshc.plotting needs matplotlib and pandas, which are not {install} 'mrshc[plot]'.",
        f"mrshc.report needs jinja2 and markupsafe, which are not {install} 'mrshc[report]'.",
        f"mrshc.tl needs pandas, which is not {install} 'mrshc[anndata]'.",
    ]


@pytest.mark.parametrize("arguments", [("cluster", "x.tsv"), ("--help",)])
def test_the_command_line_without_its_packages_ends_with_one_sentence(arguments):
    code = "from mrshc.__main__ import main; main()"
    done = run_without(["typer", "matplotlib"], code, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "mrshc: The command line needs typer and matplotlib, which are not installed: "
        "pip install 'mrshc[all]'.\n"
    )


def test_the_command_line_checks_all_packages_of_its_extra():
    assert sorted(CLI_PACKAGES) == names_of("cli")


def test_an_extra_installs_what_the_extras_that_it_includes_install():
    assert set(names_of("plot", "tables")) < set(names_of("report")) < set(names_of("cli"))


def test_all_is_everything_but_gpu_and_tools_of_developers():
    extras = set(project_table()["optional-dependencies"])
    for_users = extras - {"all", "gpu", "test", "dev", "docs", "bench"}
    assert names_of("all") == names_of(*for_users)
    assert "torch" not in names_of("all")


def test_an_error_of_a_missing_package_is_an_import_error_that_the_user_can_correct():
    with pytest.raises(MissingPackageError, match=r"needs nonesuch, .* 'mrshc\[x\]'\.$") as caught:
        require_packages(["numpy", "nonesuch"], purpose="A test", extra="x")
    assert isinstance(caught.value, UserError)
    assert format_error(caught.value).startswith("ImportError: A test needs")
