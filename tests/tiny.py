"""A result of six samples and five features, small enough to be written and damaged often."""

import numpy as np
import pandas as pd

from mrshc.app import fit, make_plan
from mrshc.io import Table

NAMES = ['a, "b"', "NA", "001", "naïve", "s5", "s6"]


def tiny_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 5))
    X[3:, :3] += 6
    features = np.array([f"g{j}" for j in range(5)], dtype=object)
    classes = pd.DataFrame({"class": [*"uuuvv", None], "age": [1.5, 2, 3, np.nan, 5, 6]}, NAMES)
    return Table(
        X=X,
        sample_names=np.array(NAMES, dtype=object),
        feature_names=features,
        sample_annotations=classes.astype({"class": object}),
        feature_annotations=pd.DataFrame({"locus": [*"pqpqp"]}, features).astype(object),
        source="a test",
        notes=("Made up.",),
    )


def tiny_result(**parameters):
    given = {"n_features_to_select": [2, 3], "max_rank": 2, "n_references": 3, "random_state": 0}
    plan = make_plan(tiny_table(), method="mrshc", parameters=given | parameters, truth="class")
    return fit(plan)
