"""The linkage methods as compiled functions take them."""

from enum import IntEnum


class LinkageMethod(IntEnum):
    """Linkages by the names that users give them: ``LinkageMethod["ward"]``."""

    single = 0
    complete = 1
    average = 2
    weighted = 3
    ward = 4
    centroid = 5
    median = 6
