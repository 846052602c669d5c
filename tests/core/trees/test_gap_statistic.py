import numpy as np
import pytest

import reference
from mrshc.core.kernels.agglomerated_dispersions import dispersion, top_dispersions
from mrshc.core.kernels.gap import GapTestSettings, ReferenceBox, gap_test
from mrshc.core.kernels.linkage_codes import LinkageMethod
from mrshc.core.kernels.principal_box import principal_ranges
from mrshc.core.kernels.split_test import split_test
from mrshc.core.trees.gap_statistic import (
    GAP_RULES,
    GapSettings,
    gap_curve,
    preferred_n_clusters,
)
from mrshc.core.trees.tree import (
    COMPILED_LINKAGES,
    LINKAGES,
    METRICS,
    agglomerate,
    pairwise_distances,
)

GAPS = reference.table("gap")
GROUPS = {
    "A4": ("A", slice(None), slice(0, 4)),
    "A2": ("A", slice(None), [0, 2]),
    "B20": ("B", slice(None), slice(0, 20)),
    "B12": ("B", slice(None), slice(0, 12)),
    "Bnoise": ("B", slice(None), slice(100, 110)),
    "A_cl1": ("A", slice(0, 5), slice(0, 4)),
}


def group(name):
    source, rows, columns = GROUPS[name]
    return np.ascontiguousarray(reference.matrix(f"input_{source}")[rows][:, columns])


