"""Free memory is the minimum over the system and the control groups of the process."""

import math

import psutil
import pytest

from mrshc.io.memory import control_group_memory, format_size, free_memory


def test_free_memory_is_no_more_than_the_system_has():
    assert 0 < free_memory() <= psutil.virtual_memory().total


def group(folder, *, limit, use, cached=0, version=2):
    """Write the files by which a control group limits memory."""
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("memory.max", "memory.current", "inactive_file"),
    }[version]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n", encoding="ascii")
    (folder / names[1]).write_text(f"{use}\n", encoding="ascii")
    (folder / "memory.stat").write_text(f"anon 7\n{names[2]} {cached}\n", encoding="ascii")


def test_a_control_group_of_version_2_leaves_its_limit_less_what_is_used(tmp_path):
    group(tmp_path / "jobs" / "mine", limit=1000, use=700, cached=50)
    assert control_group_memory("0::/jobs/mine\n", mount=tmp_path) == 350


def test_a_control_group_of_version_1_is_found_among_other_controllers(tmp_path):
    group(tmp_path / "memory" / "mine", limit=1000, use=400, version=1)
    group(tmp_path / "cpu" / "mine", limit=10, use=0, version=1)
    groups = "9:name=systemd:/mine\n4:cpu,cpuacct:/mine\n3:memory:/mine\n0::/\n"
    assert control_group_memory(groups, mount=tmp_path) == 600


def test_the_tightest_limit_of_all_groups_around_counts(tmp_path):
    group(tmp_path, limit="max", use=900)
    group(tmp_path / "jobs", limit=500, use=400)
    group(tmp_path / "jobs" / "mine", limit=1000, use=100)
    assert control_group_memory("0::/jobs/mine\n", mount=tmp_path) == 100


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path):
    group(tmp_path, limit=1000, use=100)
    assert control_group_memory("0::/docker/0123abc\n", mount=tmp_path) == 900


def test_a_group_beyond_its_limit_leaves_nothing(tmp_path):
    group(tmp_path, limit=1000, use=1100)
    assert control_group_memory("0::/\n", mount=tmp_path) == 0


@pytest.mark.parametrize("groups", ["", "0::/\n", "3:memory:/mine\n", "nonsense", "0::/../../..\n"])
def test_memory_is_infinite_without_limits(tmp_path, groups):
    group(tmp_path, limit="max", use=100)
    assert control_group_memory(groups, mount=tmp_path) == math.inf


@pytest.mark.parametrize(
    ("count", "words"),
    [(17, "17 bytes"), (57_600, "58 kB"), (1_500_000, "1.5 MB"), (4 * 10**12, "4.0 TB")],
)
def test_sizes_are_formatted_with_units(count, words):
    assert format_size(count) == words
