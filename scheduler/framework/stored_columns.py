"""Columns that a plugin keeps between decisions, and how it learns which nodes have changed."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Protocol, TypeAlias

import numpy.typing as npt

from scheduler.framework.columns import Rows
from scheduler.framework.nodes import Aspect

Column: TypeAlias = npt.NDArray[Any]

Evaluate: TypeAlias = Callable[[Rows], Column | None]
"""The values of some rows, of which some may not be in use; None means 0 for all of them."""


class ChangedRows(Protocol):
    """The position of one reader in the changes of the nodes."""

    def stale_rows(self) -> Collection[int] | None:
        """Return which rows changed since the last call, or since it was made; None if it could be any."""


class StoredColumns(Protocol):
    """`handle.columns`: values by row of `handle.nodes`, for plugins whose answers as a whole cannot be stored.

    Where a plugin can sign, it needs none of this. The least recently used columns are dropped when there are too many.
    """

    def get(
        self, key: Hashable, aspects: tuple[Aspect, ...], dtype: npt.DTypeLike, evaluate: Evaluate
    ) -> Column | None:
        """Return the column stored under `key`, up to date; None if all its values are 0. Read it, never keep it.

        `evaluate` depends on `key` and on these aspects of the nodes, and on nothing else; it is asked again about the
        rows that changed. What it raises passes through. A profile's plugins share the keys: begin with your name.
        """

    def changes(self, aspects: tuple[Aspect, ...]) -> ChangedRows:
        """Return a reader of the changes of these aspects from now on."""

    def mark(self, rows: Iterable[int] | None = None) -> None:
        """Say that what you know of these nodes from elsewhere has changed; without rows, of any node.

        Answers of plugins that name `Aspect.EXTERNAL` are asked again for them, in the next decision that needs them.
        """

    def forget(self) -> None:
        """Drop everything that is stored for the profile, signatures of pods and answers of other plugins included.

        For a plugin that signs, when something changed that its answers depend on in addition to the pod and the
        aspects of nodes. That has to be rare: the next decisions are as slow as the first.
        """
