import sys

import numpy as np
import pytest
from scipy.optimize import brentq

import reference
from mrshc import sparse_components
from mrshc.core import kernels
from mrshc.core.data import centred_array
from mrshc.core.kernels import alternation, screening
from mrshc.core.kernels.component_sequence import SequenceEnd
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.sparse_pca import next_component as core_components
from mrshc.datasets import make_simulation_1
from mrshc.estimators import sparse_components as components
from storage_backends import matrix_at

# The one run of PMA whose unconverged third component carries more than 5e-6 of the error that its
# search for the threshold leaves at each step.
INEXACT_RUN = ("C", True, False, 20, 1.5)


def largest_difference(run):
    """Compare with a stored run: supports must be equal; returns the largest error of u, v, d."""
    X = reference.matrix(f"input_{run['input']}")
    result = sparse_components(
        X,
        l1_bound=run["sumabsv"],
        n_components=run["K"],
        center="grand" if run["center"] else False,
        orthogonal=run["orth"],
        max_iter=run["niter"],
    )
    u, v = np.array(run["u"]), np.array(run["v"])
    np.testing.assert_array_equal(result.loadings != 0, v != 0)
    signs = np.sign(np.sum(result.loadings * v, axis=1))[:, None]
    return max(
        np.abs(result.loadings - signs * v).max(),
        np.abs(result.scores.T - signs * u).max(),
        np.abs(result.scale - run["d"]).max(),
    )


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_all_stored_runs_of_pma_are_met(name):
    runs = reference.runs(f"spc_{name}")
    assert len(runs) == 32
    for run in runs:
        key = (name, run["center"], run["orth"], run["niter"], run["sumabsv"])
        if key != INEXACT_RUN:
            assert largest_difference(run) < 5e-6, key


def test_the_one_run_that_differs_is_met_with_pmas_own_inexact_threshold(monkeypatch):
    (run,) = (
        r
        for r in reference.runs("spc_C")
        if ("C", r["center"], r["orth"], r["niter"], r["sumabsv"]) == INEXACT_RUN
    )
    assert 5e-6 < largest_difference(run) < 5e-5
    monkeypatch.setattr(components, "next_component", reference.component_with_searched_direction)
    assert largest_difference(run) < 5e-6


def dense(direction, p):
    indices, weights = direction
    v = np.zeros(p)
    v[indices] = weights
    return v


@pytest.mark.parametrize("seed", range(20))
def test_direction_is_feasible_and_optimal(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 60))
    slopes = rng.normal(size=p) * 10.0 ** rng.integers(-9, 9)
    bound = rng.uniform(1, np.sqrt(p))
    v = dense(sparse_direction(slopes, bound), p)
    assert np.linalg.norm(v) == pytest.approx(1)
    assert np.abs(v).sum() <= bound * (1 + 1e-9)
    # Stationarity: with delta the common excess of the active slopes, v is proportional to the
    # soft-thresholded slopes, and no inactive slope exceeds delta.
    active = v != 0
    scale = np.abs(slopes).max()
    if active.sum() > 1:
        fit = np.polynomial.polynomial.polyfit(np.abs(v[active]), np.abs(slopes[active]) / scale, 1)
        delta = fit[0]
        if np.abs(v).sum() < bound * (1 - 1e-9):
            assert delta == pytest.approx(0, abs=1e-9)
        np.testing.assert_allclose(
            np.abs(slopes[active]) / scale, delta + fit[1] * np.abs(v[active]), atol=1e-9
        )
        assert np.all(np.abs(slopes[~active]) / scale <= delta + 1e-9)
    for other in rng.normal(size=(50, p)):
        shrunk = other / max(np.linalg.norm(other), np.abs(other).sum() / bound)
        assert slopes @ shrunk <= slopes @ v * (1 + 1e-12)


def test_bound_of_one_selects_the_largest_slope():
    np.testing.assert_array_equal(
        dense(sparse_direction(np.array([1.0, -3.0, 2.0]), 1.0), 3), [0, -1, 0]
    )


def test_inactive_bound_gives_the_normalised_slopes():
    slopes = np.array([1.0, -3.0, 2.0])
    v = dense(sparse_direction(slopes, np.sqrt(3)), 3)
    np.testing.assert_allclose(v, slopes / np.linalg.norm(slopes))


def test_tied_features_share_a_bound_that_is_too_small_for_them():
    v = dense(sparse_direction(np.array([2.0, -2.0, 2.0, 1.0]), 1.2), 4)
    np.testing.assert_allclose(v, [0.4, -0.4, 0.4, 0.0])


