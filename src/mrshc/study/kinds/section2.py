"""The example of section 2 of the paper: features selected by SHC and, for each rank, by MrSHC."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mrshc import SHC, MrSHC
from mrshc.datasets import SimulatedData, make_section2_example
from mrshc.metrics import classification_error_rate
from mrshc.plotting import dendrograms, write_picture
from mrshc.study.config import Folders, Study, StudyError
from mrshc.study.designs_and_methods import check_names, ignore_unsupported_clusters
from mrshc.study.study_journal import Row, Task
from mrshc.study.tables import failure_note, markdown_table, mean_and_error

# The clusters of the example differ in two directions: rank 2 is correct, rank 1 is too small, and
# rank 3 is too large.
_RANKS = (1, 2, 3)
# Number of L1 bounds for which SHC is computed. The bounds are so close that two features are
# rarely selected for the first time at the same bound. Such ties are broken by weight.
_N_BOUNDS = 150

# Columns of the results, each with its description in the rendered table.
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


def tasks(study: Study, _folders: Folders) -> list[Task]:
    """Return one task (design, draw) for each simulated data set of each design.

    Raise StudyError if the config is invalid.
    """
    check_names(study, "design")
    for design in study.entries("design"):
        if not isinstance(design.get("noise_sd"), int | float):
            raise StudyError(f"{study.name}.toml must give every design a number as noise_sd.")
    study.option("draw_shown")
    designs = range(len(study.entries("design")))
    return [(d, draw) for draw in range(study.replicates) for d in designs]


def identity(study: Study, task: Task) -> Row:
    """Return the columns that identify a task in the table of results."""
    design, draw = task
    name = study.entries("design")[design]["name"]
    return {"design": name, "draw": draw, "seed": study.option("seed") + draw}


def run_task(study: Study, task: Task, folders: Folders) -> list[Row]:
    """Return one row, in a list, with the results for one simulated data set.

    If this data set is the one to be shown in the figure, the figure is written.
    """
    row = identity(study, task)
    seed = row["seed"]
    data = make_section2_example(seed, noise_sd=study.entries("design")[task[0]]["noise_sd"])
    # `useful` is a boolean array that states whether each feature is informative, in the order in
    # which SHC selects the features. Four features are informative.
    useful = data.support[order_of_entry(data.X)]
    row |= {
        "first_is_noise": not useful[0],
        "noise_in_first_4": int((~useful[:4]).sum()),
        "noise_before_all": int((~useful[: np.flatnonzero(useful)[-1]]).sum()),
    }
    with ignore_unsupported_clusters():
        for rank in _RANKS:
            support = MrSHC(4, rank=rank, random_state=seed).fit(data.X).get_support()
            row[f"exact_rank_{rank}"] = bool(np.array_equal(support, data.support))
        model = MrSHC(4, random_state=seed).fit(data.X)
        row["chose_rank_2"] = model.rank_ == 2
        row["cer"] = classification_error_rate(data.labels, model.cut(4))
        # A trial run with too few draws shows its last draw.
        if task == (0, min(study.option("draw_shown"), study.replicates - 1)):
            picture = folders.out / f"{study.name}.png"
            # A picture with 110 dots per inch is legible on a page, and its file is small enough to
            # be committed.
            write_picture(_draw_dendrograms(data, seed), picture, dpi=110)
    return [row]


def order_of_entry(X: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the features in the order in which SHC selects them as its L1 bound increases.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.

    Returns
    -------
    ndarray of shape (n_features,)
        Positions of the features. Features that are first selected at the same bound are sorted by
        decreasing weight.
    """
    p = X.shape[1]
    entry, weight = np.full(p, np.inf), np.zeros(p)
    # Let p be the number of features. A bound of 1 selects one feature, and a bound above sqrt(p)
    # has no effect.
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


def render(study: Study, results: pd.DataFrame, _references: pd.DataFrame) -> str:
    """Return a Markdown table with a row for each quantity, and the figure.

    For each design, one column contains the values from R, and one contains those of mrshc.
    """
    headings, rows = [""], [[text] for text in _QUANTITIES.values()]
    for design in study.entries("design"):
        of_design = results[results["design"] == design["name"]]
        headings += [f"{design['name']}: R", f"mrshc, {len(of_design)} draws"]
        for row, quantity in zip(rows, _QUANTITIES, strict=True):
            mean, error = mean_and_error(of_design[quantity].astype(float))
            reference = design.get("in_r", {}).get(quantity)
            row += ["" if reference is None else f"{reference:.2f}", f"{mean:.3f} ({error:.3f})"]
    picture = f"\n![{study.title}]({study.name}.png)\n"
    return markdown_table(headings, rows) + picture + failure_note(results)
