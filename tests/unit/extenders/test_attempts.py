"""Attempts for which extenders are asked: what is asked and decided, and what others do meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.api.objects import PodStatus
from scheduler.api.pods.pod import Pod
from scheduler.config.extenders import ManagedResource
from scheduler.framework.errors import ClusterError
from scheduler.testing import a_node, a_pod
from tests.fakes import Unschedulable, a_plugin, settle
from tests.fakes.extenders import (
    Answer,
    FakeExtender,
    FakePods,
    an_extender,
    everything,
    extender_access,
    failing,
    only,
    rated,
)
from tests.unit.cycle.fakes import EngineUnderTest, an_engine, newer

GPU = "example.com/gpu"


def with_nodes(
    *extenders: FakeExtender, nodes: int = 3, pods: FakePods | None = None, **wishes: Any
) -> EngineUnderTest:
    """An engine with nodes n0, n1, … of 4 cores, that asks these extenders."""
    scheduler = an_engine(extender_access=extender_access(*extenders, pods=pods), **wishes)
    scheduler.see(*(a_node(f"n{number}", cpu="4", allocatable={GPU: 8}) for number in range(nodes)))
    return scheduler


async def tried(
    extenders: FakeExtender | tuple[FakeExtender, ...], *objects: Pod | fw.Node, **wishes: Any
) -> EngineUnderTest:
    """An engine that has tried what waits of these; it waits for an extender's answer if that hangs."""
    scheduler = with_nodes(*(extenders if isinstance(extenders, tuple) else (extenders,)), **wishes)
    scheduler.see(*objects)
    await scheduler.schedule()
    return scheduler


def attempts_under_way(scheduler: EngineUnderTest) -> int:
    assert scheduler.engine.extenders is not None
    return len(scheduler.engine.extenders.attempts)


def message(scheduler: EngineUnderTest) -> str:
    return scheduler.world.written(Unschedulable)[-1].message


async def test_a_pod_goes_where_plugins_and_extender_agree() -> None:
    extender = an_extender({"filter": only("n1")})
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "1"}))

    assert scheduler.world.bound == {"default/web": "n1"}
    assert extender.verbs() == ["filter"]  # with one node left there is nothing to rate
    assert extender.nodes() == ["n0", "n1", "n2"]


async def test_extenders_are_asked_in_turn_about_what_is_left_and_rate_together() -> None:
    first = an_extender({"filter": only("n1", "n2"), "prioritize": rated(n1=3, n2=4)}, url_prefix="http://a")
    second = an_extender({"prioritize": rated(n1=9, elsewhere=10)}, url_prefix="http://b", weight=2)
    scheduler = await tried((first, second), a_pod("web", requests={"cpu": "1"}))

    assert first.verbs() == second.verbs() == ["filter", "prioritize"]
    assert second.nodes(0) == ["n1", "n2"]
    assert scheduler.world.bound == {"default/web": "n1"}


async def test_a_score_counts_ten_times_its_weight() -> None:
    # LeastAllocated alone prefers n1 by far less than 10 for one point.
    extender = an_extender({"prioritize": rated(n0=1)})
    scheduler = await tried(
        extender,
        a_pod("there", requests={"cpu": "100m"}, node_name="n0"),
        a_pod("web", requests={"cpu": "100m"}),
        nodes=2,
    )

    assert scheduler.world.bound == {"default/web": "n0"}


async def test_a_pod_of_no_interest_is_decided_at_once() -> None:
    extender = an_extender(hangs=True, managed_resources=managed(GPU))
    scheduler = with_nodes(extender)
    scheduler.see(a_pod("web", requests={"cpu": "1"}))

    scheduler.loop.schedule_one(scheduler.pop())

    assert scheduler.loop.bindings == 1
    assert extender.asked == []
    await settle()


def managed(*names: str) -> tuple[ManagedResource, ...]:
    return tuple(ManagedResource(name) for name in names)


async def test_while_an_extender_thinks_other_pods_are_placed() -> None:
    extender = an_extender(hangs=True, managed_resources=managed(GPU))
    scheduler = await tried(
        extender, a_pod("gpu", requests={GPU: 1}), *(a_pod(f"web{i}", requests={"cpu": "1"}) for i in range(5))
    )

    assert len(scheduler.world.bound) == 5
    assert scheduler.where("default/gpu") == "in flight"
    await extender.answer()
    await extender.answer()
    assert "default/gpu" in scheduler.world.bound


