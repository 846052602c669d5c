"""Array types for annotations; shapes are given where they are used."""

import numpy as np
from numpy.typing import NDArray

# Results are in double precision; data that may be in single precision are NDArray[Any].
Float = NDArray[np.float64]
# Positions in an axis, in numpy's native index type, so that indexing does not convert them.
Index = NDArray[np.intp]
# Cluster of each sample; some functions take negative labels as "leave out".
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]
