"""Presets: named sets of arguments for `mrshc.preprocessing.chain`; names of normalisations.

The command line imports this module to list the names. Therefore, this module must not import
packages that take a long time to load.
"""

from typing import Any

# "dudoit2002" contains the thresholds and filters of Dudoit, Fridlyand and Speed (2002), JASA
# 97(457), 77-87, for the raw intensities of Affymetrix arrays.
PRESETS: dict[str, dict[str, Any]] = {
    "dudoit2002": {
        "floor": 100,
        "ceiling": 16000,
        "min_ratio": 5,
        "min_difference": 500,
        "log2": True,
    },
}

# Normalisations of counts, each with the name of its transformer in `mrshc.preprocessing`. The
# transformer has the parameter `prior_count`. With "none", the values are used as they are, and
# there is no warning on their scale.
NORMALIZATIONS: dict[str, str | None] = {
    "cpm": "CountsPerMillion",
    "size-factors": "SizeFactors",
    "none": None,
}
