import pytest

from storage_backends import STORAGE_BACKENDS, StorageBackend, use_small_blocks


@pytest.fixture(params=STORAGE_BACKENDS)
def backend(request, tmp_path, monkeypatch):
    """A place where X may live, swept in small blocks."""
    use_small_blocks(monkeypatch, 3000)
    return StorageBackend(request.param, tmp_path)
