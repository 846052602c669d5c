"""Integer codes of the linkage methods for compiled functions."""

from enum import IntEnum


class LinkageMethod(IntEnum):
    """Linkage methods; the names of the members are the values of the parameter `linkage`.

    Compiled functions take ``LinkageMethod["ward"].value`` and compare it with the members. Numba
    accepts members as arguments too, but their conversion takes 80 microseconds in each call, as
    long as the gap test of a small group.
    """

    single = 0
    complete = 1
    average = 2
    weighted = 3
    ward = 4
    centroid = 5
    median = 6
