"""All shares, from several APIs: the adapters are asked in turn, and the first that has a share for a pod counts.

of profiles with the plugin   apis/declared.py         those of the plugin's arguments
CapacityScheduling            apis/kueue.py            kueue.x-k8s.io, by a label
                              apis/elastic_quotas.py   scheduling.x-k8s.io, one for each namespace

Each adapter has a tree of its own (`ledger.py`), which is made again when its shares have changed, and otherwise
follows the pods.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.api.pod import Pod
from scheduler.framework.events import ELASTIC_QUOTA
from scheduler.framework.handle import PodNominator
from scheduler.framework.pod_groups import NO_POD_GROUPS, GroupMembers, PodGroup, PodGroups
from scheduler.framework.shares import NodeKind, ShareKey, ShareReclaim, ShareRefusal, ShareState
from scheduler.quota.adapter import Asked, Nominated, is_borrowing_with
from scheduler.quota.needs import Need, need_of_group, need_of_pod
from scheduler.quota.places import Place, Promise, Root
from scheduler.state.eviction_order import EvictionOrder
from scheduler.state.objects import ObjectStore
from scheduler.state.share_usage import ShareUsage, Tenant, Usage, amounts_of

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.devices import ClaimKey, PodDevices, WithClaims
    from scheduler.quota.ledger import Ledger
    from scheduler.quota.reclaim.running_pods import RunningPods
    from scheduler.quota.reclaim.units import Unit
    from scheduler.quota.tree import Share, ShareTree

MAX_PLACES: Final = 10_000
"""Tenants of which it is kept which share they mean: anyone who creates pods makes as many as they like."""


class _Kept(NamedTuple):
    """The amounts of a pod that is nominated, or was."""

    pod: Pod
    nominated: Nominated | None = None
    """None without a share."""

    root: "Root | None" = None


class AdaptedShares:
    """Implements framework.shares.Shares over adapters. Without any, no pod has a share."""

    def __init__(
        self, nominator: PodNominator, groups: PodGroups = NO_POD_GROUPS, objects: ObjectStore | None = None
    ) -> None:
        self._nominator = nominator
        self._objects = objects or ObjectStore()
        self._groups = groups
        self._ledgers: tuple[Ledger, ...] = ()
        self._places: dict[Tenant, Place | None] = {}
        self._kept: dict[str, _Kept] = {}
        """By UID."""
        self._counted: Callable[[], Iterable[Pod]] = tuple
        self._reads: Sequence[Hashable] = ()
        self._is_stale = False
        """Whether the trees are to be made again before they are looked at."""
        self.usage = ShareUsage(self.tenant_of, self._usage_changed)
        self.devices: PodDevices | None = None
        """Counts the devices that pods have by ResourceClaims; None if no share names any."""
        self._recounts = 0
        self.changes = 0
        """Another number after each change of what is declared or used."""
        # Who wants to know of changes; None if nobody does.
        self.placed: Callable[[str, Place | None, Mapping[str, int]], None] | None = None
        """Called for each pod that has a node from now on: its UID, where it counts, and what it asks for."""
        self.freed: Callable[[Place], None] | None = None
        """Called when less of a share is used."""
        self.used: Callable[[Place], None] | None = None
        """Called when less or more of a share is used."""
        self.renewed: Callable[[Ledger], None] | None = None
        """Called when a tree was made again."""
        self.redeclared: Callable[[Place | None], None] | None = None
        """Called when shares have changed, or which pods they are for: with one if only its amounts have."""
        self.claim_changed: Callable[[ClaimKey], None] | None = None
        """Called when a ResourceClaim of which devices are counted has come, or has another number of them."""
        self.promised: Callable[[Root, Need], Iterable[Nominated]] | None = None
        """Yields what is kept in a tree for pods that go first."""
        self.meant: Collection[str] = ()
        """The UIDs of the pods to which that is promised: their nominations do not count in addition."""
        self.is_fair = False
        """Whether dominant resource shares decide whose pods are evicted."""
        self.waiting: Callable[[Pod], ShareRefusal | None] | None = None
        """Says why a pod waits, if it waits for its share."""

    def use(self, ledgers: "Sequence[Ledger]", counted: Callable[[], Iterable[Pod]]) -> None:
        """Have the shares of these adapters; `counted` returns the pods with a node, if they are to be read again."""
        for each in self._ledgers:
            each.adapter.close()
        self._ledgers, self._counted = tuple(ledgers), counted
        for each in ledgers:
            each.amounts_of = self.usage.amounts_of
        self._read_again()
        for each in ledgers:
            each.adapter.listen(partial(self._declared, each))
        self._redeclared()

    @property
    def are_on(self) -> bool:
        """Whether any pod may have a share."""
        return bool(self._ledgers)

    @property
    def ledgers(self) -> "tuple[Ledger, ...]":
        """The trees, up to date."""
        self.refresh()
        return self._ledgers

    @property
    def recounts(self) -> int:
        """Another number once other devices count."""
        self.refresh()
        return self._recounts

    # What plugins ask.

    def key_of(self, pod: Pod) -> ShareKey | None:
        place = self.place_of(pod)
        return None if place is None else place.key

    def state_of(self, key: ShareKey) -> ShareState | None:
        found = (each.state_of(key.name) for each in self.ledgers if each.source == key.source)
        return next(found, None)

    def refusal(self, pod: Pod) -> ShareRefusal | None:
        place = self.place(self.tenant_of(pod))
        return None if place is None else self._refusal(place, self.need_of_pod(pod))

    def takes_back(self, key: ShareKey) -> bool:
        for ledger in self._ledgers:
            if ledger.source == key.source:
                preemption = ledger.adapter.preemption(key.name)
                return preemption is None or preemption.evicts
        return False

    def reclaim(self, pod: Pod) -> ShareReclaim | None:
        return self._reclaim(self.place(self.tenant_of(pod)), self.need_of_pod(pod))

    def refusal_of_group(self, group: PodGroup, members: GroupMembers) -> ShareRefusal | None:
        if not self._ledgers:  # before the amounts of each member are read
            return None
        need = self.need_of_group(group, members)
        return None if need is None else self.refusal_of(*need)

    def reclaim_for_group(self, group: PodGroup, members: GroupMembers) -> ShareReclaim | None:
        tenant_and_need = self.need_of_group(group, members)
        if tenant_and_need is None:
            return None
        tenant, need = tenant_and_need
        return self._reclaim(self.place(tenant), need)

    def nodes_for(self, pod: Pod) -> NodeKind | None:
        place = self.place(self.tenant_of(pod))
        if place is None:
            return None
        return place.ledger.nodes_for(place.name, Asked(self.need_of_pod(pod), place.evidence))

    def refusal_while_waiting(self, pod: Pod) -> ShareRefusal | None:
        return None if self.waiting is None else self.waiting(pod)

    # What the engine asks.

    def refresh(self) -> None:
        """Make the trees again if shares have changed: what is asked about a place counts on it."""
        if self._is_stale:
            self._read_again()
            self._is_stale = False
            for ledger in self._ledgers:
                ledger.count(self._usages(ledger, self.usage.usages()))
                if self.renewed is not None:
                    self.renewed(ledger)
            if not any(each.adapter.evicts for each in self._ledgers):
                self.usage.order = None
            elif self.usage.order is None:
                self.usage.keep_order(self._counted())

    def tenant_of(self, pod: Pod) -> Tenant:
        """Return the tenant of a pod, as it says it now."""
        return Tenant(pod.metadata.namespace, tuple([each.adapter.evidence(pod) for each in self._ledgers]))

    def need_of_pod(self, pod: Pod) -> Need:
        """Return what a pod needs. Raises ValueError for a quantity that cannot be read."""
        if self._is_stale:
            self.refresh()
        return need_of_pod(pod, None if self.devices is None else self._asked_by(pod))

    def need_of_group(self, group: PodGroup, members: GroupMembers) -> tuple[Tenant, Need] | None:
        """Return what a group still needs, with its tenant: as `needs.need_of_group`."""
        if self._is_stale:
            self.refresh()
        return need_of_group(group, members, self.tenant_of, None if self.devices is None else self._asked_by)

    def place_of(self, pod: Pod) -> Place | None:
        """Return where a pod counts: one with a node where it was counted first."""
        return self.place(self.usage.tenant_of(pod.uid) or self.tenant_of(pod))

    def place(self, tenant: Tenant) -> Place | None:
        """Return where pods of a tenant count, in a tree that is up to date; None for nowhere."""
        if self._is_stale:
            self.refresh()
        return self._place(tenant)

    def _place(self, tenant: Tenant) -> Place | None:
        """Return the same, whether the tree is up to date or not."""
        try:
            return self._places[tenant]
        except KeyError:
            if len(self._places) >= MAX_PLACES:
                self._places.clear()
            place = self._places[tenant] = self._find(tenant)
            return place

    def refusal_of(self, tenant: Tenant, need: Need) -> ShareRefusal | None:
        """Say why there is no space for a need; None if there is."""
        place = self.place(tenant)
        return None if place is None else self._refusal(place, need)

    def may_reclaim(self, tenant: Tenant, need: Need, place: Place, running: Pod) -> bool:
        """Say whether a need is guaranteed to its share, which may take it back from another where a pod runs."""
        own = self.place(tenant)
        if own is None or own.name == place.name:
            return False
        preemption, tree = own.ledger.adapter.preemption(own.name), own.ledger.tree
        if preemption is not None and not preemption.reclaims(is_lower=running.priority < need.pod.priority):
            return False
        borrows = place.name not in tree.shares or tree.uses_more(place.name, tree.resources)
        return borrows and self.is_guaranteed(tenant, need)

    def is_guaranteed(self, tenant: Tenant, need: Need) -> bool:
        """Say whether a need is guaranteed to its share, with all that this uses."""
        wanted = self.promise(tenant, need)
        return wanted is not None and not is_borrowing_with(wanted.ledger.tree, wanted.name, wanted.amounts)

    @property
    def has_nominations(self) -> bool:
        """Whether others make space on nodes for any pod, which may count."""
        return bool(self._nominator.nodes)

    def promise(self, tenant: Tenant, need: Need) -> Promise | None:
        """Return what a need would take now, for `reserving`; None if it has no share."""
        place = self.place(tenant)
        if place is None:
            return None
        return Promise(place.ledger, place.name, place.ledger.wanted(place.name, Asked(need, place.evidence)))

    def asked(self, place: Place, need: Need) -> Asked:
        """Return the question whether there is space for a need."""
        promised = self.promised(place.root, need) if self.promised is not None and self.meant else ()
        if not self._nominator.nodes:
            return Asked(need, place.evidence, tuple(promised))
        others, borrows = list[Nominated](), None
        counted, numbers, root = self.usage.uids(), self._nominator.kept, place.root
        own = min((number for uid in need.uids if (number := numbers.get(uid)) is not None), default=inf)
        for _, pods in self._nominator.by_node():
            for pod in pods:
                uid = pod.uid
                kept = self._kept.get(uid)
                if kept is None or kept.pod is not pod:
                    kept = self._as_nominated(pod)
                _, nominated, other = kept
                if nominated is None or other != root or uid in counted:
                    continue
                if uid == need.pod.uid:
                    borrows = nominated.borrows
                elif uid not in need.uids and uid not in self.meant:
                    number = numbers.get(uid)
                    if number is None:
                        others.append(nominated)
                    elif number < own:
                        others.append(nominated._replace(is_kept=True))
        return Asked(need, place.evidence, (*others, *promised), borrows)

    def tree_with(self, ledger: "Ledger", changed: "Mapping[str, Share] | None" = None) -> "ShareTree":
        """Return a tree of its own, with what is used now, and with other versions of some shares."""
        return ledger.counted(self._usages(ledger, self.usage.usages()), changed)

    @contextmanager
    def reserving(self, promises: Iterable[Promise]) -> Iterator[Callable[[Promise], None]]:
        """Let promises count as used within a `with` block, and further ones by a call of what it is given."""
        self.refresh()
        kept: list[Promise] = []

        def reserve(promise: Promise) -> None:
            promise.ledger.reserve(promise.name, promise.amounts, 1)
            kept.append(promise)

        try:
            for each in promises:
                reserve(each)
            yield reserve
        finally:
            for each in kept:
                each.ledger.reserve(each.name, each.amounts, -1)

    def check_invariants(self) -> None:
        """Each share is as it is declared, and its usage is what its pods ask for. For tests and debugging."""
        from scheduler.quota.tree import ShareTree

        self.usage.check_invariants()
        if self.devices is not None:
            self.devices.check_invariants(self.usage.uids())
        for ledger in self.ledgers:
            declared = ShareTree(ledger.adapter.declared()[0])
            assert ledger.tree.shares == declared.shares
            counted = self.counted_again(ledger)
            for name in ledger.tree.shares:
                assert ledger.used(name) == ledger.used(name, counted), name
                for each in declared.resources:
                    assert ledger.tree.quota(name, each) == declared.quota(name, each), name

    def counted_again(self, ledger: "Ledger") -> "ShareTree":
        """Return the same tree with the usage that its pods, counted one by one, add up to."""
        again: dict[Tenant, Usage] = {}
        for tenant, amounts in self.usage.counted():
            again.setdefault(tenant, Usage(tenant)).add(amounts, 1, 1)
        return ledger.counted(self._usages(ledger, again.values()))

    # Internals.

    def _reclaim(self, place: Place | None, need: Need) -> ShareReclaim | None:
        from scheduler.quota.dominant import dominant_share
        from scheduler.quota.reclaim.elastic_reclaim import ElasticReclaim
        from scheduler.quota.reclaim.pods import Claimant
        from scheduler.quota.reclaim.policy_reclaim import PolicyReclaim

        elastic = next((each for each in self._ledgers if each.source == ELASTIC_QUOTA), None)
        ledger = elastic if place is None else place.ledger
        if ledger is None or (place is not None and place.name not in ledger.tree.shares):
            return None
        asked = Asked(need, None) if place is None else self.asked(place, need)
        name = "" if place is None else place.name
        preemption = ledger.adapter.preemption(name)
        if preemption is None:
            asked = asked._replace(evidence=None)
            return ElasticReclaim(Claimant(ledger, name, asked, self.place_of, self._groups), self._counted)
        if self.usage.order is None:
            return None
        running = partial(self._running, ledger, self.usage.order)
        reckon = partial(dominant_share, resource_of=ledger.resource_of) if self.is_fair else None
        claimant = Claimant(ledger, name, asked, self.place_of, self._groups)
        return PolicyReclaim(claimant, preemption, running, reckon)

    def _running(self, ledger: "Ledger", order: EvictionOrder, whole: "Callable[[Pod], Unit | None]") -> "RunningPods":
        """Return the pods that run in the shares of a ledger."""
        from scheduler.quota.reclaim.running_pods import RunningPods

        tenants: dict[str, list[Tenant]] = {}
        for name, _, usage in self._usages(ledger, self.usage.usages()):
            tenants.setdefault(name, []).append(usage.tenant)
        return RunningPods(order, tenants, whole)

    def _find(self, tenant: Tenant) -> Place | None:
        for ledger, evidence in zip(self._ledgers, tenant.evidence, strict=True):
            name = ledger.adapter.find(tenant.namespace, evidence)
            if name:
                return Place(ledger, name, evidence)
        return None

    def _refusal(self, place: Place, need: Need) -> ShareRefusal | None:
        if need.problem:
            return ShareRefusal(place.key, f'share "{place.name}" counts devices: {need.problem}')
        return place.ledger.refusal(place.name, self.asked(place, need))

    def _asked_by(self, pod: Pod) -> "WithClaims | None":
        """Return what a pod asks for with its claims; None if they do not count in its share."""
        if self.devices is None or not pod.spec.resource_claims:
            return None
        place = self.place(self.tenant_of(pod))
        return None if place is None or not place.ledger.devices else self.devices.asked(pod, place.ledger.devices)

    def _as_nominated(self, pod: Pod) -> "_Kept":
        """Return what a nominated pod would take: the same as long as it is nominated."""
        if len(self._kept) >= MAX_PLACES:
            self._kept.clear()
        place = self.place(self.tenant_of(pod))
        if place is None:
            kept = _Kept(pod)
        else:
            ledger, name = place.ledger, place.name
            amounts = ledger.wanted(name, Asked(self.need_of_pod(pod), place.evidence))
            nominated = Nominated(name, pod, amounts, is_borrowing_with(ledger.tree, name, amounts), self.is_fair)
            kept = _Kept(pod, nominated, place.root)
        self._kept[pod.uid] = kept
        return kept

    def _usage_changed(self, uid: str, tenant: Tenant, amounts: Mapping[str, int], sign: int, is_what_if: bool) -> None:
        self.changes += 1
        # As long as shares come one by one, and pods with them, the tree is not made again for each.
        place = self._place(tenant)
        if place is not None and not self._is_stale:
            place.ledger.add(place.name, place.evidence, amounts, 1, sign)
        if is_what_if:
            return
        if sign > 0 and self.placed is not None:
            self.placed(uid, place, amounts)
        if place is not None:
            if self.used is not None:
                self.used(place)
            if sign < 0 and self.freed is not None:
                self.freed(place)

    def _declared(self, ledger: "Ledger", share: "Share | None") -> None:
        """Take over another version of a share in place: if many change one by one, trees are not made for each."""
        if share is None or self._is_stale or not ledger.tree.put(share):
            self._redeclared()
        else:
            self._redeclared(Place(ledger, share.name, None))

    def _redeclared(self, place: Place | None = None) -> None:
        """Note that shares have changed, or only the amounts of one in its tree."""
        if place is None:
            self._is_stale = True
            self._places.clear()
        self.changes += 1
        self._kept.clear()
        if self.redeclared is not None:
            self.redeclared(place)

    def _read_again(self) -> None:
        """Read what is declared now, and the pods with a node, if other parts of them count."""
        for ledger in self._ledgers:
            ledger.renew()
        reads = [each.adapter.reads for each in self._ledgers]
        devices = frozenset[str]().union(*(each.devices for each in self._ledgers))
        counts_others = self._count_devices(devices)
        if counts_others or reads != self._reads:
            self._reads = reads
            self.usage.restart(self._counted() if reads else ())

    def _count_devices(self, resources: frozenset[str]) -> bool:
        """Count these devices of pods from now on; return whether others were counted before."""
        devices = self.devices
        if resources == (frozenset() if devices is None else devices.resources):
            return False
        if devices is None:
            from scheduler.quota.devices import PodDevices

            devices = PodDevices(self._objects, self.usage.replace, self._claim_changed)
        devices.use(resources)
        self._recounts += 1
        self.devices = devices if resources else None
        self.usage.count = devices.count if resources else amounts_of
        self.usage.uncounted = devices.forget if resources else None
        return True

    def _claim_changed(self, key: "ClaimKey") -> None:
        self._kept.clear()
        if self.claim_changed is not None:
            self.claim_changed(key)

    def _usages(self, ledger: "Ledger", usages: Iterable[Usage]) -> Collection[tuple[str, Hashable, Usage]]:
        """Return those of the shares of one adapter: share, evidence, usage."""
        found = [(self.place(usage.tenant), usage) for usage in usages]
        return [
            (place.name, place.evidence, usage)
            for place, usage in found
            if place is not None and place.ledger is ledger
        ]
