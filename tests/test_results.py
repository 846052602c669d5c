"""The committed results hold what is claimed of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

STUDIES = Path(__file__).parents[1] / "studies"
REFERENCES = pd.read_csv(STUDIES / "references.csv")
IN_R = REFERENCES.query("source == 'R'").to_dict("records")
QUANTITIES = ("cer", "recall", "precision", "n_features")


def draws(study, design, method):
    results = pd.read_csv(STUDIES / f"{study}.csv")
    return results[(results["design"] == design) & (results["method"] == method)]


@pytest.mark.parametrize("row", IN_R, ids=lambda r: f"{r['design']}: {r['method']}")
def test_baselines_agree_with_r(row):
    ours = draws(row["study"], row["design"], row["method"])
    assert len(ours) == 100
    for quantity in QUANTITIES:
        if not np.isnan(row[quantity]):
            error = np.hypot(ours[quantity].sem(), row[f"{quantity}_se"])
            difference = abs(ours[quantity].mean() - row[quantity])
            assert difference <= 2.5 * error + 1e-9, quantity


def papers(study, method):
    of_method = REFERENCES.query("study == @study and method == @method and source == 'paper'")
    (row,) = of_method.to_dict("records")
    return row, draws(study, row["design"], method)


@pytest.mark.parametrize("study", ["table1", "table2"])
def test_mrshc_with_known_q_is_as_good_as_the_paper(study):
    paper, ours = papers(study, "MrSHC, q known")
    assert ours["cer"].mean() <= paper["cer"] + 2 * ours["cer"].sem()
    assert ours["recall"].mean() >= paper["recall"] - 0.01


@pytest.mark.parametrize("study", ["table1", "table2"])
def test_mrshc_with_unknown_q_is_near_the_paper(study):
    paper, ours = papers(study, "MrSHC, q unknown")
    assert ours["cer"].mean() <= paper["cer"] + 0.03
    assert ours["precision"].mean() >= paper["precision"] - 0.04
    assert ours["n_features"].mean() == pytest.approx(paper["n_features"], rel=0.2)


@pytest.mark.parametrize(
    ("study", "method", "quantity", "said"),
    [
        ("table1", "SHC, q unknown", "n_features", "by {} of our standard errors"),
        ("table2", "SHC, q known", "cer", "higher than the paper's by {} standard errors"),
        ("table2", "MrSHC, q known", "recall", "with q known is higher by {} standard errors"),
        ("table2", "MrSHC, q unknown", "cer", "with q unknown is higher by {}, at"),
    ],
)
def test_differences_from_the_paper_are_as_the_page_says(study, method, quantity, said):
    paper, ours = papers(study, method)
    errors = (ours[quantity].mean() - paper[quantity]) / ours[quantity].sem()
    page = " ".join((STUDIES.parent / "docs" / "results.md").read_text().split())
    assert said.format(f"{errors:.1f}") in page
