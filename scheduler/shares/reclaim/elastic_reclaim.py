"""The pods that give quota back to one pod with an ElasticQuota, or make space for one without."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from scheduler.api.importance import started
from scheduler.api.pod import Pod
from scheduler.framework.shares import ShareKey
from scheduler.shares.adapter import Asked
from scheduler.shares.apis.elastic_quotas import is_over_minimum
from scheduler.shares.ledger import Ledger
from scheduler.shares.reclaim.elastic import ElasticClaim, elastic_candidates, elastic_victims, giving_shares
from scheduler.shares.reclaim.units import Unit
from scheduler.state.share_usage import amounts_of

_MICROSECONDS = 1_000_000


class ElasticReclaim:
    """Implements framework.shares.ShareReclaim."""

    def __init__(self, ledger: Ledger, share: str, asked: Asked, key_of: Callable[[Pod], ShareKey | None]) -> None:
        """`share`: that of the pod, empty if it has none."""
        self._ledger = ledger
        self._tree = tree = ledger.tree
        self._share = share
        self._asked = asked
        self._key_of = key_of
        own = [each for each in asked.nominated if each.share == share and each.is_as_important]
        elsewhere = [
            each
            for each in asked.nominated
            if each.share != share and each.share in tree.shares and not is_over_minimum(tree, each.share)
        ]
        self._claim = ElasticClaim(
            share=share,
            request=asked.need.requests,
            priority=asked.need.pod.priority,
            nominated=_total(each.amounts for each in own),
            nominated_elsewhere=_total(each.amounts for each in elsewhere),
        )
        self._giving = giving_shares(tree, self._claim) or ({""} if not share else set())
        self._away: dict[str, Unit] = {}
        self._units: dict[str, Unit] = {}

    @property
    def helps(self) -> bool:
        return bool(self._giving)

    @property
    def takes_lower_only(self) -> bool:
        return self._share in self._giving

    def may_give(self, pod: Pod) -> bool:
        return self._share_of(pod) in self._giving

    def candidates(self, pods: Iterable[Pod]) -> list[Pod]:
        by_uid = {pod.uid: pod for pod in pods if self.may_give(pod)}
        if not by_uid:
            return []
        units = [unit for pod in by_uid.values() if (unit := self._unit(pod)) is not None]
        return [by_uid[unit.uid] for unit in elastic_candidates(self._tree, self._claim, units)]

    def is_leaving_for(self, pod: Pod) -> bool:
        unit = self._unit(pod)
        if unit is None:
            return False
        return unit.priority < self._claim.priority if unit.share == self._share else unit.share in self._giving

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

    def fewest(
        self, candidates: Sequence[Pod], violating: Collection[str], fits: Callable[[Sequence[Pod]], bool]
    ) -> list[Pod]:
        by_uid = {pod.uid: pod for pod in candidates}
        units = [unit for pod in candidates if (unit := self._unit(pod)) is not None]

        def fits_all(gone: Sequence[Unit]) -> bool:
            return self.fits() and fits([by_uid[unit.uid] for unit in gone])

        found = elastic_victims(self._tree, self._claim, units, violating, fits_all)
        return [by_uid[victim.unit.uid] for victim in found]

    def _share_of(self, pod: Pod) -> str | None:
        """Return a pod's quota, empty for none; None if it counts elsewhere, or against one that cannot be used."""
        key = self._key_of(pod)
        if key is None:
            return ""
        return key.name if key.source == self._ledger.source and key.name in self._tree.shares else None

    def _unit(self, pod: Pod) -> Unit | None:
        """Return a pod as a unit; None if it has no share in this sense."""
        known = self._units.get(pod.uid)
        if known is not None:
            return known
        share = self._share_of(pod)
        if share is None:
            return None
        usage = dict(self._ledger.amounts(None, amounts_of(pod), 1)) if share else {}
        reserved_at = started(pod) / _MICROSECONDS
        unit = Unit(uid=pod.uid, share=share, usage=usage, priority=pod.priority, reserved_at=reserved_at)
        self._units[pod.uid] = unit
        return unit


def _total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0) + amount
    return total
