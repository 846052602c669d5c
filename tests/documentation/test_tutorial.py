"""The tutorial shows what its commands print."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.documentation

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MRSHC_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="module")
def tutorial():
    path = ROOT / "examples" / "tutorial.py"
    spec = importlib.util.spec_from_file_location("tutorial", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_page_shows_the_output_of_the_commands(tutorial, tmp_path):
    if not (DATA / "lymphoma.npz").exists():
        pytest.skip("needs the data set lymphoma.npz; set MRSHC_DATA to the folder that has it")
    tutorial.write_tables(DATA, tmp_path)
    blocks = tutorial.run_commands(tmp_path)
    page = tutorial.PAGE.read_text()
    for block in blocks.values():
        assert block in page


def test_the_page_shows_the_commands_of_the_script(tutorial):
    page = tutorial.PAGE.read_text()
    for section, command in tutorial.COMMANDS.items():
        assert f"<!-- {section} -->\n\n```\n$ {command}\n" in page


def test_the_page_has_the_table_of_procedures(tutorial):
    page = tutorial.PAGE.read_text()
    for title, options in tutorial.PROCEDURES.values():
        assert f"| {title} | {f'`{options}`' if options else 'none'} | " in page


def test_the_recommended_procedure_is_first(tutorial):
    assert tutorial.procedure_command("lymphoma") == f"{tutorial.CLUSTER} --out lymphoma"
    assert next(iter(tutorial.COMMANDS.values())) == tutorial.procedure_command("lymphoma")
    assert next(iter(tutorial.PROCEDURES)) == "lymphoma"


def test_table_of_procedures_is_read_from_the_results(tutorial, tmp_path):
    (tmp_path / "paper").mkdir()
    result = {
        "chosen": {"n_features": 1234, "n_clusters": 4},
        "scores": {"ari": 0.25, "ari_at_n_classes": 0.5},
    }
    (tmp_path / "paper" / "result.json").write_text(json.dumps(result))
    table = tutorial.render_procedures(tmp_path, ["paper"])
    assert table.splitlines()[-1] == "| paper | `--paper` | 1,234 | 4 | 0.250 | 0.500 |"


def test_the_page_has_the_pictures_that_are_made(tutorial):
    page = tutorial.PAGE.read_text()
    for picture in tutorial.PICTURES:
        assert f"](../images/{picture})" in page
        assert (tutorial.IMAGES / picture).exists()
