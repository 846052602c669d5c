"""For any bytes, the reader returns a table or raises an error of one sentence."""

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrshc.exports import gct
from mrshc.io import TableError, read_table

pytestmark = pytest.mark.slow

ORACLES = Path(__file__).parents[1] / "oracles"
CASES, PARTS = int(os.environ.get("MRSHC_FUZZ_CASES", "3000")), 10


def _valid_files():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(6, 12)), 2)
    frame = pd.DataFrame(X.T, [f"g{j}" for j in range(12)], [f"s{i}" for i in range(6)])
    frame.insert(0, "about", ["x, y", 'a "b"', "ü"] * 4)
    names = {"feature_names": list(frame.index), "sample_names": list(frame.columns[1:])}
    csv, tsv = frame.to_csv().encode(), frame.to_csv(sep="\t", decimal=",").encode()
    yield from (csv, tsv, gzip.compress(csv))
    yield gct(X, **names, sample_annotations={"class": list("uvwuvw")}).encode()
    npy, npz, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(npy, X)
    np.savez(npz, X=X, y=list("uvwuvw"))
    frame.to_parquet(parquet)
    yield from (npy.getvalue(), npz.getvalue(), parquet.getvalue())
    yield (ORACLES / "csr.h5ad").read_bytes()


def _broken(valid, rng):
    """Return random bytes, or a valid file that was cut off or edited."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.bytes(int(rng.integers(1, 400)))
    content = bytearray(valid[rng.integers(len(valid))])
    if kind == 1:
        return bytes(content[: rng.integers(len(content))])
    for _ in range(rng.integers(1, 12)):
        at = int(rng.integers(len(content)))
        edit = rng.integers(3)
        if edit == 0:
            content[at] = rng.integers(256)
        elif edit == 1:
            content[at:at] = rng.choice([b"\t", b",", b"\n", b'"', b"NA", b"1e999", b"\0", b"\xff"])
        else:
            del content[at : at + int(rng.integers(1, 9))]
    return bytes(content)


def _read(path):
    try:
        return read_table(path)
    except TableError as error:
        return str(error)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")  # libraries may warn of what they read
def test_random_bytes_cuts_and_edits_give_a_table_or_one_sentence(tmp_path, part):
    pytest.importorskip("h5py")
    pytest.importorskip("pyarrow")
    valid, rng = list(_valid_files()), np.random.default_rng(part)
    path = tmp_path / "table"
    n_tables = 0
    for _ in range(CASES // PARTS):
        path.write_bytes(_broken(valid, rng))
        found = _read(path)
        if isinstance(found, str):
            assert found.count("\n") == 0
            assert found.endswith(".")
        else:
            n_tables += 1
            assert found.X.shape == (len(found.sample_names), len(found.feature_names))
            assert len(set(found.feature_names)) == found.X.shape[1]
    assert 0 < n_tables < CASES // PARTS
