"""Fixtures of the tests of reading."""

import pytest


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="table.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file
