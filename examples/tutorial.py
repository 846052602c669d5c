"""Make docs/tutorial.md and README.md true again: run their commands, put in what comes out.

    python examples/tutorial.py FOLDER

FOLDER holds lymphoma.npz (62 samples of three lymphomas, 4,026 genes; Alizadeh and others 2000),
which is not part of the project. Texts between the marks of a page and the pictures in docs/images
are replaced.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "studies"))

from publish import published  # noqa: E402 - a script, not part of the package

IMAGES = ROOT / "docs" / "images"
MRSHC = Path(sys.executable).with_name("mrshc")

READ = "mrshc cluster lymphoma.tsv --samples classes.csv --truth class"
COMMANDS = {
    "first run": f"{READ} --out lymphoma",
    "second run": f"{READ} --n-features 140 --rank 2 --out lymphoma140",
    "evidence": f"{READ} --selection evidence --refine --out refined",
    "robust": (
        "mrshc cluster spoilt.tsv --samples classes.csv --truth class --robust --out spoilt"
    ),
    "comparison": (
        "mrshc compare lymphoma.tsv --samples classes.csv --truth class --n-features 140 "
        "--out comparison"
    ),
}
PICTURES = {
    "tutorial-search.png": "lymphoma/search.png",
    "tutorial-dendrogram.png": "lymphoma140/dendrogram.png",
    "tutorial-heatmap.png": "lymphoma140/heatmap.png",
    "tutorial-splits.png": "lymphoma140/splits.png",
    "tutorial-evidence.png": "refined/search.png",
    "tutorial-markers.png": "lymphoma140/markers.png",
    "tutorial-spoilt.png": "spoilt/heatmap.png",
    "tutorial-comparison.png": "comparison/dendrograms.png",
}
SNIPPET = """\
import pandas as pd
from mrshc.io import load_result

result = load_result("lymphoma140")
print(pd.crosstab(result.samples["class"], result.samples["cluster"]))
print(result.features[["effect_size", "loading_1", "loading_2"]].head(4).round(2))
print(result.markers[["contrast", "inside", "outside", "feature", "effect_size"]].head(4).round(2))
"""


def write_tables(data: Path, folder: Path) -> None:
    """Write the data as a biologist would have them: genes in rows, classes in a second file."""
    with np.load(data / "lymphoma.npz", allow_pickle=False) as content:
        X, y = content["X"], content["y"]
    samples = [f"{name}{i + 1}" for i, name in enumerate(y)]
    genes = pd.Index([f"gene{j + 1}" for j in range(X.shape[1])], name="gene")
    table = pd.DataFrame(X.T, index=genes, columns=samples)
    table.to_csv(folder / "lymphoma.tsv", sep="\t")
    spoilt(table).to_csv(folder / "spoilt.tsv", sep="\t", float_format="%.4g")
    classes = pd.DataFrame({"sample": samples, "class": y})
    classes.to_csv(folder / "classes.csv", index=False)


def spoilt(table: pd.DataFrame) -> pd.DataFrame:
    """Return the data with a tenth of the cells lost, and two arrays that failed."""
    rng = np.random.default_rng(0)
    table = table.mask(rng.random(table.shape) < 0.1)
    for sample in ("DLBCL6", "FL46"):
        table[sample] = 3 * rng.permutation(table[sample].to_numpy())
    return table


def outputs_of(folder: Path) -> dict[str, str]:
    """Run all commands in a folder; return what they say, by the name of the mark."""
    blocks = {}
    for name, command in COMMANDS.items():
        words = [str(MRSHC), *shlex.split(command)[1:]]
        environment = {**os.environ, "COLUMNS": "100"}
        said = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        blocks[name] = f"```\n$ {command}\n{said.stdout}```\n"
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(SNIPPET, {})
    blocks["in python"] = f"```python\n{SNIPPET}```\n\n```\n{printed.getvalue()}```\n"
    return blocks


def photograph(report: Path, picture: Path) -> None:
    """Open a report in Chromium and save what a reader sees first."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1250})
        page.goto(report.as_uri())
        page.wait_for_function("window.page")
        page.evaluate("page.settled.then(() => true)")
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Run everything and renew the pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(Path(sys.argv[1]), folder)
        blocks = outputs_of(folder)
        for page in (ROOT / "README.md", ROOT / "docs" / "tutorial.md"):
            text = page.read_text(encoding="utf-8")
            for mark, block in blocks.items():
                text = published(text, mark, block)
            page.write_text(text, encoding="utf-8")
        for picture, made in PICTURES.items():
            shutil.copy(folder / made, IMAGES / picture)
        photograph(folder / "lymphoma140" / "report.html", IMAGES / "report.png")


if __name__ == "__main__":
    main()
