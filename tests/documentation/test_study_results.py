"""The committed results of the studies support what the documentation says about them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from studies.__main__ import CONFIGS

pytestmark = pytest.mark.documentation

STUDIES = Path(__file__).parents[2] / "studies"
REFERENCES = pd.read_csv(CONFIGS / "references.csv")
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
    page = " ".join((STUDIES.parent / "docs" / "results" / "paper.md").read_text().split())
    assert said.format(f"{errors:.1f}") in page


def mean(study, design, method, quantity):
    return draws(study, design, method)[quantity].mean()


@pytest.mark.parametrize(("share", "loss"), [("5 %", 0.015), ("20 %", 0.04)])
@pytest.mark.parametrize("simulation", ["I", "II"])
def test_missing_cells_cost_little(simulation, share, loss):
    complete = mean("missing", f"{simulation}, complete", "MrSHC, q known", "cer")
    design = f"{simulation}, {share} missing"
    assert mean("missing", design, "MrSHC, q known", "cer") <= complete + loss


@pytest.mark.parametrize("impute", ["mean imputation", "KNNImputer"])
@pytest.mark.parametrize("share", ["5 %", "20 %"])
@pytest.mark.parametrize("simulation", ["I", "II"])
def test_missing_cells_need_no_imputation(simulation, share, impute):
    design = f"{simulation}, {share} missing"
    ours, theirs = (
        mean("missing", design, method, "cer")
        for method in ("MrSHC, q known", f"{impute}, then MrSHC")
    )
    assert ours <= theirs


@pytest.mark.parametrize(
    "spoilt",
    [
        "5 % of the samples shifted by 10 sd in a random direction",
        "2 % of the cells replaced by N(0, 10^2)",
    ],
)
@pytest.mark.parametrize("simulation", ["I", "II"])
def test_outliers_cost_little(simulation, spoilt):
    clean = mean("outliers", f"{simulation}, clean", "MrSHC, q known", "cer")
    design = f"{simulation}, {spoilt}"
    assert mean("outliers", design, "MrSHC, q known, robust", "cer") <= clean + 0.02


@pytest.mark.parametrize("simulation", ["I", "II"])
def test_samples_moved_in_every_feature_are_found_and_cost_the_others_little(simulation):
    clean = draws("outliers", f"{simulation}, clean", "MrSHC, q known")["cer"]
    design = f"{simulation}, 5 % of the samples shifted by 10 sd in every feature"
    robust = draws("outliers", design, "MrSHC, q known, robust")
    assert (robust["found_outliers"] == 1).all()
    difference = robust["cer_others"].to_numpy() - clean.to_numpy()
    error = difference.std(ddof=1) / np.sqrt(difference.size)
    assert difference.mean() <= 0.02 + 2 * error


@pytest.mark.parametrize("noise", ["normal", "t5"])
def test_false_alarms_are_rare(noise):
    design = f"no clusters, {noise} noise"
    assert mean("outliers", design, "MrSHC, q known, robust", "false_alarms") <= 0.002


def test_association_agrees_with_classes_better_than_the_rule_of_the_paper():
    results = pd.read_csv(STUDIES / "realworld.csv")
    ari = results.pivot(index="set", columns="method", values="ari")
    assert len(ari) == 42
    assert (ari["MrSHC, ward linkage, association"] - ari["MrSHC"]).mean() >= 0.10


def test_association_is_right_in_the_simulations_of_the_paper_and_claims_nothing_in_noise():
    method = "MrSHC, ward linkage, association"
    for design, largest_error in (("Simulation I", 0.012), ("Simulation II, sd 1", 0.030)):
        assert mean("association", design, method, "cer") <= largest_error
        assert mean("association", design, method, "precision") >= 0.94
        assert mean("association", design, method, "recall") >= 0.98
    for noise in ("normal", "t3"):
        assert mean("association", f"no clusters, {noise} noise", method, "n_clusters") == 1


def test_predicted_clusters_agree_as_the_page_says():
    results = pd.read_csv(STUDIES / "prediction.csv")
    columns = ["share_fit", "share_folds", "share_new"]
    shares = results.groupby(["data", "method"])[columns].mean()
    assert len(shares) == 35
    recommended = shares.xs("MrSHC, ward linkage, association", level="method")
    assert recommended["share_fit"].min() >= 0.986 - 0.0005
    assert recommended["share_new"].agg(["min", "max"]).round(2).tolist() == [0.78, 0.99]
    assert shares["share_fit"].idxmin() == ("srbct", "SHC, 100 features")
    assert (shares["share_new"] - shares["share_folds"]).abs().median() <= 0.03
