"""Arithmetic on amounts, for many nodes or for one, with the results of Go's integers.

A formula is written once, over `Amount`: columns are fast for many nodes, Python's integers for a single one, as
when a stored answer is refreshed after each pod. A column wraps on overflow, as Go does; an amount so large
that it could overflow stays a column even for one node.
"""

from collections.abc import Collection
from typing import Final, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from scheduler import framework as fw

Column = TypeVar("Column", fw.BoolColumn, npt.NDArray[np.int8], fw.Int32Column, fw.Int64Column)

Amount: TypeAlias = int | fw.Int64Column
Answer: TypeAlias = bool | fw.BoolColumn

LARGE: Final = 1 << 52
"""The sum of two amounts below it is exact as a float, and a hundred times that fits into an int64."""


def pick(column: Column, rows: fw.Rows) -> Column:
    """Return the entries of `rows`: the column itself, to be read only, if that is all of them."""
    return column if len(rows) == len(column) else column[rows]


def grown(column: Column, size: int, fill: int = 0) -> Column:
    """Return a column of at least this size: the same, if it is, or one that goes on with `fill`."""
    more = size - len(column)
    return column if more <= 0 else np.concatenate([column, np.full(more, fill, column.dtype)])


def amounts(column: fw.Int64Column, rows: fw.Rows) -> Amount:
    """Return the entries of `rows`, to be read only; that of a single row as an integer, unless negative or LARGE."""
    if len(rows) == 1:
        amount = column.item(rows.item())
        if 0 <= amount < LARGE:
            return amount
    return pick(column, rows)


def any_of(answer: Answer) -> bool:
    """Return whether the answer is true for any node."""
    return answer if isinstance(answer, bool) else bool(answer.any())


def lesser(a: Amount, b: Amount) -> Amount:
    """Return the smaller of two amounts, per node."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


@overload
def quotient(dividend: fw.Int64Column, divisor: Amount) -> fw.Int64Column: ...
@overload
def quotient(dividend: Amount, divisor: Amount) -> Amount: ...
def quotient(dividend: Amount, divisor: Amount) -> Amount:
    """Divide as Go does, towards zero. No divisor may be 0."""
    result: Amount = dividend // divisor
    if not isinstance(dividend, int) and dividend.min(initial=0) < 0:  # numpy rounds down
        result = result + ((dividend < 0) != (divisor < 0)) * (dividend % divisor != 0)
    return result


def normalized(scores: fw.Int64Column, *, reverse: bool) -> fw.Int64Column:
    """Scale scores so that the highest becomes MAX_NODE_SCORE; with `reverse`, the highest becomes 0.

    Rule: plugins/helper/normalize_score.go (DefaultNormalizeScore) at v1.36.3.
    """
    highest = scores.max(initial=0).item()
    if highest == 0:
        return np.full_like(scores, fw.MAX_NODE_SCORE) if reverse else scores.copy()
    scaled = quotient(fw.MAX_NODE_SCORE * scores, highest)
    return fw.MAX_NODE_SCORE - scaled if reverse else scaled


def held(holders: Collection[int], rows: fw.Rows, size: int) -> fw.BoolColumn:
    """Return for each of `rows` whether it is one of `holders`; `size` is the number of all rows."""
    # Walk along the shorter of the two.
    if len(rows) < len(holders):
        return np.fromiter((row in holders for row in rows.tolist()), np.bool_, len(rows))
    mask = np.zeros(size, np.bool_)
    mask[np.fromiter(holders, np.intp, len(holders))] = True
    return pick(mask, rows)