async def test_a_node_that_was_taken_meanwhile_is_left_out() -> None:
    extender = an_extender({"filter": only("n0", "n1"), "prioritize": rated(n0=10)}, hangs=True)
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "3"}))
    await extender.answer()

    scheduler.see(a_pod("rival", requests={"cpu": "3"}, node_name="n0"))
    await extender.answer()

    assert scheduler.world.bound == {"default/web": "n1"}


async def test_if_no_node_is_left_the_extender_is_asked_again() -> None:
    extender = an_extender({"filter": lambda question: {"NodeNames": question["NodeNames"][:1]}}, hangs=True)
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "3"}), nodes=2)

    scheduler.see(a_pod("rival", requests={"cpu": "3"}, node_name=extender.nodes()[0]))
    await extender.answer()
    await extender.answer()

    assert extender.nodes(1) == ["n1"]
    assert scheduler.world.bound == {"default/web": "n1"}
    assert scheduler.count("loadmaster_extender_answers_overtaken_total") == 1


async def test_but_not_for_ever() -> None:
    extender = an_extender({"filter": lambda question: {"NodeNames": question["NodeNames"][:1]}}, hangs=True)
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "3"}), nodes=4)

    for number in range(3):
        scheduler.see(a_pod(f"rival{number}", requests={"cpu": "3"}, node_name=extender.nodes()[0]))
        await extender.answer()

    assert scheduler.world.bound == {}
    assert message(scheduler) == "extenders were asked 3 times, and each time no node that they left was free any more"
    assert scheduler.where("default/web") == "backoff"


async def test_a_node_that_nobody_was_asked_about_is_not_taken() -> None:
    extender = an_extender({"filter": only("n1")}, hangs=True)
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "1"}), nodes=2)

    scheduler.see(a_node("n9", cpu="64"))
    await extender.answer()

    assert scheduler.world.bound == {"default/web": "n1"}


async def test_what_extenders_refuse_is_told_like_what_plugins_refuse() -> None:
    extender = an_extender({"filter": only(n1="no gpu", n2="no gpu")})
    scheduler = await tried(
        extender, a_pod("full", requests={"cpu": "4"}, node_name="n0"), a_pod("web", requests={"cpu": "1"})
    )

    assert message(scheduler) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 no gpu. preemption: "
        "0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )
    assert scheduler.waiting("default/web").unschedulable_plugins == {"NodeResourcesFit", "Extender"}


async def test_nodes_left_out_without_a_word_are_not_counted_and_any_event_brings_the_pod_back() -> None:
    extender = an_extender({"filter": only()})
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "1"}))

    assert message(scheduler) == (
        "0/3 nodes are available: preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert (
        scheduler.count("scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler") == 1
    )
    scheduler.see(newer(a_pod("other", scheduler_name="else", node_name="n0")))
    scheduler.wait(20)
    assert scheduler.where("default/web") == "active"


async def test_a_refusal_for_good_rules_preemption_out_there() -> None:
    answer: Answer = lambda question: {  # noqa: E731
        "NodeNames": [],
        "FailedNodes": {"n0": "full", "n1": "full"},
        "FailedAndUnresolvableNodes": {"n1": "broken"},
    }
    extender = an_extender({"filter": answer})
    low = (a_pod(f"low{i}", requests={"cpu": "2"}, node_name=f"n{i}", priority=1) for i in range(2))
    scheduler = await tried(extender, *low, a_pod("high", requests={"cpu": "1"}, priority=9), nodes=2)

    assert message(scheduler) == (
        '0/2 nodes are available: 1 broken, 1 full. preemption: expected at least one victim pod on node "n0"'
    ), "of the two nodes one is looked at, and nobody has to go there"


async def test_one_that_is_ignorable_is_left_out_and_comes_last() -> None:
    away = an_extender({"filter": failing()}, url_prefix="http://away", ignorable=True)
    there = an_extender({"filter": only("n2")}, url_prefix="http://there")
    scheduler = await tried((away, there), a_pod("web"))

    assert away.nodes() == ["n2"], "it is asked after the other"
    assert scheduler.world.bound == {"default/web": "n2"}


async def test_who_cannot_rate_has_no_say() -> None:
    silent = an_extender({"prioritize": failing()}, url_prefix="http://a")
    speaking = an_extender({"prioritize": rated(n1=5)}, url_prefix="http://b")
    scheduler = await tried((silent, speaking), a_pod("web"))

    assert scheduler.world.bound == {"default/web": "n1"}


UNREAD = FakePods({"default/web": ClusterError("the API server is away")})


