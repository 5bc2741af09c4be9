"""All shares, from several APIs: the adapters are asked in turn, and the first that has a share for a pod counts.

of profiles with the plugin   apis/declared.py         those of the plugin's arguments
CapacityScheduling            apis/kueue.py            kueue.x-k8s.io, by a label
                              apis/elastic_quotas.py   scheduling.x-k8s.io, one for each namespace

Each adapter has a tree of its own (`ledger.py`), which is made again when its shares have changed, and otherwise
follows the pods.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING, COSCHEDULING
from scheduler.framework.events import ELASTIC_QUOTA
from scheduler.framework.groups.pod_groups import NEVER, NO_POD_GROUPS, GroupMembers, PodGroup, PodGroups
from scheduler.framework.queued import Entry, QueuedGroup
from scheduler.framework.shares import NodeKind, ShareKey, ShareReclaim, ShareRefusal, ShareState
from scheduler.quota.adapter import Asked
from scheduler.quota.needs import Need, Request, need_of_group, need_of_pod
from scheduler.quota.reserving import Reserving
from scheduler.quota.share_refs import ShareRef
from scheduler.state.eviction_order import EvictionOrder
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.state.share_usage import ShareSelector, ShareUsage, Usage, amounts_of

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.devices import ClaimKey, PodDevices, WithClaims
    from scheduler.quota.ledger import Ledger
    from scheduler.quota.reclaim.running import QuotaUnit, RunningPods, SpareOf
    from scheduler.quota.reservations import GoesAhead, Rank, Reservation
    from scheduler.quota.tree import Share, ShareTree

MAX_REFS: Final = 10_000
"""Selectors of which the share is kept: anyone who creates pods makes as many as they like."""

MAX_WOKEN: Final = 100
"""Woken pods and groups of which it is asked before evictions whether what they were given is still there."""


class QuotaListener:
    """Follows quotas, and does nothing: overwrite the methods of interest."""

    def pod_placed_in(self, uid: str, ref: ShareRef | None) -> None:
        """A pod has a node from now on, and counts in a share."""

    def usage_changed(self, ref: ShareRef, *, is_less: bool) -> None:
        """Less or more of a share is used."""

    def tree_renewed(self, ledger: "Ledger") -> None:
        """A tree was made again."""

    def redeclared(self, ref: ShareRef | None) -> None:
        """Shares have changed, or which pods they are for; with one if only its amounts have."""

    def claim_changed(self, key: "ClaimKey") -> None:
        """A ResourceClaim of which devices are counted has come, or has another number of them."""

    def is_lacking(self, request: Request) -> None:
        """A pod, or a group, is pending for quota that needs this."""


class AdaptedShares:
    """Implements framework.shares.Shares and queue.quota.Quota over adapters. Without any, no pod has a share."""

    def __init__(
        self, nominator: Nominator, groups: PodGroups = NO_POD_GROUPS, objects: ObjectStore | None = None
    ) -> None:
        self._objects = objects or ObjectStore()
        self._groups = groups
        self._listener = QuotaListener()
        self._ledgers: tuple[Ledger, ...] = ()
        self._said: tuple[Callable[[Pod], Hashable], ...] = ()
        self._refs: dict[ShareSelector, ShareRef | None] = {}
        self._counted: Callable[[], Iterable[Pod]] = tuple
        self._reads: Sequence[Hashable] = ()
        self._is_stale = False
        """Whether the trees are to be made again before they are looked at."""
        self._is_fair = False
        """Whether dominant resource shares decide whose pods are evicted."""
        self.usage = ShareUsage(self.selector_of, self._usage_changed)
        self.reserving = Reserving(nominator, self.usage.uids(), self._question)
        self.devices: PodDevices | None = None
        """Counts the devices that pods have by ResourceClaims; None if no share names any."""
        self._recounts = 0
        self._changes = 0

    def listen(self, listener: QuotaListener) -> None:
        """Have this one follow all that happens from now on."""
        self._listener = listener

    def use(self, ledgers: "Sequence[Ledger]", counted: Callable[[], Iterable[Pod]], *, is_fair: bool = False) -> None:
        """Have the shares of these adapters; `counted` returns the pods with a node, if they are to be read again."""
        for each in self._ledgers:
            each.adapter.close()
        self._ledgers, self._counted, self._is_fair = tuple(ledgers), counted, is_fair
        self._said = tuple(each.adapter.said for each in ledgers)
        self.reserving.clear(is_fair=is_fair)
        self._recounts += 1
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
        """Another number once pods say something else of their shares, or count with other devices."""
        self.refresh()
        return self._recounts

    @property
    def changes(self) -> int:
        """Another number after each change of declarations, usage or reservations."""
        return self._changes + self.reserving.changes

    # What plugins ask.

    def key_of(self, pod: Pod) -> ShareKey | None:
        ref = self.ref_of(pod)
        return None if ref is None else ref.key

    def state_of(self, key: ShareKey) -> ShareState | None:
        found = (each.state_of(key.name) for each in self.ledgers if each.source == key.source)
        return next(found, None)

    def refusal(self, pod: Pod) -> ShareRefusal | None:
        ref = self.ref(self.selector_of(pod))
        if ref is None:
            return None
        ledger = ref.ledger
        self.reserving.compare()
        is_plain = self.devices is None and not ledger.reservations.by_rank
        if is_plain and ledger.adapter.fits(ledger.tree, ref.name, amounts_of(pod)):
            return None  # in the quick way: mostly there is space
        return self._refusal(ref, self.need_of_pod(pod))

    def has_space_soon(self, pod: Pod, leaving: Iterable[Pod]) -> bool:
        ref, need = self.ref(self.selector_of(pod)), self.need_of_pod(pod)
        if ref is None or need.problem or self._refusal(ref, need) is None:
            return False
        from scheduler.quota.reclaim.pods import PodReclaim, QuotaRequest

        asked = PodReclaim(QuotaRequest(ref.ledger, ref.name, Asked(need, ref.said), self.ref_of, self._groups))
        with asked.without(leaving):
            return asked.fits_soon()

    def takes_back(self, key: ShareKey) -> bool:
        return any(each.adapter.preemption(key.name).evicts for each in self._ledgers if each.source == key.source)

    def reclaim(self, pod: Pod) -> ShareReclaim | None:
        return self._reclaim(self.ref(self.selector_of(pod)), self.need_of_pod(pod))

    def refusal_of_group(self, group: PodGroup, members: GroupMembers) -> ShareRefusal | None:
        if not self._ledgers:  # before the amounts of each member are read
            return None
        need = self.need_of_group(group, members)
        return None if need is None else self.refusal_of(*need)

    def reclaim_for_group(self, group: PodGroup, members: GroupMembers) -> ShareReclaim | None:
        selector_and_need = self.need_of_group(group, members)
        if selector_and_need is None:
            return None
        selector, need = selector_and_need
        return self._reclaim(self.ref(selector), need)

    def evicted(self, pods: Sequence[Pod], victims: Iterable[Pod]) -> None:
        ref = self.ref(self.selector_of(pods[0])) if self._is_fair else None
        if ref is not None:
            refs = [(each.uid, self.ref_of(each)) for each in victims]
            gave = [(of.name, uid) for uid, of in refs if of is not None and of.ledger is ref.ledger]
            ref.ledger.expenses.note(ref.ledger.tree, ref.name, [pod.uid for pod in pods], gave)

    def nodes_for(self, pod: Pod) -> NodeKind | None:
        ref = self.ref(self.selector_of(pod))
        if ref is None:
            return None
        asked = Asked(self.need_of_pod(pod), ref.said)
        with self._seen(ref, asked):
            return ref.ledger.nodes_for(ref.name, asked)

    def leaving(self) -> Collection[str]:
        return tuple(self.usage.leaving)

    # What the queue asks.

    def lacking(self, entry: Entry) -> Request | None:
        if not self._ledgers or CAPACITY_SCHEDULING not in _refusing(entry):
            return None
        self.reserving.release(entry.pod.uid)  # it was tried
        request = self.readable_request_of(entry.pod)
        if request is None or self._has_space(request):
            return None
        self._listener.is_lacking(request)
        return request

    def has_come_free(self, entry: Entry) -> bool:
        if not self._ledgers or not _is_refused_by_quota(entry):
            return False
        request = self.readable_request_of(entry.pod)
        return request is not None and self._has_space(request)

    def needs_what_is_reserved(self, pod: Pod) -> bool:
        """Say whether a pod that was woken, or its group, still needs what was reserved for it then."""
        request = self.readable_request_of(pod)
        return request is not None and self.reserving.is_for(pod.uid, self.ref(request.selector), request.need)

    # What the engine asks.

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        for ledger in self._ledgers:
            ledger.expenses.forget(uid)

    def refresh(self) -> None:
        """Make the trees again if shares have changed: questions about a share count on it."""
        if self._is_stale:
            self._read_again()
            self._is_stale = False
            for ledger in self._ledgers:
                ledger.count(self._usages(ledger, self.usage.usages()))
                self._listener.tree_renewed(ledger)
            self.usage.keep_order(self._counted if any(each.adapter.evicts for each in self._ledgers) else None)

    def selector_of(self, pod: Pod) -> ShareSelector:
        """Return the selector of a pod, as it says it now."""
        said: tuple[Hashable, ...] = ()
        for each in self._said:  # mostly one, so that this costs less than a comprehension
            said = (*said, each(pod))
        return ShareSelector(pod.metadata.namespace, said)

    def need_of_pod(self, pod: Pod) -> Need:
        """Return what a pod needs. Raises ValueError for a quantity that cannot be read."""
        if self._is_stale:
            self.refresh()
        return need_of_pod(pod, None if self.devices is None else self._asked_by(pod))

    def need_of_group(self, group: PodGroup, members: GroupMembers) -> tuple[ShareSelector, Need] | None:
        """Return what a group still needs, with its selector: as `needs.need_of_group`."""
        if self._is_stale:
            self.refresh()
        return need_of_group(group, members, self.selector_of, None if self.devices is None else self._asked_by)

    def request_of(self, pod: Pod) -> Request:
        """Return what a pod needs, or all that its group still needs. Raises ValueError as `need_of_pod`."""
        group = self._groups.of(pod)
        may_preempt = pod.spec.preemption_policy != NEVER if group is None else group.may_preempt((pod,))
        found = None if group is None else self.need_of_group(group, self._groups.members(pod))
        if found is not None:
            selector, need = found
            return Request(selector, need._replace(preempts=may_preempt))
        # No pod is evicted for a member beyond those that its group needs.
        need = self.need_of_pod(pod)._replace(preempts=may_preempt and group is None)
        return Request(self.selector_of(pod), need)

    def readable_request_of(self, pod: Pod) -> Request | None:
        """Return the same; None if it cannot be read: such a pod is tried, and its error reported."""
        try:
            return self.request_of(pod)
        except ValueError:
            return None

    def ref_of(self, pod: Pod) -> ShareRef | None:
        """Return where a pod counts: one with a node where it was counted first."""
        return self.ref(self.usage.selector_of(pod.uid) or self.selector_of(pod))

    def ref(self, selector: ShareSelector) -> ShareRef | None:
        """Return where pods of a selector count, in a tree that is up to date; None for nowhere."""
        if self._is_stale:
            self.refresh()
        try:
            return self._refs[selector]
        except KeyError:
            return self._look_up(selector)

    def refusal_of(self, selector: ShareSelector, need: Need) -> ShareRefusal | None:
        """Say why there is no space for a need; None if there is."""
        ref = self.ref(selector)
        return None if ref is None else self._refusal(ref, need)

    def may_reclaim(self, selector: ShareSelector, need: Need, ref: ShareRef, running: Pod) -> bool:
        """Say whether a need is guaranteed to its share, which may take it back from another where a pod runs."""
        own = self.ref(selector)
        if own is None or own.name == ref.name:
            return False
        preemption, tree = own.ledger.adapter.preemption(own.name), own.ledger.tree
        if not preemption.reclaims(is_lower=running.priority < need.pod.priority):
            return False
        borrows = ref.name not in tree.shares or tree.holds_more(ref.name, tree.resources)
        return borrows and self.is_guaranteed(selector, need)

    def pending_refusal(self, selector: ShareSelector, need: Need) -> ShareRefusal | None:
        """Say why there is no space for a need that is pending: all that was woken goes ahead of it."""
        ref = self.ref(selector)
        return None if ref is None else self._refusal(ref, need, ref.ledger.goes_ahead_of_pending)

    def taken_over(self, selector: ShareSelector, need: Need) -> "Collection[Reservation]":
        """Return what less important ones of its share were woken with if a pending need fits only without that."""
        ref = self.ref(selector)
        if ref is None:
            return ()
        behind = ref.ledger.reservations.woken_behind(ref.name, need.pod.priority)
        return behind if behind and self._refusal(ref, need, ref.ledger.woken_go_ahead) is not None else ()

    def waits_for_woken(self, selector: ShareSelector, need: Need) -> bool:
        """Return whether only reservations of woken entries leave no space for a need."""
        ref = self.ref(selector)
        if ref is None or not ref.ledger.reservations.by_rank:
            return False
        return self._refusal(ref, need, ref.ledger.stays_ahead) is None

    def is_guaranteed(self, selector: ShareSelector, need: Need) -> bool:
        """Say whether a need is guaranteed to its share, with all that this uses."""
        ref = self.ref(selector)
        if ref is None:
            return False
        asked = Asked(need, ref.said)
        with self._seen(ref, asked):
            return not ref.ledger.rank_of(ref.name, asked).borrows

    def wanted(self, ref: ShareRef, need: Need) -> Mapping[str, int]:
        """Return what a need would take now, in the names of the tree."""
        asked = Asked(need, ref.said)
        with self._seen(ref, asked):
            return ref.ledger.wanted(ref.name, asked)

    def refusal_in(self, tree: "ShareTree", ref: ShareRef, need: Need) -> ShareRefusal | None:
        """Say why there is no space for a need in another tree of the same shares; None if there is."""
        with ref.ledger.what_if(tree):
            return self._refusal(ref, need)

    def tree_with(self, ledger: "Ledger", changed: "Mapping[str, Share] | None" = None) -> "ShareTree":
        """Return a tree of its own, with present usage and reservations, and with other versions of some shares."""
        self.reserving.compare()
        tree = ledger.counted(self._usages(ledger, self.usage.usages()), changed)
        ledger.reservations.count_in(tree)
        return tree

    def check_invariants(self) -> None:
        """Each share is as it is declared, and its usage is what its pods ask for. For tests and debugging."""
        from scheduler.quota.tree import ShareTree

        self.usage.check_invariants()
        if self.devices is not None:
            self.devices.check_invariants(self.usage.uids())
        for ledger in self.ledgers:
            ledger.reservations.check_invariants(self.reserving.is_live)
            declared = ShareTree(ledger.adapter.declared()[0])
            assert ledger.tree.shares == declared.shares
            counted = self.counted_again(ledger)
            for name in ledger.tree.shares:
                assert ledger.used(name) == ledger.used(name, counted), name
                for each in declared.resources:
                    assert ledger.tree.quota(name, each) == declared.quota(name, each), name

    def counted_again(self, ledger: "Ledger") -> "ShareTree":
        """Return the same tree with the usage that its pods, counted one by one, add up to."""
        again: dict[ShareSelector, Usage] = {}
        for selector, amounts in self.usage.counted():
            again.setdefault(selector, Usage(selector)).add(amounts, 1, 1)
        return ledger.counted(self._usages(ledger, again.values()))

    # Internals.

    def _has_space(self, request: Request) -> bool:
        return not request.need.problem and self.pending_refusal(*request) is None

    def _reclaim(self, ref: ShareRef | None, need: Need) -> ShareReclaim | None:
        from scheduler.quota.dominant import dominant_share
        from scheduler.quota.reclaim.elastic import ElasticReclaim
        from scheduler.quota.reclaim.pods import QuotaRequest
        from scheduler.quota.reclaim.policy_reclaim import PolicyReclaim

        elastic = next((each for each in self._ledgers if each.source == ELASTIC_QUOTA), None)
        ledger = elastic if ref is None else ref.ledger
        if ledger is None or (ref is not None and ref.name not in ledger.tree.shares):
            return None
        self.reserving.compare()
        if ref is not None and self._refusal(ref, need) is not None:
            self._release_lost(ledger)
        name, said = ("", None) if ref is None else (ref.name, ref.said)
        request = QuotaRequest(ledger, name, Asked(need, said), self.ref_of, self._groups)
        if ledger is elastic:
            return ElasticReclaim(request, self._counted)
        if self.usage.order is None:
            return None
        running = partial(self._running, ledger, self.usage.order)
        reckon = partial(dominant_share, resource_of=ledger.resource_of) if self._is_fair else None
        return PolicyReclaim(request, ledger.adapter.preemption(name), running, reckon)

    def _release_lost(self, ledger: "Ledger") -> None:
        """Release reservations of woken pods that more important ones have taken: it costs no running pod."""
        for each in tuple(islice(ledger.reservations.woken(), MAX_WOKEN)):
            if self.refusal_of(self.selector_of(each.pod), each.need) is not None:
                self.reserving.release(each.pod.uid)

    def _running(
        self, ledger: "Ledger", order: EvictionOrder, whole: "Callable[[Pod], QuotaUnit | None]", spare_of: "SpareOf"
    ) -> "RunningPods":
        from scheduler.quota.reclaim.running import RunningPods

        selectors: dict[str, list[ShareSelector]] = {}
        for name, _, usage in self._usages(ledger, self.usage.usages()):
            selectors.setdefault(name, []).append(usage.selector)
        return RunningPods(order, selectors, whole, spare_of)

    def _look_up(self, selector: ShareSelector) -> ShareRef | None:
        if len(self._refs) >= MAX_REFS:
            self._refs.clear()
        ref = self._refs[selector] = self._find(selector)
        return ref

    def _find(self, selector: ShareSelector) -> ShareRef | None:
        for ledger, said in zip(self._ledgers, selector.said, strict=True):
            name = ledger.adapter.find(selector.namespace, said)
            if name:
                return ShareRef(ledger, name, said)
        return None

    def _refusal(self, ref: ShareRef, need: Need, goes_ahead: "GoesAhead | None" = None) -> ShareRefusal | None:
        if need.problem:
            return ShareRefusal(ref.key, f'share "{ref.name}" counts devices: {need.problem}')
        asked = Asked(need, ref.said)
        self.reserving.compare()
        if not ref.ledger.reservations.by_rank:  # in the quick way: mostly there are none
            return ref.ledger.refusal(ref.name, asked)
        with self._seen(ref, asked, goes_ahead):
            return ref.ledger.refusal(ref.name, asked)

    def _seen(self, ref: ShareRef, asked: Asked, goes_ahead: "GoesAhead | None" = None) -> AbstractContextManager[None]:
        """Have only those reservations count within a `with` block that a request sees."""
        self.reserving.compare()
        kept = self.reserving.kept(asked.need.uids)

        def rank_of() -> "Rank":
            return ref.ledger.rank_of(ref.name, asked)._replace(kept=kept)

        return ref.ledger.seen_by(asked, rank_of, goes_ahead)

    def _question(self, pod: Pod) -> tuple[ShareRef, Need] | None:
        ref = self.ref(self.selector_of(pod))
        return None if ref is None else (ref, self.need_of_pod(pod))

    def _asked_by(self, pod: Pod) -> "WithClaims | None":
        """Return what a pod asks for with its claims; None if they do not count in its share."""
        if self.devices is None or not pod.spec.resource_claims:
            return None
        ref = self.ref(self.selector_of(pod))
        return None if ref is None or not ref.ledger.devices else self.devices.asked(pod, ref.ledger.devices)

    def _usage_changed(
        self, uid: str, selector: ShareSelector, amounts: Mapping[str, int], sign: int, is_what_if: bool
    ) -> None:
        self._changes += 1
        # As long as shares come one by one, and pods with them, the tree is not made again for each.
        ref = self._refs[selector] if selector in self._refs else self._look_up(selector)
        if ref is not None and not self._is_stale:
            ref.ledger.add(ref.name, ref.ledger.amounts(ref.said, amounts, 1), sign)
        if is_what_if or sign < 0:
            self.reserving.counts(uid, is_usage=sign > 0)
        if is_what_if:
            return
        if sign > 0:
            self.reserving.placed(uid, ref, amounts)
            self._listener.pod_placed_in(uid, ref)
        if ref is not None:
            self._listener.usage_changed(ref, is_less=sign < 0)

    def _declared(self, ledger: "Ledger", share: "Share | None") -> None:
        """Take over another version of a share in ref: if many change one by one, trees are not made for each."""
        ledger.expenses.clear()
        if share is None or self._is_stale or not ledger.tree.put(share):
            self._redeclared()
        else:
            self._redeclared(ShareRef(ledger, share.name, None))

    def _redeclared(self, ref: ShareRef | None = None) -> None:
        """Note that shares have changed, or only the amounts of one in its tree."""
        if ref is None:
            self._is_stale = True
            self._refs.clear()
        self._changes += 1
        self.reserving.again()
        self._listener.redeclared(ref)

    def _read_again(self) -> None:
        """Read the present declarations, and the pods with a node, if other parts of them count."""
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
        self.usage.count_with(self.devices)
        return True

    def _claim_changed(self, key: "ClaimKey") -> None:
        self.reserving.again()
        self._listener.claim_changed(key)

    def _usages(self, ledger: "Ledger", usages: Iterable[Usage]) -> Collection[tuple[str, Hashable, Usage]]:
        """Return those of the shares of one adapter: share, said, usage."""
        found = [(self.ref(usage.selector), usage) for usage in usages]
        return [(ref.name, ref.said, usage) for ref, usage in found if ref is not None and ref.ledger is ledger]


def _refusing(entry: Entry) -> Set[str]:
    """Return the plugins that refused an entry, or a member of it."""
    if isinstance(entry, QueuedGroup):
        return entry.unschedulable_plugins.union(*(each.unschedulable_plugins for each in entry.members))
    return entry.unschedulable_plugins


def _is_refused_by_quota(entry: Entry) -> bool:
    """Say whether quota has refused an entry as a whole, or so many of its members that it is incomplete."""
    if CAPACITY_SCHEDULING in entry.unschedulable_plugins:
        return True
    return CAPACITY_SCHEDULING in (refusing := _refusing(entry)) and refusing <= {CAPACITY_SCHEDULING, COSCHEDULING}
