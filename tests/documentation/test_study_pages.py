"""The pages show the committed results of the studies, as the code renders them."""

import json
import shutil
from pathlib import Path

import pytest
from studies.__main__ import CONFIGS, load, publish

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
pytestmark = pytest.mark.documentation

STUDY_NAMES = sorted(path.stem for path in CONFIGS.glob("*.toml"))
# The page in docs/results that shows each study.
PAGES = {
    "error-rates": ("significance", "significance_paper", "limits", "stability", "markers"),
    "new-samples": ("prediction",),
    "paper": ("table1", "table2", "table3", "section2", "lymphoma", "vantveer", "perou"),
    "real-data": ("realworld", "confidence"),
    "simulations": ("robustness", "association", "sparse", "missing", "outliers"),
}
SHOWN = [(study, f"docs/results/{page}.md") for page, names in PAGES.items() for study in names]
# README shows a part of one of them.
SHOWN += [("table1 in brief", "README.md")]


def test_every_study_has_a_page():
    assert sorted(study for names in PAGES.values() for study in names) == STUDY_NAMES


@pytest.mark.parametrize(("name", "page"), SHOWN)
def test_every_table_is_on_its_page(name, page):
    text = (ROOT / page).read_text()
    assert text.count(f"<!-- {name} -->\n\n| ") + text.count(f"<!-- {name} -->\n\n**") == 1
    assert text.count(f"<!-- end of {name} -->") == 1


@pytest.mark.parametrize("name", STUDY_NAMES)
def test_committed_metadata_are_complete(name):
    metadata = json.loads((STUDIES / f"{name}.json").read_text())
    config = load(name)
    common = {key: config.pop(key) for key in ("name", "title", "kind", "replicates")}
    assert metadata["replicates"] == common["replicates"]
    assert metadata["config"] == config
    assert set(metadata) >= {"versions", "computer", "tasks", "seconds"}


@pytest.mark.parametrize("name", STUDY_NAMES)
def test_committed_tables_are_rendered_from_committed_results(name, tmp_path):
    for part in ("studies", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "README.md", tmp_path)
    publish(load(name), root=tmp_path)
    pages = [Path("README.md"), Path(f"studies/{name}.md")]
    pages += [page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md")]
    for page in pages:
        assert (tmp_path / page).read_bytes() == (ROOT / page).read_bytes(), page