@pytest.mark.parametrize(
    ("extender", "pods", "said"),
    [
        pytest.param(
            an_extender({"filter": failing('Post "http://extender/filter": EOF')}),
            None,
            'Post "http://extender/filter": EOF',
            id="no answer",
        ),
        pytest.param(
            an_extender({"filter": lambda _: {"NodeNames": ["n1", "mars"]}}),
            None,
            'extender "http://extender" claims a filtered node "mars" which is not found in the input node list',
            id="an unknown node in the answer",
        ),
        pytest.param(
            an_extender({"filter": lambda _: {"NodeNames": ["n1"], "Error": "out of order"}}),
            None,
            "out of order",
            id="an error in the answer",
        ),
        pytest.param(
            an_extender(),
            UNREAD,
            "reading the pod for its extenders: the API server is away",
            id="a pod that cannot be read",
        ),
        pytest.param(
            an_extender({"filter": lambda _: 1 / 0}),
            None,
            "ZeroDivisionError: division by zero",
            id="an attempt that fails unexpectedly",
        ),
    ],
)
async def test_what_goes_wrong_is_told_and_costs_that_pod_a_retry(
    extender: FakeExtender, pods: FakePods | None, said: str
) -> None:
    scheduler = await tried(extender, a_pod("web"), pods=pods)

    assert scheduler.world.bound == {}
    assert message(scheduler) == said
    assert scheduler.world.written(Unschedulable)[-1].reason == "SchedulerError"
    assert scheduler.where("default/web") == "backoff"
    extender.answers.clear()
    scheduler.wait(20)
    await scheduler.schedule()
    assert ("default/web" in scheduler.world.bound) is (pods is None)


async def test_the_nominated_node_is_asked_about_first() -> None:
    extender = an_extender()
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "1"}, status=nominated_to("n2")))

    assert extender.verbs() == ["filter"]
    assert extender.nodes() == ["n2"]
    assert scheduler.world.bound == {"default/web": "n2"}


def nominated_to(node: str) -> PodStatus:
    return PodStatus(nominated_node_name=node)


async def test_if_the_nominated_node_will_not_do_all_are_asked_about() -> None:
    extender = an_extender({"filter": only("n1")})
    scheduler = await tried(extender, a_pod("web", requests={"cpu": "1"}, status=nominated_to("n2")))

    assert [extender.nodes(0), extender.nodes(1)] == [["n2"], ["n0", "n1", "n2"]]
    assert scheduler.world.bound == {"default/web": "n1"}


async def test_a_failure_about_the_nominated_node_is_not_the_end() -> None:
    first = [True]

    def answer(question: dict[str, Any]) -> Any:
        if first.pop() if first else False:
            return failing()({})
        return everything(question)

    scheduler = await tried(
        an_extender({"filter": answer}), a_pod("web", requests={"cpu": "1"}, status=nominated_to("n2"))
    )

    assert "default/web" in scheduler.world.bound


# What happens to the pod meanwhile.


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda scheduler, pod: scheduler.handlers.pod_deleted(pod), id="deleted"),
        pytest.param(lambda scheduler, pod: scheduler.see(newer(pod, node_name="n1")), id="bound by others"),
    ],
)
async def test_a_pod_that_is_gone_ends_its_attempt(end: Callable[[EngineUnderTest, Pod], None]) -> None:
    pod = a_pod("web")
    scheduler = await tried(an_extender(hangs=True), pod)

    end(scheduler, pod)
    await settle()

    assert scheduler.where("default/web") == ""
    assert attempts_under_way(scheduler) == 0
    assert scheduler.world.asked == []
    assert scheduler.world.notes() == []
    assert scheduler.count("loadmaster_task_failures_total", operation="extender") == 0


async def test_a_pod_that_is_being_deleted_is_not_placed() -> None:
    extender = an_extender(hangs=True)
    pod = a_pod("web")
    scheduler = await tried(extender, pod)

    scheduler.see(newer(pod, deletion_timestamp="2026-01-01T00:00:00Z"))
    await extender.answer()
    await extender.answer()

    assert scheduler.world.bound == {}
    assert scheduler.world.notes() == ["skip schedule deleting pod: default/web"]
    assert scheduler.where("default/web") == ""


async def test_a_pod_that_changed_is_asked_about_again() -> None:
    extender = an_extender(hangs=True)
    pod = a_pod("web")
    scheduler = await tried(extender, pod, nodes=1)

    scheduler.see(newer(pod, labels={"app": "web"}))
    for _ in range(4):
        await extender.answer()

    assert extender.verbs() == ["filter", "filter"]
    assert scheduler.world.bound == {"default/web": "n0"}


