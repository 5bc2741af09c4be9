"""The dump: what it says of nodes, pods and queues, and how much of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.api.objects import PodStatus
from scheduler.engine.dumper import Line, dump, readable
from scheduler.framework.plugin import PreEnqueuePlugin
from scheduler.framework.status import unschedulable
from scheduler.testing import a_node, a_pod
from tests.fakes import plugin
from tests.unit.cycle.harness import Scheduler, holding


def lines_of(scheduler: Scheduler, max_lines: int = 1000) -> list[Line]:
    return list(dump(scheduler.engine, scheduler.clock(), max_lines))


def fields(lines: list[Line], message: str, **wanted: object) -> list[Mapping[str, Any]]:
    """Of the lines with that message those whose fields have these values."""
    return [line.fields for line in lines if line.message == message and wanted.items() <= line.fields.items()]


def queued(lines: list[Line], queue: str) -> list[Mapping[str, Any]]:
    return fields(lines, "Dump of queued pod", queue=queue)


def bound(name: str, node_name: str, **requests: str) -> Any:
    return a_pod(name, node_name=node_name, requests=requests, status=PodStatus(phase="Running"))


def test_the_sizes_come_first() -> None:
    scheduler = Scheduler(nodes=("a", "b"))
    scheduler.handlers.pod_changed(bound("web", "a"))
    scheduler.handlers.pod_changed(a_pod("next"))

    first = lines_of(scheduler)[0]

    assert first.message == "Dump of the scheduler"
    assert first.fields == {
        "nodes": 2,
        "pods": 1,
        "assumed": 0,
        "nominated": 0,
        "active": 1,
        "backoff": 0,
        "unschedulable": 0,
        "gated": 0,
        "incomplete": 0,
        "pending": 0,
        "inFlight": 0,
    }


def test_a_node_is_dumped_with_its_amounts_in_readable_units() -> None:
    scheduler = Scheduler(nodes=())
    scheduler.handlers.node_changed(a_node("a", cpu="4", memory="8Gi", pods=110))
    scheduler.handlers.pod_changed(bound("web", "a", cpu="1500m", memory="512Mi"))

    (node,) = fields(lines_of(scheduler), "Dump of cached node")

    assert (node["node"], node["deleted"], node["pods"], node["nominated"]) == ("a", False, 1, 0)
    assert node["requested"] == {"cpu": "1.5", "memory": "512Mi"}
    assert node["allocatable"].items() >= {"cpu": "4", "memory": "8Gi", "pods": "110"}.items()


def test_a_node_that_is_gone_is_dumped_as_long_as_pods_are_on_it() -> None:
    scheduler = Scheduler(nodes=())
    scheduler.handlers.pod_changed(bound("web", "gone"))

    (node,) = fields(lines_of(scheduler), "Dump of cached node")

    assert node == {"node": "gone", "deleted": True, "pods": 1, "nominated": 0}


async def test_assumed_pods_come_before_confirmed_ones() -> None:
    scheduler = Scheduler(holding(), nodes=("a", "b"))
    scheduler.handlers.pod_changed(bound("there", "a"))
    await scheduler.schedule(a_pod("new"))
    lines = lines_of(scheduler)

    pods = fields(lines, "Dump of cached pod")

    assert [(pod["pod"], pod["node"], pod["state"]) for pod in pods] == [
        ("default/new", "b", "assumed"),
        ("default/there", "a", "confirmed"),
    ]
    assert (pods[1]["phase"], pods[1]["uid"]) == ("Running", bound("there", "a").uid)


def test_nominated_pods_are_dumped_with_their_node() -> None:
    scheduler = Scheduler(nodes=("a",))
    scheduler.nominator.add(a_pod("promised"), "a")

    lines = lines_of(scheduler)

    assert [(pod["pod"], pod["node"]) for pod in fields(lines, "Dump of nominated pod")] == [("default/promised", "a")]
    assert [node["nominated"] for node in fields(lines, "Dump of cached node")] == [1]


def test_a_waiting_pod_is_dumped_with_its_attempts_and_age() -> None:
    scheduler = Scheduler()
    scheduler.handlers.pod_changed(a_pod("next"))
    scheduler.clock.advance(2.5)

    (pod,) = queued(lines_of(scheduler), "active")

    assert (pod["pod"], pod["attempts"], pod["ageSeconds"]) == ("default/next", 0, 2.5)


async def test_a_refused_pod_is_dumped_with_the_plugins_that_refused_it() -> None:
    scheduler = Scheduler(nodes=("a",))
    scheduler.handlers.pod_changed(bound("there", "a"))
    await scheduler.schedule(a_pod("big"))
    scheduler.clock.advance(60)

    (pod,) = queued(lines_of(scheduler), "unschedulable")

    assert (pod["pod"], pod["plugins"], pod["attempts"], pod["ageSeconds"]) == ("default/big", ["One"], 1, 60.0)


async def test_a_pod_in_backoff_is_dumped_with_the_end_of_its_wait() -> None:
    scheduler = Scheduler(nodes=("a",))
    scheduler.world.refusal = ValueError("broken")
    await scheduler.schedule(a_pod("unlucky"))  # at 1000.25: waits 1 s, to the window that begins at 1001

    (pod,) = queued(lines_of(scheduler), "backoff")

    assert (pod["pod"], pod["endsInSeconds"]) == ("default/unlucky", 0.75)
    assert "plugins" not in pod


def test_a_gated_pod_is_dumped_with_its_gate() -> None:
    scheduler = Scheduler(plugin(PreEnqueuePlugin, "Gate", pre_enqueue=lambda *_: unschedulable("no")))
    scheduler.handlers.pod_changed(a_pod("held"))

    (pod,) = queued(lines_of(scheduler), "gated")

    assert (pod["pod"], pod["gatedBy"], pod["attempts"]) == ("default/held", "Gate", 0)


async def test_a_pod_in_flight_is_dumped_with_its_duration() -> None:
    scheduler = Scheduler(holding())
    scheduler.handlers.pod_changed(a_pod("held"))
    scheduler.clock.advance(1)
    await scheduler.schedule()
    scheduler.clock.advance(5)
    lines = lines_of(scheduler)

    (pod,) = queued(lines, "inFlight")

    assert (pod["pod"], pod["forSeconds"], pod["ageSeconds"]) == ("default/held", 5.0, 6.0)


def test_what_is_left_out_is_counted() -> None:
    scheduler = Scheduler(nodes=("a", "b", "c"))
    for number in range(5):
        scheduler.handlers.pod_changed(a_pod(f"next-{number}"))

    lines = lines_of(scheduler, max_lines=2)

    assert [node["node"] for node in fields(lines, "Dump of cached node")] == ["a", "b"]
    assert len(queued(lines, "active")) == 2
    assert fields(lines, "Dump leaves some out") == [
        {"kind": "nodes", "shown": 2, "leftOut": 1},
        {"kind": "active", "shown": 2, "leftOut": 3},
    ]


def test_the_world_may_change_between_two_lines() -> None:
    scheduler = Scheduler(nodes=("a", "b"))
    web = bound("web", "b")
    scheduler.handlers.pod_changed(web)
    lines = dump(scheduler.engine, scheduler.clock())
    next(lines)

    scheduler.handlers.pod_deleted(web)
    scheduler.handlers.node_deleted(a_node("b"))

    assert [line.fields["node"] for line in lines] == ["a"]


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        pytest.param("cpu", 100, "0.1", id="a tenth of a core"),
        pytest.param("cpu", 64000, "64", id="cores"),
        pytest.param("memory", 1000, "1000", id="few bytes"),
        pytest.param("memory", 33_676_038_144, "31.363Gi", id="a node's memory"),
        pytest.param("hugepages-2Mi", 4 * 2**20, "4Mi", id="huge pages"),
        pytest.param("pods", 110, "110", id="pods"),
        pytest.param("nvidia.com/gpu", 8, "8", id="devices"),
    ],
)
def test_amounts_are_readable(resource: str, amount: int, expected: str) -> None:
    assert readable(resource, amount) == expected