def test_no_slope_gives_no_direction():
    assert sparse_direction(np.zeros(5), 2.0)[0].size == 0


@pytest.mark.parametrize("shape", [(20, 8), (8, 20)])
def test_without_sparsity_components_are_singular_vectors(shape):
    X = np.random.default_rng(0).normal(size=shape)
    result = sparse_components(X, l1_bound=np.sqrt(shape[1]), n_components=3, center=False)
    _, s, vt = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(result.scale, s[:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs(result.loadings), np.abs(vt[:3]), atol=1e-8)
    assert result.converged.all()


def test_earlier_components_do_not_depend_on_later_ones():
    X = reference.matrix("input_B")
    few = sparse_components(X, l1_bound=3.0, n_components=2)
    many = sparse_components(X, l1_bound=3.0, n_components=4)
    np.testing.assert_array_equal(few.loadings, many.loadings[:2])


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_components_do_not_depend_on_the_scale_of_the_data(scale):
    X = reference.matrix("input_B")
    plain = sparse_components(X, l1_bound=3.0, n_components=4)
    scaled = sparse_components(X * scale, l1_bound=3.0, n_components=4)
    np.testing.assert_array_equal(plain.loadings != 0, scaled.loadings != 0)
    np.testing.assert_allclose(plain.loadings, scaled.loadings, atol=1e-10)


def test_components_do_not_depend_on_the_order_of_columns():
    X = reference.matrix("input_B")
    order = np.random.default_rng(0).permutation(X.shape[1])
    plain = sparse_components(X, l1_bound=3.0, n_components=4)
    shuffled = sparse_components(X[:, order], l1_bound=3.0, n_components=4)
    np.testing.assert_allclose(plain.loadings[:, order], shuffled.loadings, atol=1e-10)


def test_orthogonal_scores_are_orthogonal():
    X = reference.matrix("input_B")
    scores = sparse_components(X, l1_bound=3.0, n_components=4, orthogonal=True).scores
    np.testing.assert_allclose(scores.T @ scores, np.eye(4), atol=1e-12)


def test_more_iterations_never_lower_the_criterion():
    X = reference.matrix("input_B")
    scales = [sparse_components(X, l1_bound=4.0, max_iter=m).scale[0] for m in range(1, 30)]
    assert np.all(np.diff(scales) >= -1e-10 * scales[0])


@pytest.mark.parametrize(
    ("norms", "order"),
    [
        ([3.0, 2.0, 1.0], [0, 1, 2]),
        ([3.0, 2.0, 0.5, 0.0], [0, 1, 1, 1]),
        ([3.0, 0.1, 0.0], [0, 0, 0]),
        ([0.0, 0.0], [0, 0]),
    ],
)
def test_starts_beyond_the_rank_are_those_of_the_last_vector_within_it(norms, order):
    """Images with a norm of at most 0.5 are rounding errors."""
    starts = core_components.AlternationStarts(
        vectors=np.eye(len(norms), 9), images=np.diag(norms), noise=0.5
    )
    np.testing.assert_array_equal(core_components.start_order_within_rank(starts), order)
    replaced = core_components.replace_starts_beyond_rank(starts)
    np.testing.assert_array_equal(replaced.vectors, starts.vectors[order])
    np.testing.assert_array_equal(replaced.images, starts.images[order])
    assert replaced.noise == 0.5


@pytest.mark.parametrize(("n", "p"), [(3, 7), (7, 3)])
def test_rounding_errors_are_relative_to_the_longest_image_and_the_larger_dimension(n, p):
    images = np.zeros((2, n))
    images[:, :2] = [[3.0, 4.0], [1.0, 0.0]]
    found = core_components.starts_from_images(np.zeros((2, p)), images)
    assert found.noise == pytest.approx(5.0 * 7 * np.finfo(np.float64).eps)


@pytest.mark.parametrize("n_iter", [0, 4])
def test_empty_records_mark_all_iterations_as_not_recorded(n_iter):
    matrix = matrix_at(np.random.default_rng(0).normal(size=(5, 8)))
    record = core_components.empty_record(matrix, n_iter)
    assert record.scores.shape == (n_iter, 5)
    np.testing.assert_array_equal(record.thresholds, np.full(n_iter, -1.0))


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
def test_components_beyond_the_rank_are_empty_without_sparsity(shape):
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    result = sparse_components(X, l1_bound=np.sqrt(shape[1]), n_components=2, center=False)
    assert result.scale[0] == pytest.approx(np.linalg.norm(X))
    assert result.scale[1] == 0.0
    assert not result.loadings[1].any()
    assert not result.scores[:, 1].any()
    assert result.converged.all()


def test_sparse_components_beyond_the_rank_do_not_depend_on_the_shape():
    """Sparse components leave more of X than its rank tells, in wide as in tall data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 15))
    wide = np.hstack([X, np.zeros((20, 10))])
    tall, widened = (
        sparse_components(data, l1_bound=2.0, n_components=4, center=True, max_iter=500)
        for data in (X, wide)
    )
    assert tall.converged.all()
    assert np.all(tall.scale > 1)
    # Solved to an L1 change of 1e-7 from starts that differ by rounding.
    np.testing.assert_allclose(tall.loadings, widened.loadings[:, :15], atol=1e-5)


def test_one_huge_feature_does_not_hide_the_others():
    X = np.random.default_rng(0).normal(size=(20, 12))
    X[:, 0] *= 3e8
    for data in (X, np.hstack([X, np.zeros((20, 12))])):
        bound = np.sqrt(data.shape[1])
        # The start, from inner products, is inaccurate for the small components, so they need more
        # iterations than the default.
        found = sparse_components(
            data, l1_bound=bound, n_components=3, center=True, max_iter=40
        ).scale
        exact = np.linalg.svd(data - data.mean(axis=0), compute_uv=False)[:3]
        np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [True, "grand", False])
def test_missing_values_are_refilled_for_every_component(center, dtype):
    """Against the same thing done with whole matrices."""
    rng = np.random.default_rng(1)
    X = (rng.integers(-40, 40, size=(15, 30)) / 8 + rng.integers(3000, size=30)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    wide = X.astype(np.float64)
    means = {True: np.nanmean(wide, axis=0), "grand": np.nanmean(wide), False: 0.0}
    left = wide - means[center]
    result = sparse_components(X, l1_bound=2.5, n_components=3, center=center)
    for u, d, v in zip(result.scores.T, result.scale, result.loadings, strict=True):
        filled = np.where(np.isnan(left), np.nanmean(left), left)
        # One more step from the solution stays with it, if the iteration has settled.
        assert u @ filled @ v == pytest.approx(d, rel=1e-9)
        left = left - d * np.outer(u, v)


def test_alternation_starts_from_init():
    X = reference.matrix("input_B")
    first = sparse_components(X, l1_bound=3.0, max_iter=500)
    again = sparse_components(X, l1_bound=3.0, init=first.loadings)
    assert again.n_iter[0] == 1
    np.testing.assert_allclose(again.loadings, first.loadings, atol=1e-6)


def test_float32_data_give_the_same_features():
    X = reference.matrix("input_B")  # exact in float32
    wide = sparse_components(X, l1_bound=3.0, n_components=4)
    narrow = sparse_components(X.astype(np.float32), l1_bound=3.0, n_components=4)
    np.testing.assert_allclose(wide.loadings, narrow.loadings, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1_bound": 0.9}, r"l1_bound must be a number in \[1, 3.87298\], got 0.9"),
        ({"l1_bound": 4.0}, "l1_bound must be a number in"),
        ({"l1_bound": "2"}, "l1_bound must be a number in"),
        ({"n_components": 16}, r"n_components must be a whole number in \[1, 15\], got 16"),
        ({"max_iter": 0}, "max_iter must be a whole number at least 1, got 0"),
        ({"tol": -1.0}, "tol must be a number in"),
        ({"center": 1}, "center must be one of True, 'grand', False, got 1"),
        ({"init": np.zeros(15)}, r"init must hold finite numbers in the shape \(1, 15\)"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sparse_components(reference.matrix("input_A"), **{"l1_bound": 2.0, **options})


@pytest.mark.parametrize(
    ("axis", "message"), [(0, "sample 3 of X has none"), (1, "feature 3 of X has none")]
)
def test_nothing_observed_is_refused_by_name(axis, message):
    X = reference.matrix("input_A")
    np.moveaxis(X, axis, 0)[3] = np.nan
    with pytest.raises(ValueError, match=message):
        sparse_components(X, l1_bound=2.0)


def use_python(monkeypatch):
    """Replace the compiled functions of all modules by the Python functions."""
    for module in [m for m in sys.modules.values() if m.__name__.startswith(kernels.__name__)]:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)


@pytest.mark.parametrize("max_iter", [3, 20, 500])
@pytest.mark.parametrize("l1_bound", [1.5, 2.5, 5.0])
def test_screening_of_columns_does_not_change_results(monkeypatch, l1_bound, max_iter):
    """Without screens, the loops run in Python: it would take longer to compile them."""
    X = make_simulation_1(0, mu=2.0, sizes=(12, 9, 9)).X
    options = {"l1_bound": l1_bound, "n_components": 3, "center": True, "max_iter": max_iter}
    screened = sparse_components(X, **options)
    kept = []
    use_python(monkeypatch)
    plain = alternation.plan_from_slopes

    def without_columns(*arguments):
        plan = plain(*arguments)
        kept.append(plan.n_columns)
        return screening.no_screen()

    monkeypatch.setattr(alternation, "plan_from_slopes", without_columns)
    monkeypatch.setattr(core_components, "alternate", alternation.alternate)
    unscreened = sparse_components(X, **options)
    assert max_iter == 3 or max(kept) > 0, "there was a screen"
    np.testing.assert_array_equal(screened.loadings, unscreened.loadings)
    np.testing.assert_array_equal(screened.scores, unscreened.scores)
    np.testing.assert_array_equal(screened.n_iter, unscreened.n_iter)


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("max_copied_cells", [0, 10**6])
def test_memory_layout_does_not_change_results(monkeypatch, orthogonal, max_copied_cells):
    monkeypatch.setattr(centred_array, "_MAX_COPIED_CELLS", max_copied_cells)
    X = reference.matrix("input_B")
    options = {"l1_bound": 3.0, "n_components": 4, "center": True, "orthogonal": orthogonal}
    rows = sparse_components(np.ascontiguousarray(X), **options, init=np.eye(4, X.shape[1]))
    columns = sparse_components(np.asfortranarray(X), **options, init=np.eye(4, X.shape[1]))
    np.testing.assert_array_equal(rows.loadings, columns.loadings)
    np.testing.assert_array_equal(rows.scores, columns.scores)


@pytest.mark.parametrize("seed", range(50))
def test_direction_with_ties_is_that_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 40))
    slopes = rng.integers(-3, 4, size=p) * 10.0 ** rng.integers(-20, 20)
    top = np.abs(slopes).max()
    bound = rng.uniform(1, np.sqrt(p))
    n_tied = int((np.abs(slopes) == top).sum())
    if top == 0 or n_tied >= bound**2:
        return  # there is nothing to search; tested above

    def soft(delta):
        return np.sign(slopes) * np.maximum(np.abs(slopes) - delta * top, 0) / top

    def excess(delta):
        return np.abs(soft(delta)).sum() - bound * np.linalg.norm(soft(delta))

    delta = brentq(excess, 0.0, 1 - 1e-9, xtol=1e-15) if excess(0.0) > 0 else 0.0
    expected = soft(delta) / np.linalg.norm(soft(delta))
    np.testing.assert_allclose(dense(sparse_direction(slopes, bound), p), expected, atol=1e-9)


@pytest.mark.parametrize("n_earlier", [0, 2])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_several_components_in_one_call_equal_those_of_single_calls(n_earlier, is_stopped):
    matrix = matrix_at(make_simulation_1(3, mu=2.0).X)
    starts = core_components.leading_starts(matrix, 5)
    single = []
    for _ in range(5):
        component = core_components.next_component(
            matrix, single, starts=starts, l1_bound=3.5, max_iter=20, tol=1e-7
        )
        single.append(component)
    # The features that the next two components load on are enough to stop.
    n_loaded = len(set().union(*(c.indices for c in single[: n_earlier + 2])))
    found = core_components.next_components(
        matrix,
        single[:n_earlier],
        starts=starts,
        settings=alternation.AlternationSettings(3.5, 20, 1e-7, starts.noise),
        histories=core_components.empty_histories(matrix, 5),
        end=SequenceEnd(5, float(n_loaded) if is_stopped else np.inf),
    )
    assert len(found) == (2 if is_stopped else 5 - n_earlier)
    for several, one in zip(found, single[n_earlier:], strict=False):
        for name in ("u", "indices", "weights"):
            np.testing.assert_array_equal(getattr(several, name), getattr(one, name))
        assert (several.scale, several.n_iter) == (one.scale, one.n_iter)
        assert several.converged == one.converged
