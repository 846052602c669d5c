"""Integer codes by which compiled functions identify the linkage methods."""

from enum import IntEnum


class LinkageMethod(IntEnum):
    """Linkage methods, named as in the parameter `linkage` of the estimators.

    The argument of a compiled function is an integer, such as ``LinkageMethod["ward"].value``, and
    the function compares the integer with the members. Numba also accepts the members themselves
    as arguments. However, converting a member takes 80 microseconds in each call, about as long as
    the gap test of a small group of samples.
    """

    single = 0
    complete = 1
    average = 2
    weighted = 3
    ward = 4
    centroid = 5
    median = 6
