"""Run the commands of docs/guide/tutorial.md, and insert their current outputs.

    python examples/tutorial.py FOLDER

FOLDER holds lymphoma.npz (62 samples of three lymphomas, 4,026 genes; Alizadeh and others 2000),
which is not part of the project. The text between the marks of each section and the pictures in
docs/images are replaced.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from studies.pages import replace_section  # noqa: E402 - not part of the package

PAGE = ROOT / "docs" / "guide" / "tutorial.md"
IMAGES = ROOT / "docs" / "images"
# Width of the pictures: about twice that of a page of the site, for screens of high resolution.
_PAGE_PIXELS = 1600
MRSHC = Path(sys.executable).with_name("mrshc")

CLUSTER = "mrshc cluster lymphoma.tsv --samples classes.csv --truth class"
# Procedures of the table that compares them: name and options, by the folder of the result. 140
# features and rank 2 are the choice of Zhang and Zamar (2014) for these data.
PROCEDURES = {
    "lymphoma": ("recommended", ""),
    "paper": ("paper", "--paper"),
    "paper140": ("paper, with its q and rank", "--paper --n-features 140 --rank 2"),
}


def procedure_command(folder: str) -> str:
    """Return the command whose result is written to one of the folders of `PROCEDURES`."""
    _, options = PROCEDURES[folder]
    return " ".join(filter(None, [CLUSTER, options, f"--out {folder}"]))


# Commands by the section that shows their output.
COMMANDS = {
    "first run": procedure_command("lymphoma"),
    "paper": procedure_command("paper"),
    "noise": "mrshc cluster noise.tsv --out noise",
    "robust": (
        "mrshc cluster spoilt.tsv --samples classes.csv --truth class --robust --out spoilt"
    ),
    "comparison": (
        "mrshc compare lymphoma.tsv --samples classes.csv --truth class --out comparison"
    ),
}
# Pictures of the pages, and the outputs that they are copies of.
PICTURES = {
    "tutorial-search.png": "lymphoma/search.png",
    "tutorial-dendrogram.png": "lymphoma/dendrogram.png",
    "tutorial-heatmap.png": "lymphoma/heatmap.png",
    "tutorial-markers.png": "lymphoma/markers.png",
    "tutorial-paper-search.png": "paper/search.png",
    "tutorial-splits.png": "paper/splits.png",
    "tutorial-spoilt.png": "spoilt/heatmap.png",
    "tutorial-comparison.png": "comparison/dendrograms.png",
}
# Python code of the tutorial; its output is shown after it.
SNIPPET = """\
import pandas as pd
from mrshc.io import load_result

