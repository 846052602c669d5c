"""The formats and the size that the user chose for pictures.

They are checked before the table is read, so this module imports nothing that draws.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureSettings:
    """File formats and size of the pictures of a run.

    Attributes
    ----------
    formats : tuple of str or None, default=None
        File formats, out of `PICTURE_FORMATS`; None stands for those of each picture.
    size : (float, float) or None, default=None
        Width and height in inches; None stands for sizes that depend on the content. Pictures with
        one panel for each cluster or component always have the size that their panels need.
    """

    formats: tuple[str, ...] | None = None
    size: tuple[float, float] | None = None
