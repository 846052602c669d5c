"""Files of AnnData are read with their annotations; texts that HDF5 cannot read are refused."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from mrshc.io import TableError, read_table

ORACLES = Path(__file__).parents[2] / "oracles"


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_files_of_anndata(kind):
    pytest.importorskip("h5py")
    table = read_table(ORACLES / f"{kind}.h5ad")
    assert table.X.shape == (6, 9)
    assert table.X.dtype == (np.float32 if kind == "dense" else np.float64)
    rng = np.random.default_rng(0)  # as the files were made
    values = np.round(rng.normal(size=(6, 9)), 3)
    values[rng.random((6, 9)) < 0.3] = 0
    np.testing.assert_array_equal(table.X, values.astype(table.X.dtype))
    assert list(table.sample_names[:2]) == ["cell 0", "cell 1"]
    about = table.sample_annotations
    assert about["class"].fillna("?").tolist() == list("ab?aba")
    assert about["site"].tolist()[:3] == ["Oslo", "Århus", "it's"]
    np.testing.assert_array_equal(about["age"], [41, 52, 63, np.nan, 35, 28.5])
    np.testing.assert_array_equal(about["count"], [1, 2, np.nan, 4, 5, 6])
    assert table.feature_annotations["chromosome"].tolist()[-1] == "MT"


@pytest.mark.parametrize(
    "header",
    [b"\0\0" + bytes(14), b"\1\0" + bytes(6) + (2**64 - 16).to_bytes(8, "little")],
    ids=["free space of no size", "a size that wraps around"],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_texts_that_hdf5_would_never_finish_reading(tmp_path, header, compressed):
    path = tmp_path / "texts.h5ad"
    shutil.copy(ORACLES / "dense.h5ad", path)
    content = bytearray(path.read_bytes())
    first = content.find(b"GCOL") + 16
    assert first > 16
    content[first : first + 16] = header
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(TableError, match=r"its texts are damaged\. Copy or write it again"):
        read_table(path)
