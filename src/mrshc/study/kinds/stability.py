"""Studies of the stability of clusters of simulated data, with the true and with other numbers."""

from __future__ import annotations

from mrshc.estimators import stability
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
    """Return one row, in a list, with the stability of one method on one simulated data set.

    The item `extra_clusters` of a method is added to the true number of clusters.
    """
    row = identity(study, task)
    data = draw_dataset(study, study.entries("design")[task[0]], row["seed"])
    method = dict(study.entries("method")[task[2]])
    n_clusters = int(data.labels.max()) + 1 + method.pop("extra_clusters", 0)
    with ignore_unsupported_clusters():
        model = make_estimator(study, method, row["seed"], n_clusters=n_clusters).fit(data.X)
        result = stability(
            model,
            data.X,
            n_resamples=study.option("n_resamples"),
            random_state=row["seed"],
            n_jobs=1,  # the tasks of a study are run in parallel
        )
    row |= {
        "jaccard_min": result.cluster_jaccard.min(),
        "jaccard_mean": result.cluster_jaccard.mean(),
        "frequency_noise": result.feature_frequency[~data.support].mean(),
    }
    if data.support.any():
        row |= {"frequency_informative": result.feature_frequency[data.support].mean()}
    return [row]
