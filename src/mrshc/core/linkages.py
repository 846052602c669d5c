"""Names of linkages and metrics; importing them takes no time."""

METRICS = ("sqeuclidean", "cityblock", "correlation")
LINKAGES = ("single", "complete", "average", "weighted", "ward", "centroid", "median")
# These linkages are defined by distances between centres in Euclidean space. The other metrics
# that are squared Euclidean distances serve, too.
EUCLIDEAN_LINKAGES = ("ward", "centroid", "median")
SQUARED_METRICS = ("sqeuclidean", "correlation")
