"""Install the wheel of a release in new environments, run it there, and print all sizes.

`make dist` runs this script with the folder of the source distribution and the wheel. The
dependencies are the newest versions, as for a user who installs mrshc on the same day. Everything
runs in a temporary folder, so that the source code cannot be imported in place of the wheel.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

FIT = """
import numpy as np
from mrshc import MrSHC
X = np.random.default_rng(0).standard_normal((20, 30))
X[:10, :5] += 5
model = MrSHC([5], rank=1, n_clusters=2).fit(X)
assert sorted(np.bincount(model.labels_)) == [10, 10]
"""
# The sentence that the command line ends with if only the dependencies are installed.
ADVICE = "pip install 'mrshc[all]'."
# Largest size of the report of the demo, in bytes. It can be attached to e-mails.
MAX_REPORT = 2_500_000


class Environment:
    """A new virtual environment with a wheel, which runs programs in its own folder."""

    def __init__(self, folder, requirement):
        self._folder = folder
        folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        empty = self._size()
        self.run("python", "-m", "pip", "install", "--quiet", requirement)
        self.size = self._size() - empty

    def run(self, program, *arguments, **options):
        """Run a program of the environment, which must not import anything from elsewhere."""
        variables = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}
        command = [self._folder / "venv" / "bin" / program, *arguments]
        settings = {"cwd": self._folder, "env": variables, "check": True} | options
        return subprocess.run(command, **settings)

    def size_of(self, name):
        """Return the size of a file that a program has written."""
        return (self._folder / name).stat().st_size

    def _size(self):
        files = (self._folder / "venv").rglob("*")
        return sum(file.lstat().st_size for file in files if not file.is_dir())


def try_plain_installation(folder, wheel):
    """Fit an estimator without any extra, and return the size of the installation."""
    environment = Environment(folder, str(wheel))
    environment.run("python", "-c", FIT)
    ended = environment.run("mrshc", "demo", check=False, capture_output=True, text=True)
    if ended.returncode != 2 or not ended.stderr.endswith(f"{ADVICE}\n"):
        sys.exit(f"mrshc demo without extras must end with {ADVICE!r}, got:\n{ended.stderr}")
    return environment.size


def try_full_installation(folder, wheel):
    """Run commands with the extra `all`; return the sizes of the installation and of a report."""
    environment = Environment(folder, f"{wheel}[all]")
    environment.run("mrshc", "demo")
    report = environment.size_of("mrshc-demo/report.html")
    if report > MAX_REPORT:
        sys.exit(f"The report of the demo may have {MAX_REPORT} bytes, got {report}.")
    return environment.size, report


def main():
    """Try the wheel, and print the sizes."""
    dist = Path(sys.argv[1]).resolve()
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with TemporaryDirectory() as temporary:
        plain = try_plain_installation(Path(temporary) / "plain", wheel)
        full, report = try_full_installation(Path(temporary) / "full", wheel)
    sizes = {
        "source distribution": source.stat().st_size,
        "wheel": wheel.stat().st_size,
        "installation of mrshc": plain,
        "installation of mrshc[all]": full,
        "report of the demo": report,
    }
    for name, size in sizes.items():
        sys.stdout.write(f"{name:<28}{size / 1e6:>8.1f} MB\n")


if __name__ == "__main__":
    main()
