"""Files of 10x Genomics are read, and damaged ones are refused in one sentence."""

import gzip

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from mrshc.io import TableError, read_table

COUNTS = np.random.default_rng(0).poisson(0.6, size=(7, 5))  # features x cells
BARCODES = [f"CELL{i}-1" for i in range(5)]
IDS = [f"ENSG{i:05d}" for i in range(7)]
NAMES = ["TP53", "MYC", "MYC", "KIT", "EGFR", "CD4", "CD8A"]
TYPES = ["Gene Expression"] * 5 + ["Antibody Capture"] * 2


def assert_read(table, *, has_types=True):
    np.testing.assert_array_equal(table.X, COUNTS.T)
    assert list(table.sample_names) == BARCODES
    assert list(table.feature_names) == ["TP53", "MYC", "MYC.2", *NAMES[3:]]
    assert table.feature_annotations["id"].tolist() == IDS
    note = "Features of several types are used together: Gene Expression (5), Antibody Capture (2)."
    assert (note in table.notes) == has_types
    assert "as the format defines" in table.notes[0]


def write_h5(path, *, version=3, change=lambda _: None, name="GRCh38"):
    matrix = sparse.csc_array(COUNTS)
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix" if version == 3 else name)
        group["barcodes"] = np.array(BARCODES, "S")
        group["data"], group["indices"] = matrix.data.astype(np.int32), matrix.indices
        group["indptr"], group["shape"] = matrix.indptr, np.array(COUNTS.shape, np.int32)
        if version == 3:
            features = group.create_group("features")
            features["id"], features["name"] = np.array(IDS, "S"), np.array(NAMES, "S")
            features["feature_type"] = np.array(TYPES, "S")
            features["genome"] = np.array(["GRCh38"] * 7, "S")
        else:
            group["genes"], group["gene_names"] = np.array(IDS, "S"), np.array(NAMES, "S")
        change(group)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_hdf5_files_of_both_versions(tmp_path, version):
    path = write_h5(tmp_path / "filtered.h5", version=version)
    assert_read(read_table(path), has_types=version == 3)
    (tmp_path / "packed.h5.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert_read(read_table(tmp_path / "packed.h5.gz"), has_types=version == 3)


def replace(name, value):
    def change(group):
        del group[name]
        if value is not None:
            group[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            replace("barcodes", np.array(BARCODES[:4], "S")),
            "4 barcodes in 'barcodes', but .* has 5",
        ),
        (
            replace("features/name", np.array(NAMES[:6], "S")),
            "6 features in 'name', but its matrix",
        ),
        (replace("features/name", None), "must hold a vector 'name'"),
        (replace("shape", np.array([7, 6])), "sparse matrix X that is damaged: its indptr"),
        (replace("shape", np.array([3, 5])), "7 features in 'name', but its matrix has 3"),
        (
            replace("indices", np.full(np.count_nonzero(COUNTS), 7)),
            "damaged: its indices must be between 0 and 6",
        ),
        (replace("shape", np.array([7.5, 5])), "must be two whole numbers"),
        (
            replace("data", np.array([b"x"] * np.count_nonzero(COUNTS))),
            "must hold a matrix of numb",
        ),
    ],
)
def test_damaged_hdf5_files(tmp_path, change, message):
    with pytest.raises(TableError, match=message):
        read_table(write_h5(tmp_path / "damaged.h5", change=change))


def test_several_genomes_are_refused(tmp_path):
    path = write_h5(tmp_path / "two.h5", version=2)
    with h5py.File(path, "a") as file:
        file.copy("GRCh38", "mm10")
    with pytest.raises(TableError, match=r"holds 2 matrices \(GRCh38, mm10\)"):
        read_table(path)


