"""Types of arrays, for annotations."""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Index = NDArray[np.intp]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]
