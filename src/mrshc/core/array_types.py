"""Array types for annotations. The shape of an array is documented where its type is used."""

import numpy as np
from numpy.typing import NDArray

# Floating-point results are in double precision. Data that may be in single precision are annotated
# as NDArray[Any] instead.
Float = NDArray[np.float64]
# Indices along an axis. The type is numpy's native index type, so indexing needs no conversion.
Index = NDArray[np.intp]
# Cluster labels of the samples. Some functions exclude samples that have a negative label.
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]
