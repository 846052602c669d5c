import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MRSHC = Path(sys.executable).with_name("mrshc")


def mrshc(*arguments, **options):
    return subprocess.run(
        [MRSHC, *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, mrshc("demo", cwd=folder)


def test_demo_says_what_it_found_and_where_the_picture_lies(demo):
    folder, done = demo
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no progress bar where there is no terminal"
    assert re.search(r"Chose q = \d+ features, rank r = \d, K = 3 clusters", done.stdout)
    assert re.search(r"precision [01]\.\d+, recall [01]\.\d+", done.stdout)
    last = done.stdout.strip().splitlines()[-1]
    assert last.endswith("mrshc-demo/dendrogram.png")
    picture = folder / "mrshc-demo" / "dendrogram.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [f.name for f in picture.parent.iterdir()] == ["dendrogram.png"]


def test_help_teaches_by_example():
    assert "demo" in mrshc("--help").stdout
    assert "Example: mrshc demo" in mrshc("demo", "--help").stdout


def test_mistakes_get_one_sentence_and_exit_code_2(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = mrshc("demo", "--out", str(blocked / "folder"))
    assert done.returncode == 2
    assert done.stderr.startswith("mrshc: cannot read or write")
    assert done.stderr.count("\n") == 1
    assert mrshc("dmeo").returncode == 2


def test_an_impossible_seed_is_the_users_mistake():
    done = mrshc("demo", "--seed", "-1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_studies_are_rendered_from_the_command_line(tmp_path):
    root = Path(__file__).parents[1]
    for part in ("studies", "docs"):
        shutil.copytree(root / part, tmp_path / part)
    done = mrshc("study", "table3", "--render", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == (root / "studies" / "table3.md").read_text()


def test_unknown_studies_and_missing_data_are_the_users_mistake(tmp_path):
    done = mrshc("study", "table9", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No study 'table9'" in done.stderr
    studies = Path(__file__).parents[1] / "studies"
    done = mrshc("study", "lymphoma", "--folder", str(studies), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "lymphoma needs the data set lymphoma.npz" in done.stderr
    assert "Traceback" not in done.stderr
