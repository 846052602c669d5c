"""Download the part of plotly.js that the report needs, check it, and store it in the package.

`make plotly` runs this script. For another version, change `VERSION` and `INTEGRITY`. The integrity
is the entry `dist.integrity` of https://registry.npmjs.org/plotly.js-cartesian-dist-min/VERSION.
"""

import sys
from base64 import b64encode
from hashlib import sha256, sha512
from io import BytesIO
from pathlib import Path
from tarfile import open as open_archive
from urllib.request import urlopen

# The bundle "cartesian" is the smallest one with the traces of the report: scatter, bar and
# heatmap. The bundle "basic" has no heat maps.
PACKAGE = "plotly.js-cartesian-dist-min"
VERSION = "4.1.1"
INTEGRITY = (
    "sha512-o8GrFeusncwBIxbBynRJpY4pkgVB6caM+JLpwrLYbbsO7dZ8"
    "FJ+SVN2Fr+L7kiG/Z6w4P5O0Jus/Qr5EefHVeg=="
)
FILES = ("plotly-cartesian.min.js", "LICENSE")
FOLDER = Path(__file__).parents[1] / "src" / "mrshc" / "report" / "assets" / "plotly"
# Seconds without an answer of the registry. Not tuned: results do not depend on it.
TIMEOUT = 60


def download():
    """Return the archive of the package; exit with a message if its checksum is wrong."""
    address = f"https://registry.npmjs.org/{PACKAGE}/-/{PACKAGE}-{VERSION}.tgz"
    with urlopen(address, timeout=TIMEOUT) as answer:
        archive = answer.read()
    found = "sha512-" + b64encode(sha512(archive).digest()).decode("ascii")
    if found != INTEGRITY:
        sys.exit(f"{address} must have the checksum {INTEGRITY}, got {found}. Nothing is changed.")
    return archive


def main():
    """Replace the files of plotly.js and the list of their checksums."""
    with open_archive(fileobj=BytesIO(download())) as archive:
        contents = {name: archive.extractfile(f"package/{name}").read() for name in FILES}
    for name, content in contents.items():
        (FOLDER / name).write_bytes(content)
    # In the format of the program sha256sum, which can check it: sha256sum --check SHA256SUMS
    sums = "".join(f"{sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    (FOLDER / "SHA256SUMS").write_text(sums, encoding="ascii")


if __name__ == "__main__":
    main()
