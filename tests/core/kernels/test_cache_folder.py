"""The folder for compiled code: where it lies, and whether it contains code of this version."""

from pathlib import Path

import pytest

from mrshc.core.kernels import cache_folder as module
from mrshc.core.kernels.cache_folder import cache_folder, mark_cached_code, source_hash


@pytest.fixture
def source(tmp_path):
    """Return a folder with a source file."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "loops.py").write_text("x = 1\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """Let the user's caches be in a new folder, and none be chosen."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(module, "_user_cache_folder", lambda: tmp_path / "home")
    return tmp_path / "home"


def refuse_folders(monkeypatch, *refused):
    """Let files in some folders be refused, as on a read-only file system."""
    create = module.tempfile.TemporaryFile

    def create_unless_refused(dir):  # noqa: A002 (the name of the argument in tempfile)
        if any(Path(dir).is_relative_to(folder) for folder in refused):
            raise OSError(30, "Read-only file system")
        return create(dir=dir)

    monkeypatch.setattr(module.tempfile, "TemporaryFile", create_unless_refused)


def test_the_code_lies_beside_the_source(source):
    assert cache_folder(source) == source / "__pycache__"


def test_a_chosen_folder_comes_first(source, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert cache_folder(source).parent == tmp_path / "chosen"


def test_a_read_only_installation_uses_the_caches_of_the_user(source, home, monkeypatch):
    refuse_folders(monkeypatch, source)
    folder = cache_folder(source)
    assert folder.is_relative_to(home)
    other = source.parent / "other"
    other.mkdir()
    refuse_folders(monkeypatch, source, other)
    assert cache_folder(other) != folder, "installations do not share a folder"


def test_there_may_be_no_folder(source, home, monkeypatch):
    refuse_folders(monkeypatch, source, home)
    assert cache_folder(source) is None


def test_code_is_cached_until_the_source_changes(source, monkeypatch):
    monkeypatch.setattr(module, "KERNELS", source)
    assert not module.has_cached_code()
    mark_cached_code(cache_folder(source), source)
    assert module.has_cached_code()
    (source / "loops.py").write_text("x = 2\n", encoding="utf-8")
    source_hash.cache_clear()
    assert not module.has_cached_code()
    mark_cached_code(cache_folder(source), source)
    assert len(list(cache_folder(source).iterdir())) == 1, "the old mark is removed"
