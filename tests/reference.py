"""Reads the stored reference outputs."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd

ORACLES = Path(__file__).parent / "oracles"


def matrix(name: str) -> np.ndarray:
    """Return an input or a simulated draw."""
    path = next(ORACLES.glob(f"{name}.csv*"))
    return pd.read_csv(path).to_numpy(dtype=np.float64)


def table(name: str) -> pd.DataFrame:
    return pd.read_csv(ORACLES / f"{name}.csv")


def runs(name: str):
    with gzip.open(ORACLES / f"{name}.json.gz", "rt") as file:
        return json.load(file)
