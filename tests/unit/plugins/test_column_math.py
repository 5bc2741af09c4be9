"""Arithmetic on columns: the same for one node as for many, and as in Go."""

import numpy as np
import pytest

from plugins.shared.column_math import LARGE, amounts, held, normalized, pick, quotient


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        pytest.param(7, 2, 3, id="down"),
        pytest.param(-7, 2, -3, id="up, if negative"),
        pytest.param(-8, 2, -4, id="exact"),
        pytest.param(-7, -2, 3, id="both negative"),
        pytest.param(0, 5, 0, id="nothing"),
    ],
)
def test_division_is_towards_zero(dividend: int, divisor: int, expected: int) -> None:
    assert quotient(np.array([dividend]), np.array([divisor])).tolist() == [expected]
    assert quotient(np.array([dividend]), divisor).tolist() == [expected]


def test_division_of_nothing_is_nothing() -> None:
    assert quotient(np.array([], np.int64), 3).tolist() == []


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        pytest.param([0, 5, 10], False, [0, 50, 100], id="up to 100"),
        pytest.param([0, 5, 10], True, [100, 50, 0], id="reversed"),
        pytest.param([0, 0], False, [0, 0], id="nothing to scale"),
        pytest.param([0, 0], True, [100, 100], id="nothing to scale, reversed"),
        pytest.param([1, 3], False, [33, 100], id="rounded down"),
        pytest.param([1, 3], True, [67, 0], id="reversed after rounding"),
        pytest.param([-1, 3], False, [-33, 100], id="negative ones are rounded towards zero"),
        pytest.param([-1, 0], False, [-1, 0], id="negative ones alone are left"),
        pytest.param([], True, [], id="no scores"),
    ],
)
def test_scores_are_normalised_by_the_highest(scores: list[int], reverse: bool, expected: list[int]) -> None:
    assert normalized(np.array(scores, np.int64), reverse=reverse).tolist() == expected


def test_all_rows_are_the_column_itself_and_some_are_a_copy() -> None:
    column = np.array([3, 1, 2])

    assert pick(column, np.array([0, 1, 2])) is column
    assert pick(column, np.array([0, 2])).tolist() == [3, 2]


def test_the_amount_of_one_row_is_an_integer_unless_it_could_overflow() -> None:
    column = np.array([7, -1, LARGE])

    assert amounts(column, np.array([0])) == 7
    assert isinstance(amounts(column, np.array([0])), int)
    assert isinstance(amounts(column, np.array([1])), np.ndarray)
    assert isinstance(amounts(column, np.array([2])), np.ndarray)


@pytest.mark.parametrize("rows", [[2], [0, 2, 4], [0, 1, 2, 3, 4], []])
def test_holders_are_found_among_few_rows_and_among_all(rows: list[int]) -> None:
    holders = {2: 1, 3: 1}

    assert held(holders, np.array(rows, np.intp), 5).tolist() == [row in holders for row in rows]
