"""The linkage methods as compiled functions take them."""

from enum import IntEnum


class LinkageMethod(IntEnum):
    """Linkages by the names that users give them.

    Compiled functions take ``LinkageMethod["ward"].value`` and compare it with the members. Numba
    takes members as arguments as well, but converting one costs 80 microseconds in each call, as
    much as the gap test of a small group.
    """

    single = 0
    complete = 1
    average = 2
    weighted = 3
    ward = 4
    centroid = 5
    median = 6
