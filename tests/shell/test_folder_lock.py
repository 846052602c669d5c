"""One process at a time works in a folder, also while folders come and go."""

import subprocess
import sys

import pytest

from mrshc.errors import UserError
from mrshc.shell.folder_lock import create_and_lock_folder, remove_locked_folder

# Enters the folder again and again. While inside, it alone may own a file; what it removes at the
# end must not belong to others.
RIVAL = """
import os, sys
from pathlib import Path
from mrshc.shell.folder_lock import create_and_lock_folder, remove_locked_folder
folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
entered = 0
for _ in range(rounds):
    with create_and_lock_folder(folder) as mine:
        if mine:
            entered += 1
            os.close(os.open(folder / "owner", os.O_CREAT | os.O_EXCL))
            os.unlink(folder / "owner")
            if entered % 2:
                remove_locked_folder(folder)
print(entered)
"""


def test_no_two_processes_are_in_the_folder_at_once(tmp_path):
    command = [sys.executable, "-c", RIVAL, str(tmp_path / "deep" / "work"), "1500"]
    rivals = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    printed = [rival.communicate()[0] for rival in rivals]
    assert [rival.returncode for rival in rivals] == [0] * 4
    assert all(int(entered) > 0 for entered in printed)
    assert not (tmp_path / "deep" / "work").exists()


def test_a_locked_folder_is_not_entered_and_not_removed(tmp_path):
    with create_and_lock_folder(tmp_path / "work") as mine:
        assert mine
        with create_and_lock_folder(tmp_path / "work") as other:
            assert not other
        assert (tmp_path / "work" / "lock").exists()
    assert list(tmp_path.iterdir()) == []


def test_content_is_kept_unless_it_is_removed(tmp_path):
    work = tmp_path / "work"
    with create_and_lock_folder(work):
        (work / "steps").write_text("1", encoding="utf-8")
        (work / "folder").mkdir()
    assert {path.name for path in work.iterdir()} == {"lock", "steps", "folder"}
    with create_and_lock_folder(work) as mine:
        assert mine
        remove_locked_folder(work)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lead", ["file", "missing"])
def test_a_link_in_place_of_the_lock_is_refused(tmp_path, lead):
    (tmp_path / "file").write_text("precious", encoding="utf-8")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lock").symlink_to(tmp_path / lead)
    with (
        pytest.raises(UserError, match="is a link, but a file was wanted"),
        create_and_lock_folder(tmp_path / "work"),
    ):
        pytest.fail("entered")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "precious"
    assert not (tmp_path / "missing").exists()


def test_the_lock_file_is_not_truncated(tmp_path):
    (tmp_path / "lock").write_text("content", encoding="utf-8")
    (tmp_path / "other").write_text("x", encoding="utf-8")
    with create_and_lock_folder(tmp_path) as mine:
        assert mine
        assert (tmp_path / "lock").read_text(encoding="utf-8") == "content"
