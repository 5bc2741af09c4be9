"""The types of columns: numpy arrays with one entry per row of the node table."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.intp]
"""Row numbers, each at most once, in ascending order."""

Int64Column: TypeAlias = npt.NDArray[np.int64]
Int32Column: TypeAlias = npt.NDArray[np.int32]
BoolColumn: TypeAlias = npt.NDArray[np.bool_]

ScalarT = TypeVar("ScalarT", bound=np.generic)


AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])


def locked(array: AnyArray) -> AnyArray:
    """Return the same array, which raises ValueError from now on when it is written to."""
    array.flags.writeable = False
    return array


def read_only(column: npt.NDArray[ScalarT]) -> npt.NDArray[ScalarT]:
    """Return a view of a column that raises ValueError when it is written to; it follows what changes in the column."""
    return locked(column.view())