async def test_an_event_in_the_meantime_is_not_lost() -> None:
    extender = an_extender({"filter": only()}, hangs=True)
    scheduler = await tried(extender, a_pod("web"), nodes=1)

    scheduler.see(a_node("n7"))
    await extender.answer()

    assert scheduler.where("default/web") == "backoff", "the new node may be what it waits for"


# Room.


async def test_there_is_room_for_so_many_attempts_and_the_others_wait_in_order() -> None:
    extender = an_extender(hangs=True)
    scheduler = await tried(extender, *(a_pod(f"p{i}", priority=i) for i in range(6)), room=2)

    assert len(extender.waiting) == 2
    assert scheduler.queue.pending_counts()["active"] == 4
    assert len(scheduler.queue.in_flight_pods()) == 2
    scheduler.check()
    await extender.answer()
    await extender.answer()
    asked = [question["Pod"]["metadata"]["name"] for verb, question in extender.asked if verb == "filter"]
    assert asked == ["p5", "p4", "p3", "p2"], "the most important of those that wait is next"


async def test_all_held_pods_get_their_turn() -> None:
    extender = an_extender()
    scheduler = with_nodes(extender, room=1)
    scheduler.see(*(a_pod(f"p{i}", requests={"cpu": "100m"}) for i in range(20)))

    for _ in range(30):
        await scheduler.schedule()

    assert len(scheduler.world.bound) == 20
    assert all(queued.attempts == 1 for queued in scheduler.queue.in_flight_pods())


async def test_an_extender_that_hangs_holds_up_its_own_pods_only() -> None:
    hanging = an_extender(hangs=True, url_prefix="http://a", managed_resources=managed(GPU))
    other = an_extender(url_prefix="http://b", managed_resources=managed("example.com/fpga"))
    scheduler = with_nodes(hanging, other, room=1)
    scheduler.see(a_node("f0", allocatable={"example.com/fpga": 8}))
    scheduler.see(*(a_pod(f"gpu{i}", requests={GPU: 1}) for i in range(3)))
    scheduler.see(*(a_pod(f"fpga{i}", requests={"example.com/fpga": 1}) for i in range(3)))

    for _ in range(4):
        await scheduler.schedule()

    assert sorted(scheduler.world.bound) == ["default/fpga0", "default/fpga1", "default/fpga2"]


async def test_a_held_pod_can_be_deleted() -> None:
    extender = an_extender(hangs=True)
    scheduler = with_nodes(extender, room=1)
    pods = [a_pod(f"p{i}") for i in range(3)]
    scheduler.see(*pods)
    await scheduler.schedule()

    scheduler.handlers.pod_deleted(pods[1])

    assert scheduler.where("default/p1") == ""


async def test_the_end_leaves_nothing_under_way() -> None:
    extender = an_extender(hangs=True)
    scheduler = await tried(extender, a_pod("web"))

    scheduler.queue.close()
    assert await scheduler.loop.finish(1) == 0

    assert attempts_under_way(scheduler) == 0
    assert scheduler.world.notes() == []


async def test_no_answer_is_used_while_the_loop_is_held() -> None:
    extender = an_extender({"filter": only("n1")}, hangs=True)
    scheduler = await tried(extender, a_pod("web"))

    with scheduler.engine.pauses.hold():
        await extender.answer()
        assert scheduler.world.bound == {}
    await settle()

    assert scheduler.world.bound == {"default/web": "n1"}


async def test_without_a_word_in_placement_an_extender_is_not_asked() -> None:
    extender = an_extender(filter_verb="", prioritize_verb="", preempt_verb="", bind_verb="bind")
    scheduler = with_nodes(extender)
    scheduler.see(a_pod("web"))

    scheduler.loop.schedule_one(scheduler.pop())

    assert scheduler.loop.bindings == 1, "it is decided at once"
    await settle()
    assert extender.verbs() == ["bind"]


async def test_a_framework_error_names_its_plugin_as_ever() -> None:
    def broken(state: Any, pod: Any, node: Any) -> fw.Status | None:
        raise ValueError("broken")

    scheduler = an_engine(
        a_plugin("Broken", fw.FilterPlugin, filter=broken), extender_access=extender_access(an_extender())
    )
    scheduler.see(a_node("n0"), a_pod("web"))

    await scheduler.schedule()

    assert message(scheduler) == 'running "Broken" filter plugin: ValueError: broken'
