import numpy as np
import pandas as pd

from mrshc.plotting import (
    marker_panels,
)

MARKERS = pd.DataFrame(
    {
        "contrast": ["cluster", "cluster", "cluster", "split", "cluster"],
        "inside": ["1", "1", "1", "1", "3"],
        "feature": ["a", "b", "c", "d", "e"],
        "effect_size": [1.0, -3.0, 2.0, 9.0, np.nan],
    }
)


def test_markers_with_the_largest_absolute_effect_come_first():
    first, second, third = marker_panels(MARKERS, 3, top=2)
    assert (first.features, first.effects.tolist(), first.n_all) == (("b", "c"), [-3.0, 2.0], 3)
    assert (second.heading, second.features) == ("cluster 2", ())
    assert third.features == (), "an effect without spread within the groups has no size"


def test_markers_of_an_estimator_are_counted_from_one():
    own = MARKERS.assign(inside=["0", "0", "0", "0", "2"])
    assert [p.features for p in marker_panels(own, 3, top=2)] == [("b", "c"), (), ()]
    second = MARKERS.iloc[:3].assign(outside="0, 2")
    assert [p.features for p in marker_panels(second, 3, top=2)] == [(), ("b", "c"), ()]


def test_two_clusters_have_the_same_markers():
    (panel,) = marker_panels(MARKERS, 2, top=5)
    assert panel.heading == "cluster 1 against cluster 2"
