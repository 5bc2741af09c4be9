"""Pods as units: the common half of all rules by which one pod takes quota back."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from scheduler.api.importance import created, started
from scheduler.api.pod import Pod
from scheduler.shares.adapter import Asked
from scheduler.shares.ledger import Ledger
from scheduler.shares.reclaim.units import NO_LIMITS, Unit
from scheduler.state.share_usage import amounts_of

if TYPE_CHECKING:
    from scheduler.shares.places import Place

SECOND: Final = 1_000_000
"""In microseconds."""


class PodReclaim:
    """The half of framework.shares.ShareReclaim that no rule changes: who counts as gone; whether that is enough."""

    def __init__(self, ledger: Ledger, share: str, asked: Asked, place_of: "Callable[[Pod], Place | None]") -> None:
        """`share`: that of the pod, empty if it has none."""
        self._ledger = ledger
        self._tree = ledger.tree
        self._share = share
        self._asked = asked
        self._place_of = place_of
        self._away: dict[str, Unit] = {}
        self._units: dict[str, Unit] = {}

    @contextmanager
    def without(self, pods: Iterable[Pod]) -> Iterator[None]:
        before = frozenset(self._away)
        try:
            for pod in pods:
                self.take(pod)
            yield
        finally:
            for unit in [unit for uid, unit in self._away.items() if uid not in before]:
                self._tree.add(unit.share, unit.usage)
                del self._away[unit.uid]

    def take(self, pod: Pod) -> None:
        unit = self._unit(pod)
        if unit is not None and unit.share:
            self._tree.remove(unit.share, unit.usage)
            self._away[unit.uid] = unit

    def put_back(self, pod: Pod) -> None:
        unit = self._away.pop(pod.uid, None)
        if unit is not None:
            self._tree.add(unit.share, unit.usage)

    def fits(self) -> bool:
        return not self._share or self._ledger.refusal(self._share, self._asked) is None

    def _share_of(self, pod: Pod) -> str | None:
        """Return a pod's share, empty for none; None if it counts elsewhere, or against one that cannot be used."""
        place = self._place_of(pod)
        if place is None:
            return ""
        return place.name if place.ledger is self._ledger and place.name in self._tree.shares else None

    def _unit(self, pod: Pod) -> Unit | None:
        """Return a pod as a unit; None if it has no share in this sense."""
        known = self._units.get(pod.uid)
        if known is not None:
            return known
        share, place = self._share_of(pod), self._place_of(pod)
        if share is None:
            return None
        usage = NO_LIMITS if place is None else self._ledger.amounts(place.evidence, amounts_of(pod), 1)
        unit = self._units[pod.uid] = Unit(
            uid=pod.uid,
            share=share,
            usage=usage,
            priority=pod.priority,
            queued_at=created(pod) / SECOND,
            reserved_at=started(pod) / SECOND,
        )
        return unit
