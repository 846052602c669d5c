import numpy as np
import pytest

from candidate_tables import make_table
from mrshc.core.selection.explanation import (
    chosen_row,
    describe_choice,
    format_count,
    kept_states,
    make_curve,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 features"), (1, "1 feature"), (2, "2 features"), (-1, "-1 features")],
)
def test_a_noun_is_in_the_singular_only_after_one(number, text):
    assert format_count(number, "feature") == text


@pytest.mark.parametrize("row", range(3))
def test_the_chosen_row_is_counted_from_zero(row):
    assert chosen_row(make_table([2, 4, 6], [1, 1, 1], chosen=row)) == row


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (0, "Chosen: q = 1 feature, rank 1 (score 0.50, 1 cluster)"),
        (1, "Chosen: q = 4 features, rank 2 (score 0.50, 3 clusters)"),
        (2, "Chosen: q = 9 features (8 were wanted), rank 3 (score 0.50, 2 clusters)"),
        (3, "Chosen: q = 7 features (8 were wanted), rank 4 (score 0.50, 5 clusters)"),
    ],
)
def test_the_choice_is_described_with_the_wanted_number_of_features_if_it_differs(row, text):
    table = make_table(
        [1, 4, 8, 8], [1, 2, 3, 4], chosen=row, n_features=[1, 4, 9, 7], n_leaves=[1, 3, 2, 5]
    )
    assert describe_choice(table, "score 0.50") == text


def test_a_plain_curve_keeps_all_candidates_without_notes_and_error_bars():
    values = np.array([0.5, 2.0, 1.0])
    curve = make_curve(
        values, heading="title", x_name="x", y_name="y", ticks=np.array([2, 4, 8]), chosen=1
    )
    assert (curve.heading, curve.x_name, curve.y_name) == ("title", "x", "y")
    assert curve.ticks == ("2", "4", "8")
    np.testing.assert_array_equal(curve.values, values)
    assert curve.errors is None
    assert curve.states == ("kept", "kept", "kept") == kept_states(3)
    assert curve.notes == ("", "", "")
    assert curve.chosen == 1
