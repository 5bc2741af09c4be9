"""Another configuration while pods wait, wherever they do: none is lost, and none is kept that is not ours any more."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.framework.errors import BindRejected
from scheduler.framework.queued import QueuedPod
from scheduler.testing import a_node
from tests.fakes import Unschedulable, settle
from tests.unit.assembly.test_reloading import REGISTRY, LastName, a_profile, a_waiting_pod
from tests.unit.assembly.test_reloading_extenders import WithExtenders, an_entry
from tests.unit.cycle.fakes import newer

POD = "default/web"


class Slow(fw.PreBindPlugin):
    """Prepares the bindings of pods that ask for it until a test lets it go on."""

    name: ClassVar[str] = "Slow"
    goes_on: ClassVar[asyncio.Event]

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        return None if pod.labels.get("slow") else fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        await self.goes_on.wait()
        return fw.unschedulable("not prepared") if pod.labels["slow"] == "in vain" else None


class ByLength(fw.QueueSortPlugin):
    """Pods of short names first; says nothing any more once it was stopped."""

    name: ClassVar[str] = "ByLength"

    def start(self, handle: fw.Handle) -> None:
        self.lengths: dict[str, int] | None = {}

    def stop(self) -> None:
        self.lengths = None

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        assert self.lengths is not None, "it was stopped"
        first, second = (self.lengths.setdefault(each.pod.name, len(each.pod.name)) for each in (a, b))
        return first < second


class Waiting(WithExtenders):
    """A scheduler with the profiles `one` and `two`, of which the pods of the first are looked at."""

    def __init__(self, *extenders: dict[str, Any], room: int = 1, refuses: bool = False) -> None:
        Slow.goes_on = asyncio.Event()
        self.extenders = list(extenders)
        self.room = room
        super().__init__(*extenders)
        self.registry = {**REGISTRY, "Slow": Slow, "ByLength": ByLength}
        self.popped: QueuedPod | None = None
        self.refuses = refuses

    def profiles(self, tone: str = "first") -> list[dict[str, Any]]:
        return [a_profile("one", "Slow", "Keeping", tone=tone, refuses=self.refuses), a_profile("two")]

    async def put(self, *profiles: dict[str, Any]) -> None:
        """Put these profiles to work."""
        await self.use(*self.extenders, profiles=list(profiles), loadmaster={"podsAtExtenders": self.room})
        assert self.reloader.problems == ()

    async def remove(self) -> None:
        await self.put(a_profile("two"))

    async def finish(self) -> None:
        """Let all that is under way come to its end, and take the old plugins away."""
        Slow.goes_on.set()
        for extender in self.connecting.made:
            while extender.hangs and extender.waiting:
                await extender.answer()
        for framework in self.engine.frameworks.values():
            for waiting in framework.handle.waiting_pods:
                waiting.reject("Keeping", "no longer") if "refuse" in waiting.pod.labels else waiting.allow("Keeping")
        if self.popped is not None:
            self.engine.loop.schedule_one(self.popped)
        await settle()
        self.under_test.world.answer_bindings(self.failure)
        await settle()
        await self.reloader.look()

    failure: BaseException | None = None
    """What bindings under way fail with."""


async def active(at: Waiting) -> None:
    at.under_test.see(a_waiting_pod("web"))
    assert at.under_test.where(POD) == "active"


async def unschedulable(at: Waiting) -> None:
    at.under_test.see(a_node("n0", unschedulable=True), a_node("n1", unschedulable=True))
    await at.schedule("web")
    assert at.under_test.where(POD) == "unschedulable"


async def backoff(at: Waiting) -> None:
    await unschedulable(at)
    at.under_test.see(a_node("n0"))
    assert at.under_test.where(POD) == "backoff"


async def backoff_after_an_error(at: Waiting) -> None:
    at.under_test.world.refusal = OSError("gone")
    await at.schedule("web")
    at.under_test.world.refusal = None
    assert at.under_test.where(POD) == "backoff"


async def gated(at: Waiting) -> None:
    at.refuses = True
    await at.put(*at.profiles("gating"))
    at.under_test.see(a_waiting_pod("web"))
    assert at.under_test.where(POD) == "gated"


async def in_flight(at: Waiting) -> None:
    at.under_test.see(a_waiting_pod("web"))
    at.popped = at.under_test.pop()
    assert at.under_test.where(POD) == "in flight"


async def on_hold_to_be_allowed(at: Waiting) -> None:
    await at.schedule("web", labels={"wait": "yes"})
    assert len(list(at.engine.frameworks["one"].handle.waiting_pods)) == 1


async def on_hold_to_be_refused(at: Waiting) -> None:
    await at.schedule("web", labels={"wait": "yes", "refuse": "yes"})
    assert len(list(at.engine.frameworks["one"].handle.waiting_pods)) == 1


async def prepared(at: Waiting) -> None:
    await at.schedule("web", labels={"slow": "yes"})
    assert at.engine.loop.is_binding(POD)


async def prepared_in_vain(at: Waiting) -> None:
    await at.schedule("web", labels={"slow": "in vain"})
    assert at.engine.loop.is_binding(POD)


async def binding(at: Waiting) -> None:
    at.under_test.world.hangs = True
    await at.schedule("web")
    assert POD in at.under_test.world.hanging


async def binding_to_fail(at: Waiting) -> None:
    await binding(at)
    at.failure = BindRejected("refused")


async def asking_an_extender(at: Waiting) -> None:
    at.connecting.hangs = True
    at.extenders = [an_entry()]
    await at.put(*at.profiles())
    await at.schedule("web")
    assert len(at.connecting.made[0].asked) == 1


async def held_for_an_extender(at: Waiting) -> None:
    at.connecting.hangs = True
    at.extenders = [an_entry()]
    await at.put(*at.profiles())
    await at.schedule("before")
    await at.schedule("web")
    assert [question["Pod"]["metadata"]["name"] for _, question in at.connecting.made[0].asked] == ["before"]
    assert at.under_test.where(POD) == "active"


Place = Callable[[Waiting], Awaitable[None]]

WAITS: list[Place] = [active, unschedulable, backoff, backoff_after_an_error, gated, held_for_an_extender]
GOES_ON: list[Place] = [on_hold_to_be_allowed, prepared, binding]
FAILS: list[Place] = [on_hold_to_be_refused, prepared_in_vain, binding_to_fail]
IS_TRIED: list[Place] = [in_flight, asking_an_extender]
EVERYWHERE = WAITS + GOES_ON + FAILS + IS_TRIED


async def waiting_at(place: Place) -> Waiting:
    """A scheduler with a pod in this place."""
    at = Waiting()
    await at.put(*at.profiles())
    await place(at)
    at.under_test.check()
    return at


@pytest.mark.parametrize("place", EVERYWHERE)
async def test_a_pod_whose_profile_goes_is_left_alone_at_the_latest_when_its_binding_has_ended(place: Place) -> None:
    at = await waiting_at(place)
    under_test = at.under_test

    await at.remove()
    under_test.check()
    conditions, notes = under_test.world.written(Unschedulable), under_test.world.notes()
    await at.finish()

    assert under_test.where(POD) == ""
    assert (POD in under_test.world.bound) == (place in GOES_ON)
    assert at.engine.cache.is_assumed(POD) == (place in GOES_ON)
    assert under_test.world.written(Unschedulable) == conditions
    assert under_test.world.notes() == notes
    assert list(under_test.nominator.by_node()) == []
    assert not at.engine.profiles.is_retiring


async def test_a_pod_on_hold_whose_profile_goes_is_counted_once_and_makes_room_when_it_is_deleted() -> None:
    at = await waiting_at(on_hold_to_be_allowed)
    node = at.engine.cache.get(POD)
    assert node is not None

    await at.remove()
    at.under_test.see(newer(a_waiting_pod("web", wait="yes"), nominated_node_name=node.node_name))
    nominated = list(at.under_test.nominator.by_node())
    at.under_test.handlers.pod_deleted(a_waiting_pod("web"))
    await at.finish()

    assert nominated == []
    assert at.engine.cache.get(POD) is None
    assert POD not in at.under_test.world.bound
    assert not at.engine.profiles.is_retiring


@pytest.mark.parametrize("place", EVERYWHERE)
async def test_a_pod_whose_profile_goes_and_comes_back_is_placed(place: Place) -> None:
    at = await waiting_at(place)
    at.refuses = False

    await at.remove()
    await at.put(*at.profiles("second"))
    at.under_test.check()
    await at.finish()
    at.under_test.see(a_node("n0"), a_node("n1"))
    at.under_test.wait(600)
    await at.under_test.schedule()
    await at.finish()

    is_refused = place is on_hold_to_be_refused and at.under_test.where(POD) == "unschedulable"
    assert POD in at.under_test.world.bound or at.under_test.where(POD) in ("active", "backoff") or is_refused
    assert at.under_test.world.doubled == []
    assert not at.engine.profiles.is_retiring


@pytest.mark.parametrize("place", EVERYWHERE)
async def test_a_pod_whose_profile_changes_goes_on_from_where_it_is(place: Place) -> None:
    at = await waiting_at(place)
    at.refuses = False

    await at.put(*at.profiles("second"))
    at.under_test.check()
    await at.finish()

    is_bound = POD in at.under_test.world.bound
    assert is_bound or at.under_test.where(POD) in ("active", "backoff", "unschedulable")
    assert is_bound or place not in GOES_ON
    assert not at.engine.profiles.is_retiring


@pytest.mark.parametrize("place", [*WAITS, in_flight])
async def test_a_pod_is_in_its_place_when_another_order_comes(place: Place) -> None:
    at = await waiting_at(place)
    at.refuses = False
    sort = {"queueSort": {"enabled": [{"name": LastName.name}], "disabled": [{"name": "*"}]}}
    profiles = at.profiles()
    for profile in profiles:
        profile["plugins"] |= sort

    await at.put(*profiles)
    at.under_test.see(a_waiting_pod("a"), a_waiting_pod("z"))
    await at.finish()
    at.under_test.check()

    popped = []
    while (queued := at.engine.queue.pop_nowait()) is not None:
        popped.append(queued.pod.name)
    assert "z" in popped
    assert "a" in popped
    assert popped.index("z") < popped.index("a")


async def test_an_order_of_ones_own_is_not_asked_once_it_was_stopped(caplog: pytest.LogCaptureFixture) -> None:
    at = Waiting()
    sort = {"queueSort": {"enabled": [{"name": "ByLength"}], "disabled": [{"name": "*"}]}}

    def profiles(*plugins: str) -> list[dict[str, Any]]:
        made = [a_profile("one", *plugins), a_profile("two")]
        for profile in made:
            profile["plugins"] |= sort
        return made

    await at.put(*profiles())
    at.under_test.see(*(a_waiting_pod("x" * number) for number in (5, 1, 4, 2, 3)))

    await at.put(*profiles("Keeping"))
    await at.reloader.look()
    at.under_test.see(a_waiting_pod("x" * 6), a_waiting_pod("x" * 7))

    assert not at.engine.profiles.is_retiring
    assert [len(at.under_test.pop().pod.name) for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    assert "it was stopped" not in caplog.text
