"""The page as a text: the policy that it declares, and how it reaches a file."""

import os
import subprocess
import sys


def test_a_page_is_written_in_utf_8_whatever_the_locale(tmp_path):
    path = tmp_path / "page.html"
    code = (
        "import pathlib, sys; from mrshc.files import write_text;"
        " write_text(pathlib.Path(sys.argv[1]), '\\u2026 \\u25b4')"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(path)], env=os.environ | plain, check=True)
    assert path.read_bytes() == "… ▴".encode()
