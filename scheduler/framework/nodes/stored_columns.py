"""Columns that a plugin keeps between decisions, and the nodes that have changed since."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Protocol, TypeAlias

import numpy.typing as npt

from scheduler.framework.nodes.columns import Rows
from scheduler.framework.nodes.nodes import Aspect

Column: TypeAlias = npt.NDArray[Any]

Evaluate: TypeAlias = Callable[[Rows], Column | None]
"""The values of some rows, of which some may not be in use; None means 0 for all of them."""


class ChangedRows(Protocol):
    """The position of one reader in the changes of the nodes."""

    def stale_rows(self) -> Collection[int] | None:
        """Return which rows changed since the last call, or since it was made; None if it could be any."""


class StoredColumns(Protocol):
    """`handle.columns`: values by row of `handle.nodes`, for plugins that cannot sign.

    The least recently used columns are dropped when there are too many.
    """

    def get(
        self, key: Hashable, aspects: tuple[Aspect, ...], dtype: npt.DTypeLike, evaluate: Evaluate
    ) -> Column | None:
        """Return the column stored under `key`, up to date; None if all its values are 0. Read it, never keep it.

        `evaluate`, which is called again for changed rows, must depend only on `key` and on these aspects of the nodes.
        A profile's plugins share the keys: begin with your name.
        """

    def changes(self, aspects: tuple[Aspect, ...]) -> ChangedRows:
        """Return a reader of the changes of these aspects from now on."""

    def mark(self, rows: Iterable[int] | None = None) -> None:
        """Report that data about these nodes from elsewhere have changed; without rows, about any node.

        Plugins that name `Aspect.EXTERNAL` are asked about them again, in the next decision that needs it.
        """

    def forget(self) -> None:
        """Drop everything that is stored for the profile, signatures of pods and answers of other plugins included.

        For a plugin that signs, when its answers depend on something else that has changed. The next decisions are as
        slow as the first.
        """
