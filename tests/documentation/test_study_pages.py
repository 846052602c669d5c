"""The pages show the committed results of the studies, as the code renders them."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from mrshc.study.config import CONFIGS, load_study

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
sys.path.insert(0, str(STUDIES))

from publish import publish_study  # noqa: E402

pytestmark = pytest.mark.documentation

STUDY_NAMES = sorted(path.stem for path in CONFIGS.glob("*.toml"))
# Studies of the page on confidence.
ON_CONFIDENCE = (
    *("significance", "significance_paper", "limits"),
    *("stability", "markers", "confidence"),
)
PAGES = dict.fromkeys(ON_CONFIDENCE, "docs/confidence.md") | {"prediction": "docs/predict.md"}
# Where each study is shown: results.md shows all others, the front page some in brief.
SHOWN = [(study, PAGES.get(study, "docs/results.md")) for study in STUDY_NAMES]
SHOWN += [("table1 in brief", "README.md")]


@pytest.mark.parametrize(("name", "page"), SHOWN)
def test_every_table_is_on_its_page(name, page):
    text = (ROOT / page).read_text()
    assert text.count(f"<!-- {name} -->\n\n| ") + text.count(f"<!-- {name} -->\n\n**") == 1
    assert text.count(f"<!-- end of {name} -->") == 1


@pytest.mark.parametrize("name", STUDY_NAMES)
def test_committed_metadata_are_complete(name):
    metadata = json.loads((STUDIES / f"{name}.json").read_text())
    study = load_study(CONFIGS, name)
    assert metadata["replicates"] == study.replicates
    assert metadata["config"] == study.options
    assert set(metadata) >= {"code", "versions", "computer", "tasks", "seconds"}


@pytest.mark.parametrize("name", STUDY_NAMES)
def test_committed_tables_are_rendered_from_committed_results(name, tmp_path):
    for part in ("studies", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "README.md", tmp_path)
    publish_study(name, root=tmp_path)
    pages = [Path("README.md"), Path(f"studies/{name}.md")]
    pages += [page.relative_to(ROOT) for page in (ROOT / "docs").glob("*.md")]
    for page in pages:
        assert (tmp_path / page).read_bytes() == (ROOT / page).read_bytes(), page
