from mrshc.plotting import (
    split_marks,
)


def test_splits_are_marked_from_the_root_down():
    tests = {
        "node": [10, 12, 11, 9],
        "height": [2.0, 9.0, 5.0, 1.0],
        "drop": [0.30, 0.90, 0.60, 0.20],
        "expected_drop": [0.25, 0.50, 0.20, 0.20],
        "standard_error": [0.10, 0.10, 0.0, 0.0],
        "supported": [False, True, True, False],
        "split": [False, True, False, True],
    }
    marks = split_marks(tests)
    assert [mark.node for mark in marks] == [12, 11, 10, 9]
    assert [mark.verdict for mark in marks] == [
        "made",
        "supported, not made",
        "not supported",
        "made, not supported",
    ]
    # Without spread among the reference samples errors cannot be counted.
    assert [mark.label for mark in marks] == ["+4.0", "+∞", "+0.5", "+0.0"]
