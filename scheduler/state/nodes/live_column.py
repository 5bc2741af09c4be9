"""A column that is updated in place as the cluster changes, and what plugins see of it."""

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from scheduler.framework.nodes.columns import read_only

ScalarT = TypeVar("ScalarT", bound=np.generic)


class LiveColumn(Generic[ScalarT]):
    """One value for each row, 0 at first.

    `values` are written here in `scheduler.state`; `shown` is a view of them that cannot be written to. It is made once
    for each array, so that reading the column costs nothing more.
    """

    __slots__ = ("shown", "values")

    def __init__(self, values: npt.NDArray[ScalarT]) -> None:
        self.values = values
        self.shown = read_only(values)

    def grow(self, capacity: int) -> None:
        """Make it longer."""
        grown = np.zeros(capacity, self.values.dtype)
        grown[: len(self.values)] = self.values
        self.values = grown
        self.shown = read_only(grown)


def int32_column(capacity: int) -> LiveColumn[np.int32]:
    """Return a column of zeros."""
    return LiveColumn(np.zeros(capacity, np.int32))


def int64_column(capacity: int) -> LiveColumn[np.int64]:
    """Return a column of zeros."""
    return LiveColumn(np.zeros(capacity, np.int64))


def bool_column(capacity: int) -> LiveColumn[np.bool_]:
    """Return a column in which nothing holds."""
    return LiveColumn(np.zeros(capacity, np.bool_))
