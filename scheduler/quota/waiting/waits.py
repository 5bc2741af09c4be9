"""The pods that wait for space in their shares, and what wakes them: no more of them than there is space for.

    refused for its share ──► WAITING ──there is space──► PROMISED ──placed, gone, or other reason──► (none)
                              ▲  │  ▲                        │                                          ▲
                              │  │  └── refused for its share ┘                                         │
                              │  └──another borrows what it is guaranteed──► (tried) ──placed, gone─────┘
                              │  └──a node or a quota changes, or 5 minutes──► (tried)
                              └──────────────── refused for its share ───────┘

    space in its share, ──► FOR NODES ──a node comes or has other labels, shares change──► (tried)
    refused by nodes        ▲       └──placed, gone, or other reason──► (none)                │
                            └──────────────────── refused by nodes ───────────────────────────┘

Waiting pods of the same tenant and amounts make a line, in the order of the queue, by when they came: if there is no
space for the first, there is none for the others. Therefore nominated pods are ahead: for them there may be space that
is kept from the others. When something of a tree of shares is freed, the first pods of its lines are woken in their
order, as far as it goes round. The first of a line is tried, too, when a pod starts that borrows what its share is
guaranteed, and when something was freed and others still use what it is guaranteed; and when a node or a quota changes,
the first of all lines that may evict others: a few in a second. What a woken pod needs is promised to it until it was
tried; if it fits no node, others are woken. A group waits as one of its pods, for the amounts of all that it still
needs. One whose devices cannot be counted yet is in no line, and waits for its ResourceClaims.

A pod whose share is for some nodes only, and which fits none of these, does not wait for its share. A node that comes,
or has other labels, may be one of them; so may others when shares change. CapacityScheduling does not register for
nodes: the queue would ask about all pods that wait for their shares, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from scheduler.api.pod import Pod
from scheduler.api.read_only import NOTHING
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.algorithm import Unplaced
from scheduler.framework.errors import SchedulerError
from scheduler.framework.pod_groups import PodGroups
from scheduler.framework.queued import QueuedPod
from scheduler.framework.shares import ShareRefusal
from scheduler.queue.pod_heap import PodHeap
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.quota.adapter import Nominated, is_borrowing_with
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.devices import ClaimKey
from scheduler.quota.ledger import Ledger
from scheduler.quota.needs import Need
from scheduler.quota.order import Head
from scheduler.quota.places import Place, Promise, Root
from scheduler.quota.turns import ByPriority, ShareOrder, Turn, Turns
from scheduler.state.share_usage import Tenant

FREED: Final = "ShareFreed"
CHANGED: Final = "ShareChange"
BORROWED: Final = "ShareBorrowed"
RETRIED: Final = "ShareRetry"
"""Events that wake pods, as metrics name them."""

MAX_LINES: Final = 500
"""That are looked at when something is freed; of more, the others are the first at the next time."""

MAX_CLAIMING: Final = 8
"""Lines whose first pod may be tried when a pod starts."""

MAX_RETRIED: Final = 4
"""Lines whose first pod is tried in one look because evictions may help it now: each may take 50 ms."""

MAX_FOR_NODES: Final = 1_000
"""Pods that are woken in one look because nodes have changed: that takes 10 ms."""

MAX_STUCK: Final = 16
"""Pods of a line that other plugins keep back: after so many the rest of it is left alone for now."""

_Key: TypeAlias = tuple[Tenant, int, frozenset[tuple[str, int]], str]
"""Tenant, number of pods, amounts, and why they cannot be counted: empty for a line."""


class _Waiter(NamedTuple):
    tenant: Tenant
    need: Need

    @property
    def key(self) -> _Key:
        return self.tenant, self.need.pods, frozenset(self.need.requests.items()), self.need.problem


class _Promised(NamedTuple):
    key: _Key
    """That of the line where it waited."""

    promise: Promise
    need: Need


class _Promises(NamedTuple):
    """All that is promised to pods of one share and priority."""

    total: Counter[str]
    first: Pod
    borrows: bool
    """Whether the share used more with its first pod than it is guaranteed."""


class ShareWaits:
    """Knows them."""

    def __init__(self, shares: AdaptedShares, groups: PodGroups, queue: SchedulingQueue) -> None:
        self.order: ShareOrder = ByPriority()
        """The order in which pods of several shares are woken."""
        self._shares = shares
        self._groups = groups
        self._queue = queue
        self._waiters: dict[str, _Waiter] = {}
        """UID → a pod that waits."""
        self._lines: dict[_Key, PodHeap] = {}
        """The same pods; those that were looked at longest ago first."""
        self._uncounted: dict[str, tuple[QueuedPod, _Waiter]] = {}
        """UID → a pod that waits for ResourceClaims: its devices cannot be counted yet. It is in no line."""
        self._by_claim: dict[ClaimKey, dict[str, None]] = {}
        """ResourceClaim → the UIDs of pods of both kinds whose amounts it changes."""
        self._recounts = 0
        """As the shares had it when these were counted."""
        self._claiming: dict[Root, dict[_Key, None]] | None = {}
        """Root of a tree → the lines whose pods may take quota back; None: to be looked up again."""
        self._claiming_in: dict[_Key, Root] = {}
        """The same lines → these roots."""
        self._promised: dict[str, _Promised] = {}
        """UID → a pod that was woken, and not tried since."""
        self.meant: Counter[str] = Counter()
        """The UIDs of those for which these are: a pod is woken for all of its group."""
        self._promises: dict[tuple[Ledger, str, int], _Promises] = {}
        """The sums of these, by share and priority."""
        self._answers: dict[_Key, tuple[int, ShareRefusal | None]] = {}
        """Line → the last answer to whether there is space for its pods, and the number of the change before it."""
        self._is_waking = False
        self.may_evict_now = False
        """Whether something has changed, so that evictions may help pods which they did not help before."""
        self.may_claim_now = False
        """The same of pods that are guaranteed to their shares."""
        self._retries: list[tuple[Root, _Key]] = []
        """The lines that are still to be tried because of that, the next one last."""
        self.for_nodes: dict[str, QueuedPod] = {}
        """UID → a pod that has space in its share, but found no node there when it was tried last."""
        self.nodes_changed = False
        """Whether a node has come or has other labels, or shares have changed, so that these are to be tried again."""
        self._woken_next: list[str] = []
        """The UIDs of those that are still to be woken because of that, the next one last."""
        self._in_flight: set[str] = set()
        """Those of the pods that were being tried when that list was made: they may not have seen what changed."""

    def __len__(self) -> int:
        return len(self._waiters)

    def waiting(self, place: Place) -> int:
        """Return how many pods wait for a share."""
        return sum(len(heap) for key, heap in self._lines.items() if self._shares.place(key[0]) == place)

    # What happens to pods.

    def failed(self, queued: QueuedPod, cause: Unplaced | SchedulerError) -> None:
        """An attempt has failed, and the pod is in the queue again."""
        uid = queued.pod.uid
        promised = self._forget(uid)
        if isinstance(cause, Unplaced) and CAPACITY_SCHEDULING in cause.unschedulable_plugins:
            # One that nodes refused has space in its share, and so has one for which several plugins left no node.
            waiter = None if cause.refusals else self._as_waiter(queued.pod)
            if waiter is not None and self._shares.refusal_of(*waiter) is not None:
                self._file(queued, waiter)
            elif waiter is not None and len(cause.unschedulable_plugins) == 1:  # something was freed meanwhile
                self._queue.wake(uid, FREED)
            else:
                self.for_nodes[uid] = queued
                if uid in self._in_flight:
                    self._queue.wake(uid, RETRIED)
        self._in_flight.discard(uid)
        if promised is not None:
            self._wake(FREED, promised.root)

    def placed(self, uid: str, place: Place | None, amounts: Mapping[str, int]) -> None:
        """A pod has a node now, and counts in a place with what it asks for."""
        promised = self._promised.get(uid)
        if self._waiters or self.for_nodes or promised is not None or uid in self._uncounted:
            self._forget(uid)
        if promised is not None:
            used: Mapping[str, int] = NOTHING
            if place is not None and place[:2] == promised.promise[:2]:
                used = place.ledger.amounts(place.evidence, amounts, 1)
            self._pass_on(promised, used)
        if not self._lines or place is None or self._claiming == {}:
            return
        if (pod := self._queue.in_flight_version(uid)) is not None:
            self._let_claim(place, pod)

    def changed(self, pod: Pod) -> None:
        """A pod has a new version, which may have another tenant, or need another amount."""
        uid = pod.uid
        known = self._waiters.get(uid) or self._promised.get(uid)
        if known is None:
            return
        waiter = self._as_waiter(pod)
        if waiter.key == known.key and waiter.need.claims == known.need.claims:
            if uid in self._waiters:
                self._waiters[uid] = waiter
                self._lines[waiter.key].rekey(uid)
            return
        queued = self._lines[known.key].get(uid) if uid in self._waiters else None
        promised = self._forget(uid)
        if queued is not None:
            self._file(queued, waiter)
        if promised is not None:
            self._wake(FREED, promised.root)

    def gone(self, pod: Pod) -> None:
        """A pod is gone."""
        promised = self._forget(pod.uid)
        if promised is not None:
            self._wake(FREED, promised.root)

    def refusal(self, pod: Pod) -> ShareRefusal | None:
        """Say why a pod goes on waiting; None if there is space, or if it does not wait for its share."""
        waiter = self._waiters.get(pod.uid)
        if waiter is None:
            return None
        if waiter.need.pod is not pod or waiter.need.pods > 1:
            waiter = self._as_waiter(pod)
        if self._is_waking or self._shares.has_nominations:
            return self._shares.refusal_of(*waiter)
        # The queue asks about all pods that wait now and then: those of one line get the same answer.
        found = self._answers.get(waiter.key)
        if found is None or found[0] != self._shares.changes:
            refusal = self._shares.refusal_of(*waiter)
            if len(self._answers) >= MAX_LINES:
                self._answers.clear()
            found = self._answers[waiter.key] = self._shares.changes, refusal
        return None if found[1] is None else found[1].about(pod)

    def promised(self, root: Root, need: Need) -> Iterator[Nominated]:
        """Yield what is promised in a tree, as far as it counts for a need: pods that come now do not go before."""
        if not self._is_waking and not any(uid in self.meant for uid in need.uids):
            for (ledger, name, _), sums in self._promises.items():
                if ledger is root[0] and ledger.root_of(name) == root[1]:
                    yield Nominated(name, sums.first, dict(sums.total), sums.borrows, self.order.by_share)

    def claim_changed(self, key: ClaimKey) -> None:
        """A ResourceClaim has come, or has another number of devices."""
        roots: set[Root] = set()
        for uid in tuple(self._by_claim.get(key, ())):
            queued = self._uncounted[uid][0] if uid in self._uncounted else self._lines[self._waiters[uid].key].get(uid)
            self._forget(uid)
            if queued is not None:
                waiter = self._as_waiter(queued.pod)
                self._file(queued, waiter)
                if not waiter.need.problem and (place := self._shares.place(waiter.tenant)) is not None:
                    roots.add(place.root)
        for root in roots:
            self._wake(CHANGED, root)

    # What happens to shares.

    def freed(self, place: Place) -> None:
        """Less of a share is used."""
        if self._waiters:
            self._wake(FREED, place.root)

    def redeclared(self, place: Place | None) -> None:
        """Shares have changed, or which pods they are for; or only the amounts of one."""
        self.nodes_changed = True
        if place is None:
            self._claiming = None
            if (self._waiters or self._uncounted) and self._recounts != self._shares.recounts:
                self.restart()
        if self._waiters:
            self._wake(CHANGED, None if place is None else place.root)

    def retry(self) -> bool:
        """Let some pods be tried that may evict others, or that nodes may help; return whether there are more."""
        if self.nodes_changed and not self._woken_next:
            self.nodes_changed = False
            in_order = sorted(self.for_nodes.values(), key=self._rank)
            self._woken_next = [queued.pod.uid for queued in reversed(in_order)]
            self._in_flight = {queued.pod.uid for queued in self._queue.in_flight_pods()}
        for uid in self._woken_next[: -MAX_FOR_NODES - 1 : -1]:
            self._queue.wake(uid, RETRIED)
        del self._woken_next[-MAX_FOR_NODES:]
        if self.may_evict_now or (self.may_claim_now and not self._retries):
            retries = [(root, key) for root, lines in self._claims().items() for key in lines]
            if not self.may_evict_now:
                retries = [each for each in retries[:MAX_LINES] if self._is_guaranteed(each[1])]
            self._retries = retries[::-1]
            self.may_evict_now = self.may_claim_now = False
        for _ in range(min(MAX_RETRIED, len(self._retries))):
            root, key = self._retries.pop()
            if key in (lines := self._claims().get(root, {})):
                lines[key] = lines.pop(key)
                self._try_first(key, RETRIED)
        return bool(self._retries or self.may_claim_now or self._woken_next or self.nodes_changed)

    def restart(self) -> None:
        """Tenants or amounts are read again, or the queue has another order."""
        waiting = [queued for heap in self._lines.values() for queued in heap]
        waiting += [queued for queued, _ in self._uncounted.values()]
        self._recounts = self._shares.recounts
        for each in (
            self._waiters,
            self._uncounted,
            self._by_claim,
            self._lines,
            self._promised,
            self.meant,
            self._promises,
            self._answers,
            self._retries,
        ):
            each.clear()
        self._claiming = None
        for queued in waiting:
            self._file(queued, self._as_waiter(queued.pod))

    # Internals.

    def _as_waiter(self, pod: Pod) -> _Waiter:
        group = self._groups.of(pod)
        if group is not None:
            need = self._shares.need_of_group(group, self._groups.members(pod))
            if need is not None:
                return _Waiter(*need)
        return _Waiter(self._shares.tenant_of(pod), self._shares.need_of_pod(pod))

    def _file(self, queued: QueuedPod, waiter: _Waiter) -> None:
        """Let a pod wait in the line where it belongs."""
        uid, key = queued.pod.uid, waiter.key
        for claim in waiter.need.claims:
            self._by_claim.setdefault(claim, {})[uid] = None
        if waiter.need.problem:
            self._uncounted[uid] = queued, waiter
            return
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = PodHeap(self._place_in_line)
            if self._claiming is not None:
                self._note_claim(self._claiming, key)
        line.add(queued)
        self._waiters[uid] = waiter

    def _place_in_line(self, queued: QueuedPod) -> tuple[bool, Any]:
        return not self._queue.is_nominated(queued.pod.uid), self._rank(queued)

    def _rank(self, queued: QueuedPod) -> Any:
        """Return the order of the queue, by when the pod came, however often it was tried since."""
        return self._queue.sort_key(QueuedPod(queued.pod, queued.created))

    def _forget(self, uid: str) -> Promise | None:
        """Forget a pod; return what was promised to it."""
        self.for_nodes.pop(uid, None)
        waiter = self._waiters.pop(uid, None)
        if waiter is not None:
            line = self._lines[waiter.key]
            line.remove(uid)
            if not line:
                self._end_line(waiter.key)
        elif uid in self._uncounted:
            _, waiter = self._uncounted.pop(uid)
        for claim in () if waiter is None else waiter.need.claims:
            del self._by_claim[claim][uid]
            if not self._by_claim[claim]:
                del self._by_claim[claim]
        promised = self._promised.pop(uid, None)
        if promised is None:
            return None
        self._take_back(promised)
        return promised.promise

    def _end_line(self, key: _Key) -> None:
        del self._lines[key]
        root = self._claiming_in.pop(key, None)
        if root is not None and self._claiming is not None:
            del self._claiming[root][key]
            if not self._claiming[root]:
                del self._claiming[root]

    def _note_claim(self, claiming: dict[Root, dict[_Key, None]], key: _Key) -> None:
        """Note where a line may take quota back, if it may."""
        place = self._shares.place(key[0])
        if place is not None and self._shares.takes_back(place.key):
            claiming.setdefault(place.root, {})[key] = None
            self._claiming_in[key] = place.root

    def _let_claim(self, place: Place, pod: Pod) -> None:
        """Let the first pods of lines be tried that may take back what a pod borrows which has just got a node."""
        lines = self._claims().get(place.root, {})
        for key in list(islice(lines, MAX_CLAIMING)):
            lines[key] = lines.pop(key)
            first = self._lines[key].peek()
            if first is not None and self._shares.may_reclaim(*self._waiters[first.pod.uid], place, pod):
                self._try_first(key, BORROWED)

    def _claims(self) -> dict[Root, dict[_Key, None]]:
        """Return the lines whose pods may take quota back; those that were looked at longest ago first."""
        if self._claiming is None:
            self._shares.refresh()
            self._claiming = {}
            self._claiming_in.clear()
            for key in self._lines:
                self._note_claim(self._claiming, key)
        return self._claiming

    def _is_guaranteed(self, key: _Key) -> bool:
        """Say whether the share of a line is guaranteed what its first pod asks for."""
        first = self._lines[key].peek()
        return first is not None and self._shares.is_guaranteed(*self._waiters[first.pod.uid])

    def _try_first(self, key: _Key, label: str) -> None:
        """Let the first pod of a line be tried whether there is space for it or not."""
        first = self._lines[key].peek()
        if first is None:
            return
        uid = first.pod.uid
        waiter = self._waiters[uid]
        self._forget(uid)
        if not self._queue.wake(uid, label) and self._queue.is_refused(uid):
            self._file(first, waiter)

    def _promise(self, uid: str, promised: _Promised) -> None:
        """Promise amounts to a pod that is woken, instead of what it was promised before."""
        if (before := self._promised.pop(uid, None)) is not None:
            self._take_back(before)
        (ledger, name, amounts), pod = promised.promise, promised.need.pod
        sums = self._promises.get((ledger, name, pod.priority))
        if sums is None:
            borrows = is_borrowing_with(ledger.tree, name, amounts)
            sums = self._promises[ledger, name, pod.priority] = _Promises(Counter(), pod, borrows)
        sums.total.update(amounts)
        self._promised[uid] = promised
        self.meant.update(promised.need.uids)
        self._shares.changes += 1

    def _pass_on(self, promised: _Promised, used: Mapping[str, int]) -> None:
        """Promise to others what a pod has not used: first to its group, as long as that is being placed."""
        ledger, name, amounts = promised.promise
        left = {each: amount - used.get(each, 0) for each, amount in amounts.items() if amount > used.get(each, 0)}
        if not left:
            return
        need, heir = promised.need, None
        if need.pods > 1:
            heir = next(iter(self._groups.members(need.pod).unscheduled), None)
        if heir is not None and heir.uid in need.uids and self._queue.in_flight_version(heir.uid) is not None:
            need = need._replace(pod=heir, pods=need.pods - 1)
            self._promise(heir.uid, promised._replace(promise=Promise(ledger, name, left), need=need))
        else:
            self._wake(FREED, promised.promise.root)

    def _take_back(self, promised: _Promised) -> None:
        ledger, name, amounts = promised.promise
        share = ledger, name, promised.need.pod.priority
        if (sums := self._promises.get(share)) is not None:
            sums.total.subtract(amounts)
            if not any(sums.total.values()):
                del self._promises[share]
        for uid in promised.need.uids:
            self.meant[uid] -= 1
            if not self.meant[uid]:
                del self.meant[uid]
        self._shares.changes += 1

    def _wake(self, label: str, root: "Root | None") -> None:
        """Wake those for whom there is space now in one tree of shares; None: in all."""
        turns = self.order.turns()
        promises = [Promise(ledger, name, dict(sums.total)) for (ledger, name, _), sums in self._promises.items()]
        with self._shares.reserving(promises) as reserve, self._waking():
            for key in self._concerned(root):
                self._lines[key] = self._lines.pop(key)
                self._offer(turns, key)
            while (turn := turns.take()) is not None:
                key = turn.line
                woken = self._wake_first(key, label)
                if woken is None:
                    continue
                waiter = self._waiters[woken]
                promise = self._shares.promise(*waiter)
                self._forget(woken)
                if promise is not None:
                    self._promise(woken, _Promised(key, promise, waiter.need))
                    reserve(promise)
                self._offer(turns, key)

    def _offer(self, turns: Turns, key: _Key) -> None:
        """Let the first pod of a line take part, if there is space for it: else it would only stand in for others."""
        queued = self._lines[key].peek() if key in self._lines else None
        if queued is None:
            return
        uid, (tenant, need) = queued.pod.uid, self._waiters[queued.pod.uid]
        if self._shares.refusal_of(tenant, need) is not None:
            return
        promise = self._shares.promise(tenant, need)
        ledger, share, amounts = (None, "", {}) if promise is None else promise
        declared = None if ledger is None else ledger.tree.shares.get(share)
        head = Head(
            share=share,
            uid=uid,
            request=amounts,
            share_priority=0 if declared is None else declared.priority,
            priority=queued.pod.priority,
            queued_at=queued.created,
        )
        turns.offer(Turn(key, ledger, head, self._rank(queued)))

    @contextmanager
    def _waking(self) -> Iterator[None]:
        """Answer with what is promised within a `with` block."""
        self._is_waking = True
        try:
            yield
        finally:
            self._is_waking = False

    def _wake_first(self, key: _Key, label: str) -> str | None:
        """Wake the first of a line; return its UID, None if there is no space for it, or others keep all back."""
        line, stuck, woken = self._lines[key], list[QueuedPod](), None
        while woken is None and len(stuck) < MAX_STUCK and (queued := line.peek()) is not None:
            uid = queued.pod.uid
            if self._shares.refusal_of(*self._waiters[uid]) is not None:
                break
            if self._queue.wake(uid, label) or not self._queue.is_refused(uid):  # it is to be tried
                woken = uid
            else:
                line.remove(uid)
                stuck.append(queued)
        for each in stuck:
            line.add(each)
        return woken

    def _concerned(self, root: "Root | None") -> list[_Key]:
        """Return the lines that something freed in a tree of shares may help."""
        concerned = []
        for key in self._lines:
            own = self._shares.place(key[0])
            if root is None or own is None or own.root == root:
                concerned.append(key)
                if len(concerned) == MAX_LINES:
                    break
        return concerned
