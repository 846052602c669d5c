"""Integer codes by which compiled functions identify the linkage methods."""

from enum import IntEnum


class LinkageMethod(IntEnum):
    """Linkage methods. The member names are the values of the parameter `linkage` of estimators.

    Compiled functions take an integer, such as ``LinkageMethod["ward"].value``, and compare it with
    the members. Numba also accepts the members themselves as arguments, but converting a member
    takes 80 microseconds in each call, which is as long as the gap test of a small group.
    """

    single = 0
    complete = 1
    average = 2
    weighted = 3
    ward = 4
    centroid = 5
    median = 6
