"""The command line in a process of its own.

Pictures take most of the time of a run on a small table: they are drawn only where a test asks for
them.
"""

import subprocess
import sys
from pathlib import Path

INSTALLED = [str(Path(sys.executable).with_name("mrshc"))]
WITHOUT_PICTURES = [
    sys.executable,
    "-c",
    "from mrshc.plotting.result_pictures import PICTURES; PICTURES.clear()\n"
    "from mrshc.app import cli; cli.main()",
]


def mrshc(*arguments, pictures=False, **options):
    """Run a command to its end; return what it said and its exit code."""
    command = INSTALLED if pictures else WITHOUT_PICTURES
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )
