"""Chains of preprocessing steps with a name: the arguments of `chain`.

Imports nothing heavy: the help of the command line lists them.
"""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "dudoit2002": {
        "floor": 100,
        "ceiling": 16000,
        "min_ratio": 5,
        "min_difference": 500,
        "log2": True,
    },
}
