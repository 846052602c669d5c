"""What the tutorial and README show is what the commands say."""

import importlib.util
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
def test_pages_show_what_the_commands_say(tutorial, tmp_path):
    if not (DATA / "lymphoma.npz").exists():
        pytest.skip("needs the data set lymphoma.npz; set MRSHC_DATA to the folder that has it")
    tutorial.write_tables(DATA, tmp_path)
    blocks = tutorial.run_commands(tmp_path)
    page = (ROOT / "docs" / "tutorial.md").read_text()
    for block in blocks.values():
        assert block in page
    assert blocks["second run"] in (ROOT / "README.md").read_text()


def test_pages_have_the_pictures_that_are_made(tutorial):
    pages = (ROOT / "docs" / "tutorial.md").read_text() + (ROOT / "README.md").read_text()
    for picture in tutorial.PICTURES:
        assert f"images/{picture}" in pages
        assert (ROOT / "docs" / "images" / picture).exists()
