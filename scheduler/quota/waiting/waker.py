"""Wakes entries of the queue that are pending for quota: no more of them than there is space for.

When quota of a tree is freed, the heads of its kinds are woken in the order of quotas, until it is used up. The
requests of a woken pod or group are reserved until it was tried; if it fits no node, others are woken. Entries that are
about to be tried anyway, because evictions may help or their group has changed, compete with them. The head of a kind
is also tried when a pod starts that borrows its quota's guarantee, and when quota was freed and others still use the
guarantee; and when a node or a quota changes, the heads of all kinds that take back what others borrow, a few per
second.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from itertools import islice
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.listeners import PodListener
from scheduler.framework.errors import SchedulerError
from scheduler.framework.events import ClusterEvent
from scheduler.framework.queued import Entry, QueuedPod
from scheduler.queue.pending_for_quota import PendingForQuota, came_at
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.quota.adapters import AdaptedShares, QuotaListener
from scheduler.quota.devices import ClaimKey
from scheduler.quota.ledger import Ledger
from scheduler.quota.needs import Kind, Request
from scheduler.quota.order import Head
from scheduler.quota.share_orders import Candidate, Heads, ShareOrder
from scheduler.quota.share_refs import Root, ShareRef
from scheduler.quota.waiting.statuses import QuotaStatuses


class TakingBack:
    """The kinds of waiting entries that take back quota, those first that were deferred longest ago."""

    def __init__(self, shares: AdaptedShares, pending: PendingForQuota[Request]) -> None:
        self._shares = shares
        self._pending = pending
        self._by_root: dict[Root, dict[Kind, None]] | None = None
        """None: to be worked out again."""

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return self._by_root is None or bool(self._by_root)

    def forget(self) -> None:
        """Quotas have changed: others take back now."""
        self._by_root = None

    def add(self, kind: Kind) -> None:
        """There is an entry of a kind, or there will be."""
        ref = self._shares.ref(kind.selector) if kind.preempts else None
        if self._by_root is not None and ref is not None and self._shares.takes_back(ref.key):
            self._by_root.setdefault(ref.root, {}).setdefault(kind)

    def defer(self, root: Root, kind: Kind) -> None:
        """Have others go before this kind at the next time."""
        kinds = (self._by_root or {}).get(root, {})
        if kind in kinds:
            kinds[kind] = kinds.pop(kind)

    def of(self, root: Root) -> Iterator[Kind]:
        """Yield those of a tree."""
        return self._present(root, self._roots())

    def all(self) -> list[tuple[Root, Kind]]:
        """Return all, with the roots of their trees."""
        by_root = self._roots()
        return [(root, kind) for root in tuple(by_root) for kind in self._present(root, by_root)]

    def _present(self, root: Root, by_root: dict[Root, dict[Kind, None]]) -> Iterator[Kind]:
        for kind in tuple(by_root.get(root, ())):
            if self._pending.first(kind) is not None:
                yield kind
                continue
            by_root[root].pop(kind, None)
            if not by_root[root]:
                del by_root[root]

    def _roots(self) -> dict[Root, dict[Kind, None]]:
        if self._by_root is None:
            self._by_root = {}
            for kind in self._pending.kinds():
                self.add(kind)
        return self._by_root


FREED: Final = "ShareFreed"
CHANGED: Final = "ShareChange"
BORROWED: Final = "ShareBorrowed"
RETRIED: Final = "ShareRetry"
"""Events that wake entries, as metrics name them."""

MAX_KINDS: Final = 500
"""That are looked at when something is freed; of more, the others are the first at the next time."""

MAX_STUCK: Final = 16
"""Entries of a kind that other plugins keep back: after so many the rest is left alone for now."""

MAX_TRIED: Final = 8
"""Entries that may be tried when a pod starts."""

MAX_RETRIED: Final = 4
"""Kinds whose first entry is tried at a time because evictions may help it now: each may take 50 ms."""


class Waker(PodListener, QuotaListener):
    """Follows pods and quotas, and wakes waiting entries."""

    def __init__(
        self,
        shares: AdaptedShares,
        queue: SchedulingQueue,
        order: ShareOrder,
        statuses: QuotaStatuses,
        due: Callable[[], None],
    ) -> None:
        """`order`: the order in which entries are woken; `due` is called when `retry` has something to do."""
        self._shares = shares
        self._queue = queue
        self._order = order
        self._statuses = statuses
        self._due = due
        self._reason = ""
        """That of the condition of pods that lack quota."""
        self._reserving = shares.reserving
        self._pending: PendingForQuota[Request] = queue.pending_for_quota
        self._recounts = 0
        """As the shares had it when what is pending was counted."""
        self._taking_back = TakingBack(shares, self._pending)
        self._refused_by_nodes: dict[str, QueuedPod] = {}
        """UID → a pod refused by nodes alone, whose quota takes back what others borrow."""
        self._evictions_may_help = False
        """Whether something has changed, so that evictions may help pods which they did not help before."""
        self._guarantees_may_be_had = False
        """The same of pods that are guaranteed to their quotas."""
        self._retries: list[tuple[Root, Kind]] = []
        """The kinds that are still to be tried because of that, the next one last."""
        self._waiting: dict[Kind, None] = {}
        """The kinds of entries that have space as soon as others were tried."""
        self._nominated: dict[str, None] = {}
        """The UIDs of nominated pods for which nothing is kept: they may have space as soon as others are gone."""

    @property
    def order(self) -> ShareOrder:
        return self._order

    def use(self, order: ShareOrder, reason: str) -> None:
        """Wake entries in another order from now on, and have this reason in the condition of pods that lack quota."""
        self._order, self._reason = order, reason

    # What happens to pods.

    def attempt_failed(self, queued: QueuedPod, cause: Unplaced | SchedulerError) -> None:
        """An attempt has failed, and the pod is in the queue again, or will be with its group."""
        uid = queued.pod.uid
        self._refused_by_nodes.pop(uid, None)
        self._reserving.release(uid)
        if uid in self._pending:
            self._pending.rekey(uid)
            if self._pending.is_nominated(uid) and not self._reserving.kept((uid,)):
                self._nominated[uid] = None
                self._due()
        elif isinstance(cause, Unplaced) and CAPACITY_SCHEDULING in cause.unschedulable_plugins:
            # One that nodes refused has space in its quota, and so has one for which several plugins left no node.
            if not cause.refusals and len(cause.unschedulable_plugins) == 1 and queued.group is None:
                self._queue.wake(uid, FREED)  # meanwhile
        elif isinstance(cause, Unplaced) and self._takes_back(queued.pod):
            self._refused_by_nodes[uid] = queued
        self._pass_on()

    def is_lacking(self, request: Request) -> None:
        if not self._pending:
            self._recounts = self._shares.recounts
        self._taking_back.add(request.kind)
        if self._shares.waits_for_woken(*request):
            self._waiting[request.kind] = None
            self._due()

    def pod_placed_in(self, uid: str, ref: ShareRef | None) -> None:
        """A pod has a node now, and counts in a quota: others of it may take back what they were guaranteed."""
        self._refused_by_nodes.pop(uid, None)
        self._pass_on()
        if ref is not None and (self._taking_back or self._refused_by_nodes):
            pod = self._queue.in_flight.newest(uid)
            if pod is not None:
                self._let_evict(ref, pod)

    def pod_waits(self, pod: Pod) -> None:
        """A pod has a new version: it may need something else than was reserved for it."""
        if self._reserving.is_woken(pod.uid) and not self._shares.needs_what_is_reserved(pod):
            self._reserving.release(pod.uid)
            self._pass_on()

    def pod_gone(self, pod: Pod) -> None:
        self._shares.forget(pod.uid)
        self._refused_by_nodes.pop(pod.uid, None)
        self._reserving.release(pod.uid)
        self._pass_on()

    def claim_changed(self, key: ClaimKey) -> None:
        """A ResourceClaim has come, or has another number of devices."""
        for each in (keys := self._pending.of_source(key)):
            self._queue.ask_quota_again(each, CHANGED)
        if keys:
            self._wake(CHANGED, None)

    def reason_of(self, cause: Unplaced) -> str:
        """Name another reason for pods that lack quota: autoscalers would add nodes for them."""
        by_plugins = CAPACITY_SCHEDULING in cause.unschedulable_plugins and not cause.refusals
        return self._reason if by_plugins or cause.refused_group_by == CAPACITY_SCHEDULING else ""

    def node_may_help(self, event: ClusterEvent) -> None:
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
        if self._pending:
            self._wake(FREED, ref.root)
            self._guarantees_may_be_had = True
            self._due()

    def redeclared(self, ref: ShareRef | None) -> None:
        """Shares have changed, or which pods they are for; or only the amounts of one."""
        if ref is None:
            self._taking_back.forget()
            if self._pending and self._recounts != self._shares.recounts:
                self._recounts = self._shares.recounts
                for each in tuple(self._pending):
                    self._queue.ask_quota_again(each.key, CHANGED)
        if self._pending:
            self._wake(CHANGED, None if ref is None else ref.root)
        if ref is None:
            self._statuses.mark_all()
        else:
            self._statuses.mark(ref)
        self._due()
        self.evictions_may_help()

    def evictions_may_help(self) -> None:
        """Have the first of all kinds tried soon that may evict others."""
        if self._pending:
            self._evictions_may_help = True
            self._due()

    def retry_all(self) -> None:
        """Do all that a change may call for: the queue flushes none of these."""
        self._wake(RETRIED, None)
        self.evictions_may_help()

    def retry(self) -> bool:
        """Let some pods be tried that may evict others; return whether there are more."""
        if self._evictions_may_help or (self._guarantees_may_be_had and not self._retries):
            retries = self._taking_back.all()
            if not self._evictions_may_help:
                retries = [each for each in retries[:MAX_KINDS] if self._is_guaranteed(each[1])]
            self._retries = retries[::-1]
            self._evictions_may_help = self._guarantees_may_be_had = False
        for _ in range(min(MAX_RETRIED, len(self._retries))):
            root, kind = self._retries.pop()
            self._taking_back.defer(root, kind)
            self._try_first(kind, RETRIED)
        for kind in tuple(islice(self._waiting, MAX_RETRIED)):
            del self._waiting[kind]
            self._try_first(kind, RETRIED)
        for uid in tuple(islice(self._nominated, MAX_RETRIED)):
            del self._nominated[uid]
            self._queue.wake(uid, RETRIED)
        return bool(self._retries or self._waiting or self._nominated) or self._guarantees_may_be_had

    def check_invariants(self) -> None:
        """A pod that was woken is not pending any more. For tests and debugging."""
        for uid in self._reserving.woken():
            assert uid in self._queue, uid
            assert uid not in self._pending, uid

    # Internals.

    def _pass_on(self) -> None:
        """Wake others for whom there is space where reservations were released, or nominations have ended."""
        for root in self._reserving.take_freed():
            self._wake(FREED, root)

    def _wake(self, label: str, root: Root | None) -> None:
        """Wake those for whom there is space now in one tree of quotas; None: in all."""
        heads, stuck = self._order.heads(self._has_space), Counter[Hashable]()
        for key in tuple(islice(self._pending.due, MAX_KINDS)):
            self._offer(heads, key)
        concerned = self._concerned(root)
        for kind in concerned:
            self._pending.defer(kind)
            self._wake_kept(kind, label, stuck)
            self._offer(heads, kind)
        while (candidate := heads.take()) is not None:
            if self._takes_over(candidate.kind, concerned):
                self._wake(label, root)
                return
            if self._wake_first(candidate.kind, label, stuck):
                self._offer(heads, candidate.kind)

    def _wake_kept(self, kind: Kind, label: str, stuck: Counter[Hashable]) -> None:
        """Wake those of a kind for which space is kept: they take none, and a more important one may be behind them."""
        while (found := self._pending.first(kind)) is not None and self._reserving.kept(found[1].need.uids):
            if not self._wake_first(kind, label, stuck):
                break

    def _wake_first(self, kind: Hashable, label: str, stuck: Counter[Hashable]) -> bool:
        """Wake the first entry of a kind; return whether there may be space for more.

        One that will be tried anyway only gets its reservation. `stuck` counts those that other plugins keep back.
        """
        found = self._first(kind)
        if found is None or self._has_no_space(found[1]):
            return False
        entry, (selector, need) = found
        ref = self._shares.ref(selector)
        if ref is not None:
            self._reserving.wake(ref, need, by_share=self._order.by_share)
        # What is reserved is kept from others: until it was tried, not until its backoff is over.
        is_due = entry.key in self._pending.due
        if not self._queue.wake(entry.key, label, at_once=True) and not is_due:
            self._reserving.release(entry.pod.uid)
            stuck[kind] += 1
        return not is_due and stuck[kind] < MAX_STUCK

    def _takes_over(self, kind: Hashable, others: Collection[Kind]) -> bool:
        """Release what less important ones of its share were woken with if the first entry of a kind takes it over.

        Only where it borrows, and another kind is guaranteed what it asks for: that goes before it. Return whether it
        is so.
        """
        found = self._first(kind)
        behind = () if found is None else self._shares.taken_over(*found[1])  # mostly none, which is soon known
        if found is None or not behind or self._has_no_space(found[1]) or self._shares.is_guaranteed(*found[1]):
            return False
        if not any(self._is_guaranteed(each) for each in others if each != kind):
            return False
        for each in behind:
            self._reserving.release(each.pod.uid)
        return True

    def _first(self, kind: Hashable) -> tuple[Entry, Request] | None:
        """Return the first entry of a kind with what it needs, or the one of this key that will be tried without
        a reservation.
        """
        entry = self._pending.due.get(kind)
        if entry is None:
            return self._pending.first(kind)
        uid = entry.pod.uid
        if self._reserving.is_woken(uid) or self._reserving.kept((uid,)):
            return None  # its own reservation would count against it
        request = self._shares.readable_request_of(entry.pod)
        return None if request is None else (entry, request)

    def _offer(self, heads: Heads, kind: Hashable) -> None:
        """Let the first entry of a kind take part, if there is space for it: else it would only stand in for others."""
        found = self._first(kind)
        if found is None or self._has_no_space(found[1]):
            return
        entry, (selector, need) = found
        ref = self._shares.ref(selector)
        declared = None if ref is None else ref.ledger.tree.shares.get(ref.name)
        head = Head(
            share="" if ref is None else ref.name,
            uid=entry.pod.uid,
            request={} if ref is None else self._shares.wanted(ref, need),
            share_priority=0 if declared is None else declared.priority,
            priority=entry.priority,
            queued_at=came_at(entry),
        )
        heads.offer(Candidate(kind, None if ref is None else ref.ledger, head, self._pending.rank(entry)))

    def _has_space(self, candidate: Candidate) -> bool:
        found = self._first(candidate.kind)
        return found is not None and not self._has_no_space(found[1])

    def _has_no_space(self, request: Request) -> bool:
        return self._shares.pending_refusal(*request) is not None

    def _let_evict(self, ref: ShareRef, pod: Pod) -> None:
        """Let entries be tried that may take back what a pod borrows which has just got a node."""
        for kind in islice(self._taking_back.of(ref.root), MAX_TRIED):
            self._taking_back.defer(ref.root, kind)
            first = self._pending.first(kind)
            if first is not None and self._shares.may_reclaim(*first[1], ref, pod):
                self._try_first(kind, BORROWED)
        for uid, queued in tuple(islice(self._refused_by_nodes.items(), MAX_TRIED)):
            self._refused_by_nodes[uid] = self._refused_by_nodes.pop(uid)  # others go before it at the next time
            request = self._shares.readable_request_of(queued.pod)
            if request is not None and self._shares.may_reclaim(*request, ref, pod):
                self._queue.wake(uid, BORROWED)

    def _takes_back(self, pod: Pod) -> bool:
        ref = self._shares.ref(self._shares.selector_of(pod))
        return ref is not None and self._shares.takes_back(ref.key)

    def _is_guaranteed(self, kind: Kind) -> bool:
        """Say whether the quota of a kind is guaranteed what its first entry asks for."""
        first = self._pending.first(kind)
        return first is not None and self._shares.is_guaranteed(*first[1])

    def _try_first(self, kind: Kind, label: str) -> None:
        """Let the first entry of a kind that no other plugin keeps back be tried, whether there is space for it.

        None is as long as an earlier one has not been: it may wait for its backoff.
        """
        if self._pending.is_due(kind):
            return
        for _ in range(MAX_STUCK):
            first = self._pending.first(kind)
            if first is None or self._queue.wake(first[0].key, label):
                return

    def _concerned(self, root: Root | None) -> list[Kind]:
        """Return the kinds that something freed in a tree of quotas may help."""
        concerned = []
        for kind in self._pending.kinds():
            own = self._shares.ref(kind.selector)
            if root is None or own is None or own.root == root:
                concerned.append(kind)
                if len(concerned) == MAX_KINDS:
                    break
        return concerned