result = load_result("lymphoma")
print(pd.crosstab(result.samples["class"], result.samples["cluster"]))
print(result.features[["selected", "associated", "effect_size"]].head(4).round(2))
print(result.markers[["contrast", "inside", "outside", "feature", "effect_size"]].head(4).round(2))
"""


def write_tables(data: Path, folder: Path) -> None:
    """Write the data as tables of text: genes in rows, classes in a second file."""
    with np.load(data / "lymphoma.npz", allow_pickle=False) as content:
        X, y = content["X"], content["y"]
    samples = [f"{name}{i + 1}" for i, name in enumerate(y)]
    genes = pd.Index([f"gene{j + 1}" for j in range(X.shape[1])], name="gene")
    table = pd.DataFrame(X.T, index=genes, columns=samples)
    table.to_csv(folder / "lymphoma.tsv", sep="\t")
    contaminate(table).to_csv(folder / "spoilt.tsv", sep="\t", float_format="%.4g")
    classes = pd.DataFrame({"sample": samples, "class": y})
    classes.to_csv(folder / "classes.csv", index=False)
    simulate_noise().to_csv(folder / "noise.tsv", sep="\t", float_format="%.4g")


def simulate_noise() -> pd.DataFrame:
    """Return independent normal values of 1,000 genes in 62 samples, without any clusters."""
    # A fixed seed, so that the pages change only with the code.
    values = np.random.default_rng(0).standard_normal((1000, 62))
    genes = pd.Index([f"gene{j + 1}" for j in range(values.shape[0])], name="gene")
    return pd.DataFrame(values, genes, [f"sample{i + 1}" for i in range(values.shape[1])])


def contaminate(table: pd.DataFrame) -> pd.DataFrame:
    """Return the data with a tenth of the values missing, and two failed arrays."""
    # A fixed seed, so that the pages change only with the code.
    rng = np.random.default_rng(0)
    table = table.mask(rng.random(table.shape) < 0.1)
    # A failed array: its values no longer belong to their genes, and are three times as large.
    for sample in ("DLBCL6", "FL46"):
        table[sample] = 3 * rng.permutation(table[sample].to_numpy())
    return table


def run_commands(folder: Path) -> dict[str, str]:
    """Run all commands in a folder; return the text of each section, by its name."""
    outputs: dict[str, str] = {}
    for command in [*COMMANDS.values(), *map(procedure_command, PROCEDURES)]:
        # Two of the procedures are also sections.
        if command not in outputs:
            outputs[command] = run_command(command, folder)
    blocks = {
        name: f"```\n$ {command}\n{outputs[command]}```\n" for name, command in COMMANDS.items()
    }
    blocks["procedures"] = render_procedures(folder, list(PROCEDURES))
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(SNIPPET, {})
    blocks["in python"] = f"```python\n{SNIPPET}```\n\n```\n{printed.getvalue()}```\n"
    return blocks


def run_command(command: str, folder: Path) -> str:
    """Run a command of mrshc in a folder; return its output."""
    words = [str(MRSHC), *shlex.split(command)[1:]]
    # The width of the pages' code blocks, whatever the terminal.
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def render_procedures(folder: Path, names: Iterable[str]) -> str:
    """Return a table of the results of some procedures, in Markdown.

    Parameters
    ----------
    folder : Path
        Folder in which the commands were run.
    names : iterable of str
        Keys of `PROCEDURES`.
    """
    headings = ["procedure", "options", "features", "clusters"]
    headings += ["ARI of these clusters", "ARI at the number of classes"]
    rows = [headings, ["---"] * len(headings)]
    for name in names:
        title, options = PROCEDURES[name]
        result = json.loads((folder / name / "result.json").read_text(encoding="utf-8"))
        chosen, scores = result["chosen"], result["scores"]
        cells = [title, f"`{options}`" if options else "none", f"{chosen['n_features']:,}"]
        cells += [str(chosen["n_clusters"])]
        rows.append([*cells, f"{scores['ari']:.3f}", f"{scores['ari_at_n_classes']:.3f}"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def save_reduced(source: Path, picture: Path) -> None:
    """Save a picture for print with fewer pixels, for a page."""
    from PIL import Image

    with Image.open(source) as image:
        size = (_PAGE_PIXELS, round(image.height * _PAGE_PIXELS / image.width))
        reduced = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        reduced.save(picture, optimize=True)


def take_screenshot(report: Path, picture: Path) -> None:
    """Save the top of a report, as Chromium shows it, as a picture."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        # Chromium does not start its sandbox for root, as in a container.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1800})
        page.goto(report.as_uri())
        # The report draws its plots after it is loaded: wait until it has finished.
        page.wait_for_function("window.page")
        page.evaluate("page.settled.then(() => true)")
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Run all commands, and update the page and its pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(Path(sys.argv[1]), folder)
        blocks = run_commands(folder)
        text = PAGE.read_text(encoding="utf-8")
        for section, block in blocks.items():
            text = replace_section(text, section, block)
        PAGE.write_text(text, encoding="utf-8")
        for picture, source in PICTURES.items():
            save_reduced(folder / source, IMAGES / picture)
        take_screenshot(folder / "lymphoma" / "report.html", IMAGES / "report.png")


if __name__ == "__main__":
    main()
