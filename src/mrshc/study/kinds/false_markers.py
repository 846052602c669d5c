"""Studies of markers: how many features are reported that do not differ between true groups."""

from __future__ import annotations

from mrshc.study.config import Folders, Study
from mrshc.study.designs_and_methods import (
    draw_dataset,
    ignore_unsupported_clusters,
    make_estimator,
)
from mrshc.study.kinds.simulated_designs import identity, render, tasks
from mrshc.study.study_journal import Row, Task

__all__ = ["identity", "render", "run_task", "tasks"]


def run_task(study: Study, task: Task, _folders: Folders) -> list[Row]:
    """Return one row, in a list, with the numbers of all markers and of false markers.

    A marker is a feature with a q-value of at most 0.05 in any comparison. It is false if it is not
    an informative feature.
    """
    row = identity(study, task)
    data = draw_dataset(study, study.entries("design")[task[0]], row["seed"])
    with ignore_unsupported_clusters():
        model = make_estimator(study, study.entries("method")[task[2]], row["seed"]).fit(data.X)
        markers = model.markers(data.X, alpha=study.option("alpha"))
    features = markers["feature"].unique()
    false = features[~data.support[features]]
    return [
        row
        | {
            "n_markers": features.size,
            "n_false_markers": false.size,
            "any_false_marker": bool(false.size),
            "supported": model.supported_,
        }
    ]
