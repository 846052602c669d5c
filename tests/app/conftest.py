import sys

import pytest

from mrshc.app import cli


@pytest.fixture
def main(monkeypatch, capsys):
    """Run the command line in this process: it starts faster."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mrshc", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run
