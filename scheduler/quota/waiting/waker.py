"""Wakes pods that are pending for quota: no more of them than there is space for.

When something of a tree of quotas is freed, the first pods of its kinds are woken in the order of quotas, as far as it
goes round. What a woken pod asks for is reserved until it was tried; if it fits no node, others are woken. The first of
a kind is tried, too, when a pod starts that borrows what its quota is guaranteed, and when something was freed and
others still use what it is guaranteed; and when a node or a quota changes, the first of all kinds that may evict
others: a few in a second. Each member of a group waits for the amounts of all that the group still needs. A pod whose
devices cannot be counted yet is of no kind, and waits for its ResourceClaims.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from scheduler.api.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.listeners import PodListener
from scheduler.framework.errors import SchedulerError
from scheduler.framework.events import ClusterEvent
from scheduler.framework.pod_groups import PodGroups
from scheduler.framework.queued import QueuedPod
from scheduler.framework.shares import ShareRefusal
from scheduler.queue.pending_for_quota import PendingForQuota
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.quota.adapters import AdaptedShares, QuotaListener
from scheduler.quota.devices import ClaimKey
from scheduler.quota.ledger import Ledger
from scheduler.quota.order import Head
from scheduler.quota.share_orders import Candidate, Heads, ShareOrder
from scheduler.quota.share_refs import Root, ShareRef
from scheduler.quota.waiting.kinds import Kind, Request, request_of
from scheduler.quota.waiting.lacking_nodes import NEW_LABELS, RETRIED, LackingNodes
from scheduler.quota.waiting.may_evict import MayEvict
from scheduler.quota.waiting.statuses import QuotaStatuses

FREED: Final = "ShareFreed"
CHANGED: Final = "ShareChange"
BORROWED: Final = "ShareBorrowed"
"""Events that wake pods, as metrics name them."""

MAX_KINDS: Final = 500
"""That are looked at when something is freed; of more, the others are the first at the next time."""

MAX_TRIED: Final = 8
"""Pods that may be tried when another one starts."""

MAX_RETRIED: Final = 4
"""Kinds whose first pod is tried at a time because evictions may help it now: each may take 50 ms."""


class Waker(PodListener, QuotaListener):
    """Follows what happens to pods and quotas."""

    def __init__(
        self,
        shares: AdaptedShares,
        groups: PodGroups,
        queue: SchedulingQueue,
        order: ShareOrder,
        statuses: QuotaStatuses,
        due: Callable[[], None],
    ) -> None:
        """`order`: that in which pods of several shares are woken; `due` is called when `retry` has something to do."""
        self._order = order
        self._statuses = statuses
        self._due = due
        self._reason = ""
        """That of the condition of pods that lack quota."""
        self.pending = PendingForQuota[Kind](queue)
        self.lacking_nodes = LackingNodes(queue, self.pending.rank)
        self._shares = shares
        self._reserving = shares.reserving
        self._groups = groups
        self._queue = queue
        self._requests: dict[str, Request] = {}
        """UID → what a pending or woken pod needs."""
        self._uncounted: dict[str, QueuedPod] = {}
        """UID → a pod that waits for ResourceClaims: its devices cannot be counted yet. It is of no kind."""
        self._by_claim: dict[ClaimKey, dict[str, None]] = {}
        """ResourceClaim → the UIDs of waiting pods whose amounts it changes."""
        self._recounts = 0
        """As the shares had it when these were counted."""
        self._may_evict = MayEvict(shares)
        self._answers: dict[Kind, tuple[int, ShareRefusal | None]] = {}
        """Kind → the last answer to whether there is space for its pods, and the number of the change before it."""
        self._might_evict: dict[str, QueuedPod] = {}
        """UID → a pod refused by nodes alone, whose share takes back what others borrow."""
        self._evictions_may_help = False
        """Whether something has changed, so that evictions may help pods which they did not help before."""
        self._guarantees_may_be_had = False
        """The same of pods that are guaranteed to their shares."""
        self._retries: list[tuple[Root, Kind]] = []
        """The kinds that are still to be tried because of that, the next one last."""

    def __len__(self) -> int:
        return len(self.pending)

    @property
    def order(self) -> ShareOrder:
        return self._order

    def use(self, order: ShareOrder, reason: str) -> None:
        """Wake pods in another order from now on, and have this reason in the condition of pods that lack quota."""
        self._order, self._reason = order, reason

    # What happens to pods.

    def attempt_failed(self, queued: QueuedPod, cause: Unplaced | SchedulerError) -> None:
        """An attempt has failed, and the pod is in the queue again."""
        uid = queued.pod.uid
        self._forget(uid)
        freed = self._reserving.release(uid)
        if isinstance(cause, Unplaced) and CAPACITY_SCHEDULING in cause.unschedulable_plugins:
            # One that nodes refused has space in its share, and so has one for which several plugins left no node.
            request = None if cause.refusals else request_of(self._shares, self._groups, queued.pod)
            if request is not None and self._refusal(request) is not None:
                self._file(queued, request)
            elif request is not None and len(cause.unschedulable_plugins) == 1:  # something was freed meanwhile
                self._queue.wake(uid, FREED)
            else:
                self.lacking_nodes.add(queued)
        elif isinstance(cause, Unplaced) and self._takes_back(queued.pod):
            self._might_evict[uid] = queued
        self.lacking_nodes.tried(uid)
        self._pass_on(freed)

    def pod_placed_in(self, uid: str, ref: ShareRef | None, left: Root | None) -> None:
        """A pod has a node now, and counts in a share. `left`: where it leaves something that was reserved for it."""
        self._forget(uid)
        self._pass_on(left)
        if ref is not None and (self._may_evict or self._might_evict):
            pod = self._queue.in_flight_version(uid)
            if pod is not None:
                self._let_evict(ref, pod)

    def pod_waits(self, pod: Pod) -> None:
        """A pod has a new version, which may have another selector, or need another amount."""
        uid = pod.uid
        known = self._requests.get(uid)
        if known is None:
            return
        request = request_of(self._shares, self._groups, pod)
        if request.kind == known.kind and request.need.claims == known.need.claims and not known.need.problem:
            self._requests[uid] = request
            if uid in self.pending:
                self.pending.renewed(uid)
            return
        queued = self._forget(uid)
        freed = self._reserving.release(uid)
        if queued is not None:
            self._file(queued, request)
        self._pass_on(freed)

    def pod_gone(self, pod: Pod) -> None:
        """A pod is gone."""
        self._forget(pod.uid)
        self._pass_on(self._reserving.release(pod.uid))

    def refusal(self, pod: Pod) -> ShareRefusal | None:
        """Say why a pod goes on waiting; None if there is space, or if it does not wait for its share."""
        if pod.uid not in self.pending:
            return None
        request = self._requests[pod.uid]
        if request.need.pod is not pod or request.need.pods > 1:
            request = request_of(self._shares, self._groups, pod)
        if request.need.problem or self._reserving.has_nominated:
            return self._refusal(request)
        # The queue asks about all pods that wait now and then: those of one kind get the same answer.
        kind = request.kind
        found = self._answers.get(kind)
        if found is None or found[0] != self._shares.changes:
            refusal = self._refusal(request)
            if len(self._answers) >= MAX_KINDS:
                self._answers.clear()
            found = self._answers[kind] = self._shares.changes, refusal
        return None if found[1] is None else found[1].about(pod)

    def claim_changed(self, key: ClaimKey) -> None:
        """A ResourceClaim has come, or has another number of devices."""
        roots: set[Root] = set()
        for uid in tuple(self._by_claim.get(key, ())):
            queued = self._forget(uid)
            self._reserving.release(uid)
            if queued is not None:
                request = request_of(self._shares, self._groups, queued.pod)
                self._file(queued, request)
                if not request.need.problem and (ref := self._shares.ref(request.selector)) is not None:
                    roots.add(ref.root)
        for root in roots:
            self._wake(CHANGED, root)

    def reason_of(self, cause: Unplaced) -> str:
        """Name another reason for pods that lack quota: autoscalers would add nodes for them."""
        by_plugins = CAPACITY_SCHEDULING in cause.unschedulable_plugins and not cause.refusals
        return self._reason if by_plugins or cause.refused_group_by == CAPACITY_SCHEDULING else ""

    def node_may_help(self, event: ClusterEvent) -> None:
        """Let pods be tried soon that a node may help which has come or changed."""
        if NEW_LABELS.matches(event):
            self.lacking_nodes.nodes_changed()
            self._due()
        self.evictions_may_help()

    # What happens to shares.

    def usage_changed(self, ref: ShareRef, *, is_less: bool) -> None:
        self._statuses.mark(ref)
        self._order.used(ref)
        if is_less:
            self.freed(ref)

    def tree_renewed(self, ledger: Ledger) -> None:
        self._order.renewed(ledger)

    def freed(self, ref: ShareRef) -> None:
        """Less of a share is used: others may have space, or be guaranteed what others still use."""
        if self.pending:
            self._wake(FREED, ref.root)
            self._guarantees_may_be_had = True
            self._due()

    def redeclared(self, ref: ShareRef | None) -> None:
        """Shares have changed, or which pods they are for; or only the amounts of one."""
        self.lacking_nodes.nodes_changed()
        if ref is None:
            self._may_evict.forget()
            if (self.pending or self._uncounted) and self._recounts != self._shares.recounts:
                self.restart()
        if self.pending:
            self._wake(CHANGED, None if ref is None else ref.root)
        if ref is None:
            self._statuses.mark_all()
        else:
            self._statuses.mark(ref)
        self._due()
        self.evictions_may_help()

    def evictions_may_help(self) -> None:
        """Have the first of all kinds tried soon that may evict others."""
        if self.pending:
            self._evictions_may_help = True
            self._due()

    def retry(self) -> bool:
        """Let some pods be tried that may evict others, or that nodes may help; return whether there are more."""
        are_left = self.lacking_nodes.wake_some()
        if self._evictions_may_help or (self._guarantees_may_be_had and not self._retries):
            retries = self._may_evict.all(self._kinds())
            if not self._evictions_may_help:
                retries = [each for each in retries[:MAX_KINDS] if self._is_guaranteed(each[1])]
            self._retries = retries[::-1]
            self._evictions_may_help = self._guarantees_may_be_had = False
        for _ in range(min(MAX_RETRIED, len(self._retries))):
            root, kind = self._retries.pop()
            if self._may_evict.looked_at(root, kind):
                self._try_first(kind, RETRIED)
        return are_left or bool(self._retries) or self._guarantees_may_be_had

    def restart(self) -> None:
        """Tenants or amounts are read again, or the queue has another order."""
        waiting = [*self.pending.clear(), *self._uncounted.values()]
        self._recounts = self._shares.recounts
        for each in (self._requests, self._uncounted, self._by_claim, self._answers, self._retries):
            each.clear()
        self._may_evict = MayEvict(self._shares)
        for queued in waiting:
            self._file(queued, request_of(self._shares, self._groups, queued.pod))

    def check_invariants(self) -> None:
        """All tables have the same pods. For tests and debugging."""
        self.pending.check_invariants()
        waiting = {queued.pod.uid for queued in self.pending} | self._uncounted.keys()
        assert waiting <= self._requests.keys()
        for uid in self._reserving.woken():
            assert uid in self._queue, uid
            assert uid not in self.pending, uid
        assert {uid for uids in self._by_claim.values() for uid in uids} <= self._requests.keys()

    # Internals.

    def _refusal(self, request: Request) -> ShareRefusal | None:
        return self._shares.pending_refusal(*request)

    def _file(self, queued: QueuedPod, request: Request) -> None:
        """Let a pod wait."""
        uid = queued.pod.uid
        self._requests[uid] = request
        for claim in request.need.claims:
            self._by_claim.setdefault(claim, {})[uid] = None
        if request.need.problem:
            self._uncounted[uid] = queued
            return
        self.pending.add(queued, request.kind)
        self._may_evict.add(request.kind)

    def _forget(self, uid: str) -> QueuedPod | None:
        """Have a pod wait no longer; return it if it did."""
        self.lacking_nodes.remove(uid)
        self._might_evict.pop(uid, None)
        request = self._requests.pop(uid, None)
        if request is None:
            return None
        for claim in request.need.claims:
            self._by_claim[claim].pop(uid, None)
            if not self._by_claim[claim]:
                del self._by_claim[claim]
        queued = self.pending.remove(uid)
        if queued is not None and self.pending.first(request.kind) is None:
            self._may_evict.remove(request.kind)
        return queued or self._uncounted.pop(uid, None)

    def _pass_on(self, freed: Root | None) -> None:
        """Wake others for whom there is space where a reservation was released, or where nominations have ended."""
        for root in self._reserving.take_freed() | ({freed} if freed is not None else set()):
            self._wake(FREED, root)

    def _wake(self, label: str, root: Root | None) -> None:
        """Wake those for whom there is space now in one tree of shares; None: in all."""
        heads = self.order.heads()
        for kind in self._concerned(root):
            self.pending.looked_at(kind)
            self._offer(heads, kind)
        while (candidate := heads.take()) is not None:
            kind = candidate.kind
            woken = self.pending.wake_first(kind, label, self._reserve, self._reserving.release)
            if woken is not None:
                self._let_all_in(self._requests[woken.pod.uid])
                self._offer(heads, kind)
            if self.pending.first(kind) is None:
                self._may_evict.remove(kind)

    def _let_all_in(self, request: Request) -> None:
        """Have no member of a group be pending of which one is tried: it is tried with all of them."""
        for uid in request.need.uids if request.need.pods > 1 else ():
            if uid in self.pending:
                self._forget(uid)

    def _reserve(self, queued: QueuedPod) -> bool:
        """Reserve what a pod needs, if there is space; of a group it was reserved with the first of its members."""
        uid = queued.pod.uid
        if self._reserving.is_woken(uid):
            return True
        request = self._requests[uid]
        if self._refusal(request) is not None:
            return False
        ref = self._shares.ref(request.selector)
        if ref is not None:
            self._reserving.wake(ref, request.need, by_share=self.order.by_share)
        return True

    def _offer(self, heads: Heads, kind: Kind) -> None:
        """Let the first pod of a kind take part, if there is space for it: else it would only stand in for others."""
        queued = self.pending.first(kind)
        if queued is None:
            return
        request, uid = self._requests[queued.pod.uid], queued.pod.uid
        if not self._reserving.is_woken(uid) and self._refusal(request) is not None:
            return
        ref = self._shares.ref(request.selector)
        declared = None if ref is None else ref.ledger.tree.shares.get(ref.name)
        head = Head(
            share="" if ref is None else ref.name,
            uid=uid,
            request={} if ref is None else self._shares.wanted(ref, request.need),
            share_priority=0 if declared is None else declared.priority,
            priority=queued.pod.priority,
            queued_at=queued.created,
        )
        heads.offer(Candidate(kind, None if ref is None else ref.ledger, head, self.pending.rank(queued)))

    def _let_evict(self, ref: ShareRef, pod: Pod) -> None:
        """Let pods be tried that may take back what a pod borrows which has just got a node."""
        for kind in islice(self._may_evict.of(ref.root, self._kinds()), MAX_TRIED):
            self._may_evict.looked_at(ref.root, kind)
            first = self.pending.first(kind)
            if first is not None and self._shares.may_reclaim(*self._requests[first.pod.uid], ref, pod):
                self._try_first(kind, BORROWED)
        for uid, queued in tuple(islice(self._might_evict.items(), MAX_TRIED)):
            self._might_evict[uid] = self._might_evict.pop(uid)  # others go before it at the next time
            if self._shares.may_reclaim(*request_of(self._shares, self._groups, queued.pod), ref, pod):
                self._queue.wake(uid, BORROWED)

    def _takes_back(self, pod: Pod) -> bool:
        ref = self._shares.ref(self._shares.selector_of(pod))
        return ref is not None and self._shares.takes_back(ref.key)

    def _is_guaranteed(self, kind: Kind) -> bool:
        """Say whether the share of a kind is guaranteed what its first pod asks for."""
        first = self.pending.first(kind)
        return first is not None and self._shares.is_guaranteed(*self._requests[first.pod.uid])

    def _try_first(self, kind: Kind, label: str) -> None:
        """Let the first pod of a kind be tried whether there is space for it or not."""
        first = self.pending.first(kind)
        if first is None:
            return
        request = self._requests[first.pod.uid]
        self._let_all_in(request)
        self._forget(first.pod.uid)
        if not self._queue.wake(first.pod.uid, label) and self._queue.is_refused(first.pod.uid):
            self._file(first, request)

    def _kinds(self) -> Iterator[Kind]:
        return self.pending.kinds()

    def _concerned(self, root: Root | None) -> list[Kind]:
        """Return the kinds that something freed in a tree of shares may help."""
        concerned = []
        for kind in self._kinds():
            own = self._shares.ref(kind.selector)
            if root is None or own is None or own.root == root:
                concerned.append(kind)
                if len(concerned) == MAX_KINDS:
                    break
        return concerned