def test_hdf5_files_of_other_kinds_are_not_taken_for_10x(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["matrix"] = COUNTS
    with pytest.raises(TableError, match="as AnnData writes them, but has no 'X'"):
        read_table(tmp_path / "other.h5")


def write_folder(folder, *, pack=bytes, listed="features.tsv", prefix="", counts=COUNTS, **changes):
    """Write the three files; `changes` are other texts by the kind of file."""
    folder.mkdir(exist_ok=True)
    suffix = "" if pack is bytes else ".gz"
    columns = zip(IDS, NAMES, TYPES, strict=True)
    n_columns = 3 if listed == "features.tsv" else 2
    matrix = folder / "plain.mtx"
    mmwrite(matrix, sparse.coo_array(counts), field="integer", symmetry="general")
    texts = {
        "matrix.mtx": matrix.read_text(),
        "barcodes.tsv": "\n".join(BARCODES) + "\n",
        listed: "\n".join("\t".join(row[:n_columns]) for row in columns) + "\n",
    }
    matrix.unlink()
    for name, text in texts.items():
        content = changes.get(name.partition(".")[0], lambda text: text)(text)
        if content is not None:
            (folder / f"{prefix}{name}{suffix}").write_bytes(pack(content.encode()))
    return folder


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("features", ["features.tsv", "genes.tsv"])
def test_folders_of_both_versions(tmp_path, pack, features):
    folder = write_folder(tmp_path / "counts", pack=pack, listed=features)
    assert_read(read_table(folder), has_types=features == "features.tsv")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_matrix_may_be_named_and_may_have_a_prefix(tmp_path, pack):
    folder = write_folder(tmp_path / "geo", pack=pack, prefix="GSM1_")
    write_folder(tmp_path / "geo", pack=pack, prefix="GSM2_", counts=COUNTS + 1)
    name = "GSM1_matrix.mtx" + ("" if pack is bytes else ".gz")
    assert_read(read_table(folder / name))


def test_cells_in_rows_are_recognised_by_the_shape(tmp_path):
    assert_read(read_table(write_folder(tmp_path / "transposed", counts=COUNTS.T)))


def entries(change):
    """Return a function that changes the lines of a matrix below its sizes."""

    def change_text(text):
        lines = text.splitlines()
        start = next(i for i, line in enumerate(lines) if not line.startswith("%")) + 1
        return "\n".join([*lines[:start], *change(lines[start:])]) + "\n"

    return change_text


HOSTILE_MATRICES = {
    "cut off": (entries(lambda e: e[:-3]), r"declares \d+ values, but has \d+\. It may be cut off"),
    "cut within a line": (lambda t: t.rstrip().rpartition(" ")[0], r"declares \d+ values, but has"),
    "too many": (entries(lambda e: [*e, e[0]]), r"declares \d+ values, but has \d+"),
    "row 0": (entries(lambda e: ["0 1 5", *e[1:]]), r"row number 0 in entry 1, .* from 1 to 7"),
    "row too large": (entries(lambda e: ["8 1 5", *e[1:]]), r"row number 8 in entry 1"),
    "column too large": (entries(lambda e: [*e[:-1], "1 6 5"]), r"column number 6 in entry \d+"),
    "fraction": (entries(lambda e: ["1.5 1 5", *e[1:]]), r"row number 1\.5 in entry 1"),
    "text": (entries(lambda e: ["1 x 5", *e[1:]]), "three numbers in each line, but has not"),
    "four numbers": (entries(lambda e: [*e[:-1], "1 1 5 9"]), "three numbers in each line, but"),
    "no sizes": (lambda text: text.splitlines()[0] + "\n", "numbers of rows, columns and values"),
    "empty": (lambda _: "", "must begin with '%%MatrixMarket matrix coordinate"),
    "dense": (lambda text: text.replace("coordinate", "array"), "must begin with '%%MatrixMarket"),
    "symmetric": (lambda text: text.replace("general", "symmetric"), "must begin with '%%Matrix"),
}


@pytest.mark.parametrize("name", HOSTILE_MATRICES)
def test_damaged_matrices(tmp_path, name):
    change, message = HOSTILE_MATRICES[name]
    folder = write_folder(tmp_path / "damaged", matrix=change)
    with pytest.raises(TableError, match=rf"damaged holds matrix\.mtx, which .*{message}"):
        read_table(folder)


def test_names_that_do_not_fit_the_matrix(tmp_path):
    folder = write_folder(tmp_path / "a", barcodes=lambda text: text[: text.rindex("CELL")])
    with pytest.raises(TableError, match=r"7 rows and 5 columns, .* 7 features and 4 barcodes"):
        read_table(folder)
    with pytest.raises(TableError, match=r"in one folder, but there is no barcodes\.tsv"):
        read_table(write_folder(tmp_path / "b", barcodes=lambda _: None))
    with pytest.raises(TableError, match=r"there is no features\.tsv or genes\.tsv"):
        read_table(write_folder(tmp_path / "c", features=lambda _: None))


def test_a_compressed_matrix_that_is_cut_off(tmp_path):
    folder = write_folder(tmp_path / "a", pack=gzip.compress)
    path = folder / "matrix.mtx.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(TableError, match="compressed file that is damaged or cut off"):
        read_table(folder)


def test_a_folder_cannot_be_read_in_blocks(tmp_path):
    with pytest.raises(TableError, match="cannot be read in blocks"):
        read_table(write_folder(tmp_path / "a"), in_memory=False)


def test_a_matrix_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    paths = write_folder(tmp_path / "a"), write_h5(tmp_path / "filtered.h5")
    monkeypatch.setattr("mrshc.io.memory.free_memory", lambda: 8 * COUNTS.size - 1)
    for path in paths:
        with pytest.raises(TableError, match=r"280 bytes .* array, but 279 bytes are free\. Store"):
            read_table(path)
