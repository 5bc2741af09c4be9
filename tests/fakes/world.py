"""A clock and an API server in memory."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.cycle.writers import Writers
from scheduler.framework.errors import BindRejected
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.testing import Event as Event

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine; one that hangs fails."""

    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await coroutine

    return asyncio.run(bounded())


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class FakeClock:
    def __init__(self, time: float = 1000.25) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The condition of a pod that was not placed; `nominated` is what its nomination becomes, None for no change."""

    pod: str
    reason: str
    message: str
    nominated: str | None


@dataclass(frozen=True, slots=True)
class Nomination:
    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class NominationCleared:
    pod: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Nothing more is to be written to this pod's status."""

    pod: str


@dataclass(frozen=True, slots=True)
class Eviction:
    victim: str
    preemptor: str
    message: str


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """An event of a group of pods."""

    of: str
    """Kind and name of the group's owner; without one, its namespace and name."""

    member: str
    type: str
    reason: str
    note: str


Write = Unschedulable | Nomination | NominationCleared | Forgotten | Eviction
W = TypeVar("W", bound=Write)


@dataclass
class FakeWorld:
    """The API server as the cycle sees it: it does what it is asked at once, unless a test says otherwise."""

    refusal: BaseException | None = None
    """What bindings fail with."""

    retried: str = ""
    """What a binding says went wrong before it went well."""

    hangs: bool = False
    """Whether bindings wait until they are answered."""

    exists: Callable[[str], bool] = lambda uid: True
    """Whether there is a pod of this UID to bind: if not, the refusal comes at once."""

    delete: Callable[[str], None] = lambda uid: None
    """Deletes the pod of this UID, as the API server does with a victim."""

    eviction_refusal: Exception | None = None
    """What evictions fail with."""

    evictions_may_end: asyncio.Event | None = None
    """None: at once."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    """UID and node of every binding asked for."""

    bound: dict[str, str] = field(default_factory=dict)
    """UID → node of the bindings that succeeded."""

    hanging: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    """UID → a binding that waits for its answer."""

    doubled: list[str] = field(default_factory=list)
    """Pods for which a binding was asked for while another one was under way."""

    events: list[Event] = field(default_factory=list)
    group_events: list[GroupEvent] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    """What else was written, in order."""

    @property
    def writers(self) -> Writers:
        return Writers(self, self, self, self, group_events=self)

    def written(self, kind: type[W]) -> list[W]:
        """The writes of one kind."""
        return [write for write in self.writes if isinstance(write, kind)]

    def notes(self, reason: str = "FailedScheduling") -> list[str]:
        """The texts of the events of one kind."""
        return [event.note for event in self.events if event.reason == reason]

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None] = lambda: None) -> str:
        self.asked.append((pod.uid, node_name))
        if not self.exists(pod.uid):
            raise BindRejected("not found")
        check()
        if self.hangs:
            if pod.uid in self.hanging:
                self.doubled.append(str(pod))
            waits = self.hanging[pod.uid] = asyncio.get_running_loop().create_future()
            await waits
        elif self.refusal is not None:
            raise self.refusal
        assert pod.uid not in self.bound, f"{pod} is bound twice"
        self.bound[pod.uid] = node_name
        return self.retried

    async def answer_binding(self, uid: str, refusal: BaseException | None = None) -> None:
        """Let a hanging binding succeed, or fail with `refusal`, and wait for what follows."""
        self._answer(uid, refusal)
        await settle()

    def answer_bindings(self, refusal: BaseException | None = None) -> None:
        """Let all hanging bindings succeed, or fail with `refusal`; those that follow do not hang."""
        self.hangs = False
        for uid in list(self.hanging):
            self._answer(uid, refusal)

    def _answer(self, uid: str, refusal: BaseException | None) -> None:
        waits = self.hanging.pop(uid)
        if refusal is None:
            waits.set_result(None)
        else:
            waits.set_exception(refusal)

    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None:
        of = f"{group.owner.kind} {group.owner.name}" if group.owner else str(group)
        self.group_events.append(GroupEvent(of, str(member), type_, reason, note))

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append(Event(str(pod), type_, reason, action, note))

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.writes.append(Unschedulable(str(pod), reason, message, nominated_node_name))

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.writes.append(Nomination(str(pod), node_name))

    def forget(self, pod: Pod) -> None:
        self.writes.append(Forgotten(str(pod)))

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Delete the victim, as far as the API server goes; a test lets the watch report it."""
        self.writes.append(Eviction(str(victim), str(preemptor), message))
        if self.evictions_may_end is not None:
            await self.evictions_may_end.wait()
        if self.eviction_refusal is not None:
            raise self.eviction_refusal
        was_there = self.exists(victim.uid)
        if was_there:
            self.delete(victim.uid)
        return was_there

    def clear_nomination(self, pod: Pod) -> None:
        self.writes.append(NominationCleared(str(pod)))
