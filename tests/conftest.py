import pytest

from residences import RESIDENCES, Residence, use_small_blocks


@pytest.fixture(params=RESIDENCES)
def residence(request, tmp_path, monkeypatch):
    """A place where X may live, swept in small blocks."""
    use_small_blocks(monkeypatch, 3000)
    return Residence(request.param, tmp_path)
