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
    committed = {name: getattr(bench, name) for name in ("PAGE", "LARGE_DATA", "WHICH_METHOD")}
    for name, page in committed.items():
        monkeypatch.setattr(bench, name, tmp_path / page.name)
        getattr(bench, name).write_text(page.read_text())
    monkeypatch.setattr(bench, "PICTURE", tmp_path / "growth.png")
    bench.render(results)
    for name, page in committed.items():
        assert getattr(bench, name).read_text() == page.read_text()
        shown += page.read_text()
    assert set(bench.PARTS) <= set(results)
    for part in bench.PARTS:
        assert shown.count(f"<!-- {part} -->\n\n") == 1
    assert results["gpu"]["figures"] == json.loads(bench.GPU.read_text())
    assert results["many_samples"]["figures"] == json.loads(bench.MANY_SAMPLES.read_text())


def test_early_stopping_hardly_ever_decides_otherwise(results):
    counts = results["early_stopping"]["figures"]
    assert counts["nodes"] > 10_000
    assert counts["other_verdict"] <= counts["nodes"] / 1000
