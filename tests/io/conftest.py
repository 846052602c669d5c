"""What tests of reading share."""

import pytest


@pytest.fixture
def write(tmp_path):
    def written(content, name="table.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written
