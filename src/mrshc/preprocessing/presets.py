"""Named chains of preprocessing steps, as arguments of `mrshc.preprocessing.chain`.

The module imports nothing that takes long, since the help of the command line lists the presets.
"""

from typing import Any

# "dudoit2002" holds the thresholds and filters of Dudoit, Fridlyand and Speed (2002), JASA 97(457),
# 77-87, for the raw intensities of Affymetrix arrays.
PRESETS: dict[str, dict[str, Any]] = {
    "dudoit2002": {
        "floor": 100,
        "ceiling": 16000,
        "min_ratio": 5,
        "min_difference": 500,
        "log2": True,
    },
}
