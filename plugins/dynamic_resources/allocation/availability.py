"""The nodes on which devices for a pod's claims are available: stored, and asked again only after changes.

Claims made from one template ask for the same, so their pods get the same answers. A node's answer depends on what is
asked for, the classes, the slices that it can use and the devices that are taken of these. Which devices the pod gets
is not stored: it is searched again for the node that is chosen.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from plugins.dynamic_resources.allocation.allocator import NoDevices, Solution
from plugins.dynamic_resources.allocation.catalog import DeviceCatalog, StaleRows
from plugins.dynamic_resources.gates import NODE_AMOUNTS
from plugins.shared.column_math import grown
from scheduler import framework as fw
from scheduler.api.devices import DeviceClass, ResourceClaim
from scheduler.api.objects import ClaimAmounts, Node
from scheduler.api.recent_caches import RecentCache

HAS_DEVICES, HAS_NONE, HAS_INVALID_POOLS = 0, 1, 2

MAX_BYTES: Final = 16 * 1024 * 1024
"""The bound of the stored columns, with what the claims ask for."""

_BYTES_A_NODE: Final = 10
_BYTES_OF_TAKEN: Final = 100
"""Of each node, if what devices take of it counts."""

_MAX_DISTINCT: Final = 1024
_ENTRY_BYTES: Final = 1024

Int8Column = npt.NDArray[np.int8]
Taken = tuple[ClaimAmounts | None, ...]
"""For each claim the resources that its devices take of their node."""


class Asking(NamedTuple):
    """How a node is asked."""

    ask: Callable[[Node], Solution | None]
    """The allocator's answer."""
    rate: Callable[[Solution], int] | None
    """The score; None if scores are not needed."""
    weigh: Callable[[Node, Solution], Taken] | None
    """The resources that the devices take of their node; None if they do not count."""


class DeviceAvailability:
    """The answers for claims that ask for the same. `update`, then read `codes`, and where they are 0 `scores` and
    `taken`."""

    __slots__ = ("_catalog", "_distinct", "_stale", "classes", "codes", "scores", "taken")

    def __init__(self, classes: Sequence[DeviceClass | None], stale: StaleRows, catalog: DeviceCatalog) -> None:
        self.classes = classes
        self.codes: Int8Column = np.zeros(0, np.int8)
        """HAS_DEVICES, HAS_NONE or HAS_INVALID_POOLS for each row that `update` was asked for."""
        self.scores: fw.Int64Column | None = None
        """The score that `update` stored for each row with devices."""
        self.taken: dict[int, Taken] = {}
        """Row → what its devices take of the node, unless that is nothing."""
        self._distinct: dict[Taken, Taken] = {}
        """Most nodes have the same."""
        self._stale = stale
        self._catalog = catalog

    def update(self, nodes: fw.NodeColumns, rows: fw.Rows, asking: Asking) -> Int8Column:
        """Return the codes of `rows`.

        What `asking` raises passes through: such a node is asked again the next time.
        """
        self.codes = grown(self.codes, nodes.size)
        stale = self._stale.among(nodes, rows)
        if len(stale):
            self._update_rows(nodes, stale, asking)
        return self.codes[rows]

    def _update_rows(self, nodes: fw.NodeColumns, rows: fw.Rows, asking: Asking) -> None:
        if asking.rate is not None:
            self.scores = grown(np.zeros(0, np.int64) if self.scores is None else self.scores, nodes.size)
        alike, different = self._split(nodes, rows[nodes.in_use[rows]])
        if alike:
            self._ask_one(nodes, alike[0], alike, asking)
        for row in different:
            self._ask_one(nodes, row, [row], asking)

    def _split(self, nodes: fw.NodeColumns, rows: fw.Rows) -> tuple[list[int], list[int]]:
        """Return the rows that certainly get the same answer, and the rest."""
        with_slices = self._catalog.slices.nodes_with_slices()
        if with_slices is None:
            return [], rows.tolist()
        names = nodes.names()
        alike: list[int] = []
        different: list[int] = []
        for row in rows.tolist():
            (different if names[row] in with_slices else alike).append(row)
        return alike, different

    def _ask_one(self, nodes: fw.NodeColumns, asked: int, rows: list[int], asking: Asking) -> None:
        """Ask about one row; store the answer for `rows`."""
        code, score, taken, node = HAS_NONE, 0, None, nodes.info(asked).node
        try:
            solution = asking.ask(node)
        except NoDevices:
            code = HAS_INVALID_POOLS
        else:
            if solution is not None:
                code, score = HAS_DEVICES, 0 if asking.rate is None else asking.rate(solution)
                taken = None if asking.weigh is None else asking.weigh(node, solution)
        self._take(rows, taken)
        self.codes[rows] = code
        if self.scores is not None:
            self.scores[rows] = score
        self._stale.computed(rows)

    def _take(self, rows: list[int], taken: Taken | None) -> None:
        if taken is None or not any(taken):
            for row in rows if self.taken else ():
                self.taken.pop(row, None)
            return
        if len(self._distinct) >= _MAX_DISTINCT:
            self._distinct.clear()
        kept = self._distinct.setdefault(taken, taken)
        self.taken |= dict.fromkeys(rows, kept)


class DeviceAvailabilities:
    """All stored answers of a scheduler."""

    def __init__(self, catalog: DeviceCatalog) -> None:
        self._catalog = catalog
        self._nodes: fw.NodeColumns | None = None
        self._by_request_key: RecentCache[bytes, DeviceAvailability] = RecentCache(
            "device availability", MAX_BYTES, self._weight_of
        )

    def of(
        self, claims: Sequence[ResourceClaim], nodes: fw.NodeColumns, columns: fw.StoredColumns
    ) -> DeviceAvailability:
        """Return the answers for unallocated claims; `columns` are those of `nodes`."""
        if nodes is not self._nodes:
            self._nodes = nodes
            self._by_request_key.clear()
        key = request_key(claims)
        classes = tuple(self._catalog.device_class(name) for name in _class_names(claims))
        availability = self._by_request_key.get(key)
        if availability is None or not _are_same(availability.classes, classes):
            self._by_request_key.discard(key)
            availability = DeviceAvailability(classes, StaleRows(self._catalog, columns), self._catalog)
            self._by_request_key.put(key, availability)
        return availability

    def _weight_of(self, key: bytes, availability: DeviceAvailability) -> int:
        assert self._nodes is not None, "`of` was given them"
        counted = _BYTES_OF_TAKEN if NODE_AMOUNTS in self._catalog.gates.names else 0
        return _ENTRY_BYTES + len(key) + (_BYTES_A_NODE + counted) * self._nodes.size


def request_key(claims: Sequence[ResourceClaim]) -> bytes:
    """Return what the search for devices reads of claims: equal if the claims ask for the same."""
    asked: list[Any] = [(claim.spec.devices.requests, claim.spec.devices.constraints) for claim in claims]
    return msgspec.msgpack.encode(asked)


def _class_names(claims: Sequence[ResourceClaim]) -> list[str]:
    return [each.device_class_name for claim in claims for request in claim.requests for each in request.alternatives]


def _are_same(some: Sequence[DeviceClass | None], different: Sequence[DeviceClass | None]) -> bool:
    return all(one is other for one, other in zip(some, different, strict=True))
