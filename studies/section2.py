"""The example of section 2 of the paper: features selected by SHC and, for each rank, by MrSHC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mrshc import SHC, MrSHC
from mrshc.datasets import SimulatedData, make_section2_example
from mrshc.metrics import classification_error_rate
from mrshc.plotting import dendrograms, write_picture
from studies.designs import Row, fit
from studies.tables import failure_note, markdown_table, mean_and_error

Task = tuple[int, int]  # design, draw
# The clusters differ in two directions: rank 2 is correct, 1 is too small, and 3 is too large.
_RANKS = (1, 2, 3)
# So many L1 bounds that two features rarely enter at the same one.
_N_BOUNDS = 150
_QUANTITIES = {
    "first_is_noise": "SHC's first feature is noise",
    "noise_in_first_4": "noise among SHC's first four features",
    "noise_before_all": "noise that SHC picks before it has all four",
    "exact_rank_1": "MrSHC, q = 4, rank 1: exactly the four features",
    "exact_rank_2": "MrSHC, q = 4, rank 2: exactly the four features",
    "exact_rank_3": "MrSHC, q = 4, rank 3: exactly the four features",
    "chose_rank_2": "MrSHC, q = 4, rank unknown: rank 2 chosen",
    "cer": "MrSHC, q = 4, rank unknown: CER at four clusters",
}


def tasks(config: dict[str, Any]) -> list[Task]:
    """Return the tasks."""
    designs = range(len(config["design"]))
    return [(d, draw) for draw in range(config["replicates"]) for d in designs]


def identity(config: dict[str, Any], task: Task) -> Row:
    """Return the columns that identify a row."""
    design, draw = task
    name = config["design"][design]["name"]
    return {"design": name, "draw": draw, "seed": config["seed"] + draw}


def run(config: dict[str, Any], task: Task, _: Path | None, out: Path) -> list[Row]:
    """Return the row of a simulated data set; the figure shows one of them."""
    row = identity(config, task)
    seed = row["seed"]
    data = make_section2_example(seed, noise_sd=config["design"][task[0]]["noise_sd"])
    useful = data.support[order_of_entry(data.X)]
    row |= {
        "first_is_noise": not useful[0],
        "noise_in_first_4": int((~useful[:4]).sum()),
        "noise_before_all": int((~useful[: np.flatnonzero(useful)[-1]]).sum()),
    }
    mrshc = {"estimator": "MrSHC", "n_features_to_select": 4}
    for rank in _RANKS:
        support = fit(mrshc | {"rank": rank}, data.X, seed).get_support()
        row[f"exact_rank_{rank}"] = bool(np.array_equal(support, data.support))
    model = fit(mrshc, data.X, seed)
    row["chose_rank_2"] = model.rank_ == 2
    row["cer"] = classification_error_rate(data.labels, model.cut(4))
    # A trial with few draws shows its last draw. The file of a picture with 110 dots per inch is
    # small enough to be committed.
    if task == (0, min(config["draw_shown"], config["replicates"] - 1)):
        write_picture(_draw_dendrograms(data, seed), out / f"{config['name']}.png", dpi=110)
    return [row]


def order_of_entry(X: np.ndarray) -> np.ndarray:
    """Return the features in the order in which SHC selects them; ties by decreasing weight."""
    p = X.shape[1]
    entry, weight = np.full(p, np.inf), np.zeros(p)
    for step, bound in enumerate(np.linspace(1.01, np.sqrt(p), _N_BOUNDS)):
        weights = SHC(l1_bound=float(bound)).fit(X).feature_weights_
        new = np.isinf(entry) & (weights > 0)
        entry[new] = step
        weight[new] = weights[new]
    return np.lexsort((-weight, entry))


def _draw_dendrograms(data: SimulatedData, seed: int) -> Figure:
    """Return a figure of the trees of SHC and MrSHC, with the selected features in the titles."""
    models = {
        "SHC": SHC(4).fit(data.X),
        "MrSHC, q = 4 known": MrSHC(4, random_state=seed).fit(data.X),
        "MrSHC, q unknown": MrSHC(range(2, 9), random_state=seed).fit(data.X),
    }
    selected = {
        name: ", ".join(np.array(data.feature_names)[model.get_support()])
        for name, model in models.items()
    }
    return dendrograms(
        models,
        annotations={"true cluster": [f"cluster {label + 1}" for label in data.labels]},
        titles=[f"{name}: {features}" for name, features in selected.items()],
        names=range(len(data.labels)),
    )


def render(config: dict[str, Any], results: pd.DataFrame, _: Any) -> str:
    """Return a table with a row for each quantity, with values from R, and the figure."""
    headings, rows = [""], [[text] for text in _QUANTITIES.values()]
    for design in config["design"]:
        of_design = results[results["design"] == design["name"]]
        headings += [f"{design['name']}: R", f"mrshc, {len(of_design)} draws"]
        for row, quantity in zip(rows, _QUANTITIES, strict=True):
            mean, error = mean_and_error(of_design[quantity].astype(float))
            reference = design.get("in_r", {}).get(quantity)
            row += ["" if reference is None else f"{reference:.2f}", f"{mean:.3f} ({error:.3f})"]
    picture = f"\n![{config['title']}]({config['name']}.png)\n"
    return markdown_table(headings, rows) + picture + failure_note(results)
