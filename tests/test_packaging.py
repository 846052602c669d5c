"""The files that describe the package agree with each other."""

import re
from hashlib import sha256
from importlib.resources import files

import pytest
import yaml
from jinja2 import Environment, StrictUndefined

import mrshc
from project_metadata import ROOT, project_table, requirements

PLOTLY = files("mrshc") / "report" / "assets" / "plotly"
# conda-forge splits this package; the part is enough to draw pictures into files.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def recipe():
    """Return the recipe for conda-forge as its programs see it."""
    text = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    return yaml.safe_load(environment.from_string(text).render(PYTHON="python"))


def as_conda(requirement):
    name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
    return f"{CONDA_NAMES.get(name, name)} {bound}"


def test_every_file_has_the_version_of_the_package():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[?(\d\S*?)\]? - (\S+)$", changelog, flags=re.MULTILINE)
    version, date = released[0]
    assert version == mrshc.__version__
    assert citation()["version"] == mrshc.__version__
    assert citation()["date-released"] == date
    assert recipe()["package"]["version"] == mrshc.__version__
    assert recipe()["source"]["url"].endswith(f"/m/mrshc/mrshc-{mrshc.__version__}.tar.gz")


def test_the_citation_has_the_fields_that_its_format_requires():
    content = citation()
    assert content["cff-version"] == "1.2.0"
    assert content["message"]
    assert content["title"].startswith("mrshc")
    assert content["authors"] == [{"name": "The mrshc developers"}]


def test_the_citation_names_the_paper():
    (paper,) = citation()["references"]
    assert (paper["type"], paper["year"]) == ("article", 2014)
    assert paper["title"] == "Multi-rank sparse hierarchical clustering"
    assert [author["family-names"] for author in paper["authors"]] == ["Zhang", "Zamar"]
    assert paper["url"] == "https://arxiv.org/abs/1409.0745"


def test_the_recipe_requires_what_the_command_line_needs():
    needed = requirements(project_table(), "cli")
    python, *others = recipe()["requirements"]["run"]
    assert sorted(others) == sorted(map(as_conda, needed))
    assert python.replace(" ", "") == "python" + project_table()["requires-python"]


def test_the_recipe_describes_the_same_package():
    content, project = recipe(), project_table()
    ((name, target),) = project["scripts"].items()
    assert content["package"]["name"] == project["name"]
    assert content["build"]["entry_points"] == [f"{name} = {target}"]
    assert content["about"]["license"] == project["license"]
    assert content["about"]["license_file"] == project["license-files"]
    assert content["about"]["home"] == project["urls"]["Homepage"]


@pytest.mark.parametrize("section", ["package", "source", "build", "requirements", "test", "about"])
def test_the_recipe_has_the_sections_that_conda_forge_requires(section):
    assert recipe()[section]


def test_types_of_the_package_are_used_by_type_checkers():
    assert (files("mrshc") / "py.typed").is_file()


def test_the_files_of_plotly_are_unchanged():
    lines = (PLOTLY / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    listed = dict(reversed(line.split()) for line in lines)
    assert set(listed) == {"LICENSE", "plotly-cartesian.min.js"}
    for name, digest in listed.items():
        assert sha256((PLOTLY / name).read_bytes()).hexdigest() == digest


def test_the_version_of_plotly_is_stated():
    first_lines = (PLOTLY / "plotly-cartesian.min.js").read_text(encoding="utf-8")[:200]
    version = re.search(r"plotly\.js \(cartesian - minified\) v(\S+)", first_lines)[1]
    assert f"plotly.js) {version}," in (PLOTLY / "README.md").read_text(encoding="utf-8")
    assert f'VERSION = "{version}"' in (ROOT / "tools" / "vendor_plotly.py").read_text("utf-8")


def test_every_type_of_trace_of_the_report_is_in_the_bundle():
    scripts = [path.read_text("utf-8") for path in PLOTLY.joinpath("..").glob("*.js")]
    # Shapes, such as rectangles, are part of every bundle.
    used = {kind for text in scripts for kind in re.findall(r'\btype: "(\w+)"', text)} - {"rect"}
    bundle = (PLOTLY / "plotly-cartesian.min.js").read_text(encoding="utf-8")
    assert used == {"bar", "heatmap", "scatter"}
    assert all(f'moduleType:"trace",name:"{kind}"' in bundle for kind in used)
