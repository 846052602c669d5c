"""Names that come in are unique when they go on."""

import numpy as np

from mrshc.io.raw_table import unique


def test_unique_names_never_collide_with_given_ones():
    rng = np.random.default_rng(0)
    for _ in range(300):
        names = [str(name) for name in rng.choice(["a", "a.2", "a.3", "", "b", "a.2.2"], size=9)]
        once = unique(names, "sample")
        assert len(set(once)) == len(once)
        first = {name: names.index(name) for name in names if name}
        assert all(once[i] == name for name, i in first.items())