def partitions(distances, k_max, linkage="complete"):
    tree = agglomerate(distances, linkage)
    return [tree.cut(k) for k in range(1, k_max + 1)]


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("power", [1, 2])
def test_log_dispersion_is_that_of_clusgap(name, power):
    squared = pairwise_distances(group(name), "sqeuclidean")
    stored = GAPS.query("set == @name and d_power == @power and spaceH0 == 'scaledPCA'")
    found = [
        np.log(dispersion(squared ** (power / 2), labels, 1))
        for labels in partitions(squared, len(stored))
    ]
    np.testing.assert_allclose(found, stored["logW"], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", GROUPS)
def test_reference_distribution_is_that_of_clusgap(name):
    X = group(name)
    stored = GAPS.query("set == @name and d_power == 1 and spaceH0 == 'scaledPCA'")
    distances = pairwise_distances(X, "sqeuclidean")
    curve = gap_curve(
        X,
        distances,
        partitions=partitions(distances, len(stored)),
        rng=np.random.default_rng(0),
        settings=GapSettings(n_references=500),
    )
    error = np.hypot(stored["mc_se_of_E_logW"], curve.reference.std(axis=0, ddof=1) / np.sqrt(500))
    z = (curve.reference.mean(axis=0) - stored["E_logW"]) / error
    assert np.abs(z).max() < 4, "two simulations of 500 must agree within their errors"
    np.testing.assert_allclose(curve.log_dispersion, stored["logW"], atol=1e-10)
    # The standard deviation of 500 draws is itself known to one part in thirty.
    np.testing.assert_allclose(curve.standard_error, stored["SE_sim"], rtol=0.15)


def test_rules_agree_with_all_stored_cases_of_maxse():
    cases = reference.table("maxse_cases")
    assert len(cases) == 300
    for case in cases.itertuples():
        curve = np.array(case.f.split(";"), dtype=float)
        error = np.array(case.se.split(";"), dtype=float)
        assert preferred_n_clusters(curve, error, case.method) == case.k, case


@pytest.mark.parametrize("rule", GAP_RULES)
def test_rules_choose_as_maxse_does_on_the_stored_curves(rule):
    chosen = reference.table("gap_selected_k").query("method == @rule")
    for row in chosen.itertuples():
        curve = GAPS.query(
            "set == @row.set and d_power == @row.d_power and spaceH0 == @row.spaceH0"
        )
        found = preferred_n_clusters(curve["gap"].to_numpy(), curve["SE_sim"].to_numpy(), rule)
        assert found == row.k


def test_compiled_linkages_have_the_names_that_users_give():
    assert tuple(LinkageMethod.__members__) == LINKAGES


@pytest.mark.parametrize("linkage", LINKAGES)
def test_kernel_agglomerates_as_scipy_does(linkage):
    rng = np.random.default_rng(0)
    for n in (3, 4, 17, 40):
        X = rng.normal(size=(n, 6))
        squared = pairwise_distances(X, "sqeuclidean")
        # Two clusters of the linkages that we compile have a loop of their own.
        for k, limit in ((2, 2), (2, None), (min(5, n), min(5, n))):
            if limit is None and linkage not in COMPILED_LINKAGES:
                continue
            expected = [dispersion(squared, p, 2) for p in partitions(squared, k, linkage)]
            found = top_dispersions(squared, LinkageMethod[linkage].value, 2, limit)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_gap_does_not_depend_on_scale_shift_or_rotation():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    X[:15] += 2
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    curves = []
    for transformed in (X, X * 1e6 - 3e7, X @ rotation):
        distances = pairwise_distances(transformed, "sqeuclidean")
        curves.append(
            gap_curve(
                transformed,
                distances,
                partitions=partitions(distances, 3),
                rng=np.random.default_rng(2),
                settings=GapSettings(),
            )
        )
    for curve in curves[1:]:
        np.testing.assert_allclose(curve.gap, curves[0].gap, atol=1e-8)


def test_separated_duplicates_have_finite_gaps():
    X = np.repeat([[0.0, 0.0], [1.0, 2.0]], 4, axis=0)
    distances = pairwise_distances(X, "sqeuclidean")
    curve = gap_curve(
        X,
        distances,
        partitions=partitions(distances, 2),
        rng=np.random.default_rng(0),
        settings=GapSettings(),
    )
    assert np.isfinite(curve.gap).all()
    assert np.isfinite(curve.standard_error).all()
    assert curve.n_clusters == 2


def two_distant_clusters(n):
    """Two clusters of n samples in all, for which the decision is certain at the first check."""
    X = np.random.default_rng(3).normal(size=(n, 2))
    X[: n // 2] += 100.0
    return X


def curve_of_a_split(X, **settings):
    distances = pairwise_distances(X, "sqeuclidean")
    return gap_curve(
        X,
        distances,
        partitions=partitions(distances, 2),
        rng=np.random.default_rng(0),
        settings=GapSettings(**settings),
    )


@pytest.mark.parametrize("n_references", [20, 60])
@pytest.mark.parametrize("stop_early", [False, True])
def test_standard_error_includes_the_simulation_error(stop_early, n_references):
    """B is the number of reference data sets in the settings, even if fewer are simulated."""
    X = two_distant_clusters(20)
    curve = curve_of_a_split(X, n_references=n_references, stop_early=stop_early)
    assert (len(curve.reference) < n_references) == stop_early
    deviation = curve.reference.std(axis=0, ddof=1)
    np.testing.assert_allclose(
        curve.standard_error, deviation * np.sqrt(1 + 1 / n_references), rtol=1e-12
    )


@pytest.mark.parametrize(("n", "is_stopped"), [(7, False), (8, True)])
def test_groups_of_fewer_than_eight_samples_use_all_references(n, is_stopped):
    curve = curve_of_a_split(two_distant_clusters(n), n_references=50)
    assert (len(curve.reference) < 50) == is_stopped


def test_decision_is_certain_at_the_first_check_after_fifteen_references():
    curve = curve_of_a_split(two_distant_clusters(20))
    assert curve.reference.shape == (15, 2)


def is_certain(full, n_drawn):
    """Return whether the margin is more than four standard errors of its change from zero."""
    n_references, part = len(full.reference), full.reference[:n_drawn]
    ratios = part[:, 1] - part[:, 0]
    squared_se = part[:, 1].var(ddof=1) * (1 + 1 / n_references)
    margin = ratios.mean() - np.sqrt(squared_se) - np.diff(full.log_dispersion)[0]
    of_mean = ratios.var(ddof=1) * (1 / n_drawn - 1 / n_references)
    of_se = squared_se * (1 / (n_drawn - 1) - 1 / (n_references - 1)) / 2
    return abs(margin) > 4 * np.sqrt(of_mean + of_se)


def test_references_are_checked_after_every_ten():
    """Simulation ends at the first check at which the decision is certain."""
    rng, drawn = np.random.default_rng(4), []
    for _ in range(40):
        X = rng.random((12, 2)) + np.repeat([[0.0], [rng.uniform(0, 0.7)]], 6, axis=0)
        full = curve_of_a_split(X, n_references=60, stop_early=False)
        early = curve_of_a_split(X, n_references=60)
        checks = [n for n in (15, 25, 35, 45, 55) if is_certain(full, n)]
        drawn.append(checks[0] if checks else 60)
        assert len(early.reference) == drawn[-1]
    assert {15, 35, 45} <= set(drawn)


@pytest.mark.parametrize(
    ("n_features", "n_partitions", "rule", "is_stopped"),
    [
        (2, 2, "Tibs2001SEmax", True),
        (1, 2, "Tibs2001SEmax", False),
        (2, 3, "Tibs2001SEmax", False),
        (2, 2, "firstSEmax", False),
        (2, 2, "globalmax", False),
    ],
)
def test_only_split_tests_of_several_features_stop_early(
    n_features, n_partitions, rule, is_stopped
):
    X = two_distant_clusters(20)[:, :n_features].copy()
    distances = pairwise_distances(X, "sqeuclidean")
    curve = gap_curve(
        X,
        distances,
        partitions=partitions(distances, n_partitions),
        rng=np.random.default_rng(0),
        settings=GapSettings(rule=rule),
    )
    assert (len(curve.reference) < 50) == is_stopped


@pytest.mark.parametrize("linkage", COMPILED_LINKAGES)
@pytest.mark.parametrize(("n", "q"), [(3, 2), (7, 30), (25, 6), (50, 50), (70, 3)])
def test_split_test_has_the_results_of_the_general_test(linkage, n, q):
    """Exactly: the same random numbers, and the operations in the same order."""
    X = np.random.default_rng(n).normal(size=(n, q))
    X[: n // 2] += 0.6
    distances = pairwise_distances(X, "sqeuclidean")
    cuts = np.array(partitions(distances, 2, linkage))
    for first_check in (5, 40):
        settings = GapTestSettings(
            linkage=LinkageMethod[linkage].value,
            power=2,
            max_clusters=None,
            n_references=40,
            first_check=first_check,
            check_interval=7,
            n_standard_errors=1.0,
        )
        box = ReferenceBox(n, principal_ranges(X), None, None)
        observed, reference = gap_test(box, distances, cuts, np.random.default_rng(0), settings)
        results = split_test(X, distances, cuts, np.random.default_rng(0), settings)
        gap = reference.mean(axis=0) - observed
        error = reference.std(axis=0, ddof=1) * np.sqrt(1 + 1 / 40)
        for result, expected in zip(results, (observed, reference, gap, error), strict=True):
            np.testing.assert_array_equal(result, expected)


# Correlations --------------------------------------------------------------------------------


def plain_correlation_references(X, n_constant, rng, *, linkage, n_references, max_clusters):
    """Return log W_k of reference data sets, formed in the space of the features.

    The samples of X are not constant; `n_constant` further samples are.
    """
    centre = X.mean(axis=0)
    axes = np.linalg.svd(X - centre, full_matrices=False)[2][: min(len(X) - 1, X.shape[1])]
    scores = (X - centre) @ axes.T
    low, high = scores.min(axis=0), scores.max(axis=0)
    n, reference = len(X) + n_constant, []
    for _ in range(n_references):
        uniform = rng.random((len(X), len(axes)))
        sample = centre + (low + (high - low) * uniform) @ axes
        distances = np.ones((n, n))
        distances[: len(X), : len(X)] = 1 - np.corrcoef(sample)
        np.fill_diagonal(distances, 0.0)
        distances = np.maximum(distances, 0.0)
        cuts = partitions(distances, max_clusters, linkage)
        reference.append([np.log(dispersion(np.sqrt(distances), cut, 1)) for cut in cuts])
    return np.array(reference)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize(
    ("n", "q", "n_constant"), [(15, 4, 0), (6, 40, 0), (4, 3, 0), (15, 4, 4), (2, 5, 4)]
)
def test_reference_samples_of_correlations_are_drawn_in_the_space_of_the_features(
    linkage, n, q, n_constant
):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, q)) + 3 * rng.normal(size=q)  # correlations depend on the offsets
    distances = pairwise_distances(np.vstack([X, np.ones((n_constant, q))]), "correlation")
    max_clusters = 3
    curve = gap_curve(
        X,
        distances,
        partitions=partitions(distances, max_clusters, linkage),
        rng=np.random.default_rng(1),
        settings=GapSettings(linkage=linkage, metric="correlation", n_references=5),
    )
    options = {"linkage": linkage, "n_references": 5, "max_clusters": max_clusters}
    expected = plain_correlation_references(X, n_constant, np.random.default_rng(1), **options)
    # Constant samples are all at the distance 1, so the order of merges is arbitrary, and with it
    # the dispersions of cuts into several clusters.
    compared = slice(None) if n_constant == 0 else slice(0, 1)
    np.testing.assert_allclose(curve.reference[:, compared], expected[:, compared], rtol=1e-9)
    for k, labels in enumerate(partitions(distances, max_clusters, linkage)):
        expected_dispersion = np.log(dispersion(np.sqrt(distances), labels, 1))
        assert curve.log_dispersion[k] == pytest.approx(expected_dispersion, rel=1e-12)


def test_gap_of_correlations_does_not_depend_on_offset_and_unit_of_the_data():
    """An offset that is the same for all features changes no correlation."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 6)) + rng.normal(size=6)
    curves = []
    for transformed in (X, 1e6 * X, X + 100, 1e-6 * X - 3):
        distances = pairwise_distances(transformed, "correlation")
        curves.append(
            gap_curve(
                transformed,
                distances,
                partitions=partitions(distances, 2),
                rng=np.random.default_rng(3),
                settings=GapSettings(metric="correlation"),
            )
        )
    for curve in curves[1:]:
        np.testing.assert_allclose(curve.gap, curves[0].gap, atol=1e-7)


def test_nearly_equal_correlations_are_not_lost_to_rounding_errors():
    """Distances of 1e-14 would have two correct digits if they were computed as 1 - r."""
    rng = np.random.default_rng(4)
    direction = rng.normal(size=6)
    gaps = []
    for scale in (1e-5, 1e-7):
        X = direction + scale * np.random.default_rng(5).normal(size=(12, 6))
        distances = pairwise_distances(X, "correlation")
        curve = gap_curve(
            X,
            distances,
            partitions=partitions(distances, 2),
            rng=np.random.default_rng(6),
            settings=GapSettings(metric="correlation"),
        )
        gaps.append(curve.reference - np.log(scale))
    np.testing.assert_allclose(*gaps, atol=1e-5)


def test_the_compiled_loop_of_a_metric_is_the_same_for_any_number_of_features_and_any_linkage():
    def run(q, metric, linkage="complete"):
        X = np.random.default_rng(0).normal(size=(10, q))
        distances = pairwise_distances(X, metric)
        gap_curve(
            X,
            distances,
            partitions=partitions(distances, 2),
            rng=np.random.default_rng(0),
            settings=GapSettings(metric=metric, linkage=linkage, n_references=3),
        )
        return len(gap_test.dispatcher.signatures) + len(split_test.dispatcher.signatures)

    n_compiled = max(run(4, metric) for metric in METRICS)
    cases = [(q, metric, "average") for q in (3, 7, 30) for metric in METRICS]
    assert {run(*case) for case in cases} == {n_compiled}
