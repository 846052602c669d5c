"""Statistical tests of features: association, markers, and refinement of feature sets."""
