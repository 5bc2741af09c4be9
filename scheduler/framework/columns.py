"""The types of columns: numpy arrays with one entry per row of the node table."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.intp]
"""Row numbers, each at most once, in ascending order."""

Int64Column: TypeAlias = npt.NDArray[np.int64]
Int32Column: TypeAlias = npt.NDArray[np.int32]
BoolColumn: TypeAlias = npt.NDArray[np.bool_]
