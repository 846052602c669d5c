"""Writes the results of the reference fits, as version 0.2.0 computes them.

Run with a Python that has mrshc 0.2.0, h5py, zarr, dask and array-api-strict:

    python tests/reference/record.py
"""

import gzip
import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from reference_cases import CASES, describe  # noqa: E402

import mrshc  # noqa: E402

ESTIMATORS = {
    "mrshc": mrshc.MrSHC,
    "association": lambda **options: mrshc.MrSHC(
        selection="association", **{"linkage": "ward"} | options
    ),
    "shc": mrshc.SHC,
    "hmv": mrshc.HighVarianceHC,
    "cosa": mrshc.COSA,
    "sparse-kmeans": mrshc.SparseKMeans,
}


def main():
    assert mrshc.__version__ == "0.2.0"
    results = {}
    for name, (method, parameters, data) in CASES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = data()
            model = ESTIMATORS[method](**parameters).fit(X)
            functions = mrshc.branch_significance, mrshc.stability
            results[name] = describe(name, model, X, functions)
    # Ten digits: results are compared to eight.
    rounded = json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.10g}"))
    with gzip.GzipFile(HERE / "fits.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(rounded, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
