"""The scheduler of the test kit runs every extension point as the scheduler in a cluster does, in virtual time."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError
from scheduler.runtime.profile import POINTS
from scheduler.runtime.profile_spec import Plugins, ProfileSpec
from scheduler.testing import Outcome, Scheduler, a_node, a_pod, a_scheduler, an_object
from scheduler.testing.api_server import ApiServer
from scheduler.testing.handles import profile_of

TEAMS = "teams.v1.example.com"


def noting(point: str, answer: Any = None) -> Any:
    """A method that writes into `asked` that it was called."""

    def method(self: Any, *_: object) -> Any:
        self.asked.append(point)
        return answer

    return method


def noting_meanwhile(point: str) -> Any:
    """The same as a coroutine."""

    async def method(self: Any, *_: object) -> None:
        self.asked.append(point)

    return method


class Hold(fw.PermitPlugin):
    """Holds each pod for a minute, until a test says otherwise."""

    name = "Hold"
    seconds = 60.0

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
        return fw.PermitWait(self.seconds)


class Seats(fw.ReservePlugin):
    """Remembers who has a seat."""

    name = "Seats"

    def __init__(self) -> None:
        self.taken: list[str] = []

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        if len(self.taken) == 2:
            return fw.unschedulable("no seat is free")
        self.taken.append(pod.name)
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        if pod.name in self.taken:
            self.taken.remove(pod.name)


def test_a_pod_on_hold_is_bound_when_it_is_allowed() -> None:
    hold, pod = Hold(), a_pod()
    with a_scheduler(hold, nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)
        assert scheduler.outcome(pod) == Outcome(held_by=("Hold",), nominated_node="a")

        waiting = hold.handle.waiting_pods.get(pod.uid)
        assert waiting is not None
        waiting.allow("Hold")
        scheduler.advance(0)

        assert scheduler.outcome(pod).node == "a"


def test_a_pod_on_hold_is_refused_and_unreserved_when_its_time_is_over() -> None:
    seats, pod = Seats(), a_pod()
    with a_scheduler(seats, Hold(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)
        scheduler.advance(59.9)
        assert scheduler.outcome(pod).held_by == ("Hold",)
        assert seats.taken == ["pod"]

        scheduler.advance(0.2)

        assert scheduler.outcome(pod).held_by == ()
        assert "rejected due to timeout after waiting 1m0s at plugin Hold" in scheduler.outcome(pod).message
        assert seats.taken == []


def test_a_pod_that_was_refused_is_tried_again_after_its_backoff() -> None:
    class First(fw.ReservePlugin):
        """Refuses the first attempt."""

        name = "First"
        attempts = 0

        def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
            self.attempts += 1
            if self.attempts == 1:
                raise LookupError("not yet")
            return None

        def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
            """Nothing is kept."""

    pod = a_pod()
    with a_scheduler(First(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)
        assert scheduler.outcome(pod) == Outcome(message='running Reserve plugin "First": LookupError: not yet')

        scheduler.advance(3)

        assert scheduler.outcome(pod) == Outcome(node="a")


def test_a_deleted_pod_gives_its_seat_back_and_an_event_wakes_the_next() -> None:
    seats, pods = Seats(), [a_pod(name) for name in ("one", "two", "three")]
    with a_scheduler(seats, Hold(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(*pods)
        assert seats.taken == ["one", "two"]
        assert scheduler.outcome(pods[2]).message == "0/1 nodes are available: 1 no seat is free."

        scheduler.delete(pods[0])
        scheduler.advance(2)

        assert seats.taken == ["two", "three"]


class Shortest(fw.QueueSortPlugin):
    """Tries pods with short names first."""

    name = "Shortest"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return len(a.pod.name) < len(b.pod.name)


def test_pods_that_come_at_once_are_tried_in_the_order_of_queue_sort() -> None:
    with a_scheduler(Shortest(), nodes=[a_node()]) as scheduler:
        scheduler.create(a_pod("three"), a_pod("a"), a_pod("of"))

        assert [pod.name for pod in scheduler.bound] == ["a", "of", "three"]


class Quota(fw.PreEnqueuePlugin):
    """Lets the pods of a team into the queue once there is one."""

    name = "Quota"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return (fw.on(TEAMS, fw.Action.ADD, hint=self.is_its_team),)

    def is_its_team(self, pod: fw.Pod, old: fw.Unstructured | None, new: fw.Unstructured | None) -> fw.QueueingHint:
        is_ours = new is not None and new.name == pod.labels.get("team")
        return fw.QueueingHint.QUEUE if is_ours else fw.QueueingHint.SKIP

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        found = self.handle.objects.get(TEAMS, pod.labels["team"])
        return None if found else fw.unresolvable("there is no such team")


def test_a_gated_pod_is_let_in_by_the_event_that_its_hint_accepts() -> None:
    pod = a_pod(labels={"team": "shop"})
    with a_scheduler(Quota(), nodes=[a_node("a")], objects={TEAMS: [an_object("bank")]}) as scheduler:
        scheduler.create(pod)
        assert scheduler.outcome(pod).gated_by == "Quota"

        scheduler.put(TEAMS, an_object("farm"))
        assert scheduler.outcome(pod).gated_by == "Quota"
        scheduler.put(TEAMS, an_object("shop"))

        assert scheduler.outcome(pod) == Outcome(node="a")


class Robber(fw.FilterPlugin, fw.PostFilterPlugin):
    """Allows one pod a node, and evicts it for a pod with a priority."""

    name = "Robber"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self.jobs = handle.tasks.jobs("robbery", 10)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable("taken") if node.pods else None

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        if not pod.priority:
            return None, fw.unschedulable("not important")
        name = next(iter(node_to_status))
        (victim,) = (each for each in self.handle.pods.values() if each.node_name == name)
        self.jobs.start("evict", self.evict(victim, pod))
        return fw.PostFilterResult(name, (victim,)), None

    async def evict(self, victim: fw.Pod, pod: fw.Pod) -> None:
        await self.handle.evictor.evict(victim, pod, "make room")


def test_post_filter_nominates_a_node_and_the_pod_gets_it_when_the_victim_is_gone() -> None:
    victim, king, beggar = a_pod("victim", node_name="a"), a_pod("king", priority=9), a_pod("beggar")
    with a_scheduler(Robber(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(victim, beggar)
        assert "not important" in scheduler.outcome(beggar).message
        assert scheduler.evicted == []

        scheduler.create(king)

        assert scheduler.evicted == [victim]
        assert scheduler.outcome(king).node == "a"


class Steps(fw.ReservePlugin, fw.PermitPlugin, fw.PreBindPlugin, fw.BindPlugin, fw.PostBindPlugin):
    """Writes down what it is asked, and takes a while to prepare."""

    name = "Steps"
    reserve, unreserve, permit = noting("reserve"), noting("unreserve"), noting("permit")
    post_bind = noting_meanwhile("post_bind")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self.asked.append("pre_bind")
        await asyncio.sleep(30)
        return fw.unschedulable("the volume is broken") if pod.name == "broken" else None

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.asked.append("bind")
        await self.handle.binder.bind(pod, node_name)


def test_the_binding_cycle_is_run_in_order_and_what_takes_time_takes_virtual_time() -> None:
    steps, pod = Steps(), a_pod()
    with a_scheduler(steps, nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)
        assert steps.asked == ["reserve", "permit", "pre_bind"]

        scheduler.advance(30)

        assert steps.asked == ["reserve", "permit", "pre_bind", "bind", "post_bind"]
        assert [(each.reason, each.note) for each in scheduler.events] == [
            ("Scheduled", "Successfully assigned default/pod to a")
        ]


def test_a_pod_that_pre_bind_refuses_is_unreserved() -> None:
    steps, pod = Steps(), a_pod("broken")
    with a_scheduler(steps, nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)
        scheduler.advance(30.5)

        assert steps.asked[:4] == ["reserve", "permit", "pre_bind", "unreserve"]
        assert scheduler.outcome(pod).message == "the volume is broken"


class Needy(fw.FilterPlugin, fw.PermitPlugin):
    """Reads what only raw pods have."""

    name = "Needy"
    reads_raw_pods = True

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None if pod.annotations.get("example.com/tier") == "gold" else fw.unschedulable("of no tier")

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        return fw.unschedulable("it has a hostname") if "hostname" in pod.raw["spec"] else None


def test_a_plugin_that_reads_raw_pods_has_them_and_one_that_forgot_to_say_so_is_told() -> None:
    class Forgetful(Needy):
        name = "Forgetful"
        reads_raw_pods = False

    gold, lead = a_pod("gold", annotations={"example.com/tier": "gold"}), a_pod("lead")
    with a_scheduler(Needy(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(gold, lead)

        assert scheduler.outcome(gold).node == "a"
        assert "of no tier" in scheduler.outcome(lead).message
    with a_scheduler(Forgetful(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(gold)

        assert "add `reads_raw_pods" in scheduler.outcome(gold).message


def test_an_error_of_a_plugin_is_what_its_owner_would_read() -> None:
    class Broken(Hold):
        def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
            raise KeyError("nvidia.com/gpu")

    pod = a_pod()
    with a_scheduler(Broken(), nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)

        assert scheduler.outcome(pod).message == "running Permit plugin \"Hold\": KeyError: 'nvidia.com/gpu'"


def test_a_plugin_that_does_not_start_is_an_error_and_so_are_objects_that_none_names() -> None:
    class Broken(Hold):
        def start(self, handle: fw.Handle) -> None:
            raise OSError("no such file")

    with pytest.raises(ConfigError, match="'Hold' did not start: OSError: no such file"), a_scheduler(Broken()):
        pass
    with a_scheduler(Hold()) as scheduler, pytest.raises(LookupError, match="no plugin names"):
        scheduler.put(TEAMS, an_object("shop"))


def test_what_a_plugin_repeats_in_the_background_is_repeated_in_virtual_time() -> None:
    class Poller(Hold):
        name = "Poller"
        rounds = 0

        def start(self, handle: fw.Handle) -> None:
            self.repetition = handle.tasks.repeat("polling", 5, 10, self.poll)

        async def poll(self) -> None:
            self.rounds += 1

        def stop(self) -> None:
            self.repetition.stop()

    poller = Poller()
    with a_scheduler(poller) as scheduler:
        scheduler.advance(95)

    assert poller.rounds == 10


class Everywhere(*(kinds[0] for kinds in POINTS.values())):  # type: ignore[misc]
    """Notes each extension point at which it is asked."""

    name = "Everywhere"
    pre_enqueue, pre_filter, pre_score = noting("pre_enqueue"), noting("pre_filter"), noting("pre_score")
    post_filter, score = noting("post_filter", (None, fw.unschedulable("no"))), noting("score", 0)
    reserve, unreserve, permit = noting("reserve"), noting("reserve"), noting("permit")
    pre_bind, post_bind = noting_meanwhile("pre_bind"), noting_meanwhile("post_bind")
    score_placement, evict_for_pod_group = noting("placement_score", 0), noting("pod_group_post_filter")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        self.asked.append("queue_sort")
        return a.timestamp < b.timestamp

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        self.asked.append("filter")
        return fw.unschedulable("large") if pod.name == "large" else None

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.asked.append("bind")
        await self.handle.binder.bind(pod, node_name)

    def generate_placements(self, state: fw.CycleState, pod: fw.Pod, parent: fw.Placement) -> list[fw.Placement]:
        self.asked.append("placement_generate")
        return [parent]

    def pod_group_victims(self, *_: object) -> Generator[None, None, Sequence[fw.Pod] | fw.Status]:
        self.asked.append("pod_group_post_filter")
        yield
        return ()


class Budget(fw.PreFilterPlugin, fw.PreBindPlugin):
    """Counts the pods of a team in an object, up to a limit."""

    name = "Budget"
    writes: ClassVar[Sequence[fw.Write]] = (fw.Write(TEAMS),)
    reads: ClassVar[Sequence[str]] = (TEAMS,)

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        team = self.handle.objects.get(TEAMS, "shop")
        return None if team and team["used"] < 2 else fw.unresolvable("the budget is used up")

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        team: Any = self.handle.objects.get(TEAMS, "shop")
        await self.handle.api.patch(TEAMS, "shop", "", {"used": team["used"] + 1})


def test_what_a_plugin_writes_is_seen_by_the_next_decision() -> None:
    pods = [a_pod(name) for name in ("one", "two", "three")]
    objects = {TEAMS: [an_object("shop", used=0)]}
    with a_scheduler(Budget(), nodes=[a_node("a")], objects=objects) as scheduler:
        for pod in pods:
            scheduler.create(pod)

        assert [scheduler.outcome(pod).node for pod in pods] == ["a", "a", ""]
        assert "the budget is used up" in scheduler.outcome(pods[2]).message


def test_a_pre_bind_in_a_thread_is_waited_for() -> None:
    class InThread(Steps):
        async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
            self.asked.append(await asyncio.to_thread(lambda: "from a thread"))

    plugin, pod = InThread(), a_pod()
    with a_scheduler(plugin, nodes=[a_node("a")]) as scheduler:
        scheduler.create(pod)

        assert scheduler.outcome(pod).node == "a"
        assert "from a thread" in plugin.asked


def test_every_extension_point_is_run() -> None:
    plugin = Everywhere()
    with a_scheduler(plugin, nodes=[a_node("a"), a_node("b")]) as scheduler:
        scheduler.create(a_pod(), a_pod("large"))

    of_groups = {"placement_generate", "placement_score", "pod_group_post_filter"}
    assert set(plugin.asked) == set(POINTS) - of_groups


class Unheard(ApiServer):
    """Forgets all events."""

    def event(self, pod: fw.Pod, type_: str, reason: str, action: str, note: str) -> None:
        pass


def test_another_api_server_may_take_the_place_of_the_usual_one() -> None:
    config = Config((ProfileSpec("default-scheduler", Plugins()),))
    with Scheduler(config, {}, make_plugins=lambda *_: profile_of(), server=Unheard()) as scheduler:
        scheduler.set_node(a_node("a"))
        scheduler.create(pod := a_pod())

        assert scheduler.outcome(pod).node == "a"
        assert scheduler.events == []
