"""The pages show the committed results of the benchmarks."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bench  # noqa: E402

pytestmark = pytest.mark.documentation


@pytest.fixture
def results():
    return json.loads(bench.RESULTS.read_text())


def test_pages_show_the_committed_results(results, tmp_path, monkeypatch):
    shown = ""
    for name in ("PAGE", "SCALING", "WHICH_METHOD"):
        page = tmp_path / getattr(bench, name).name
        page.write_text(getattr(bench, name).read_text())
        monkeypatch.setattr(bench, name, page)
    monkeypatch.setattr(bench, "PICTURE", tmp_path / "growth.png")
    bench.render(results)
    for page in (bench.PAGE, bench.SCALING, bench.WHICH_METHOD):
        assert page.read_text() == (ROOT / "docs" / page.name).read_text()
        shown += page.read_text()
    assert set(bench.PARTS) == set(results)
    for part in results:
        assert shown.count(f"<!-- {part} -->\n\n") == 1
    assert results["gpu"]["figures"] == json.loads(bench.GPU.read_text())


def test_early_stopping_hardly_ever_decides_otherwise(results):
    counts = results["early_stopping"]["figures"]
    assert counts["nodes"] > 10_000
    assert counts["other_verdict"] <= counts["nodes"] / 1000
