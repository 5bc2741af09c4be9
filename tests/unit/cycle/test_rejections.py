"""Pods that a kubelet rejects, and what becomes of the node."""

from dataclasses import dataclass, field

import pytest

from scheduler import framework as fw
from scheduler.api.objects import PodStatus, Toleration
from scheduler.cycle.rejections import MAX_WAITING, REST_SECONDS, Rejections
from scheduler.cycle.writers import Ending
from scheduler.framework.errors import ClusterError
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import EngineUnderTest, an_engine, newer

OUT_OF_CPU = Ending("Failed", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 500, used: 600")


@dataclass
class Endings:
    """A PodReader that answers the same for each pod."""

    answer: Ending | ClusterError | None
    asked: list[str] = field(default_factory=list)

    async def ending(self, pod: fw.Pod) -> Ending | None:
        self.asked.append(pod.name)
        if isinstance(self.answer, ClusterError):
            raise self.answer
        return self.answer


class Story:
    """A scheduler that bound the pod `web` to the only node, and what it does when that pod leaves the watch."""

    def __init__(self, answer: Ending | ClusterError | None = OUT_OF_CPU) -> None:
        self.engine: EngineUnderTest = an_engine()
        self.reader = Endings(answer)
        engine = self.engine.engine
        self.rejections = Rejections(
            engine.ends,
            self.engine.cache,
            self.engine.queue,
            self.reader,
            self.engine.world.writers,
            self.engine.metrics,
            self.engine.clock,
        )
        self.engine.see(a_node("n1"))

    async def bind(self, name: str = "web") -> fw.Pod:
        pod = a_pod(name)
        self.engine.see(pod)
        await self.engine.schedule()
        bound = newer(pod, node_name="n1")
        self.engine.see(bound)
        return bound

    async def end(self) -> None:
        """Bind a pod, let it leave the watch, and look into it."""
        self.engine.handlers.pod_deleted(await self.bind())
        await self.look()

    async def look(self) -> None:
        """Look into all that ended early."""
        while (pod := self.engine.engine.ends.take()) is not None:
            await self.rejections.look_into(pod)
        self.engine.check()

    async def try_another(self, **fields: object) -> list[str]:
        """Try one more pod; return what its owner reads if it is refused."""
        pod = a_pod("another", **fields)  # type: ignore[arg-type]
        self.engine.see(pod)
        await self.engine.schedule()
        return self.engine.world.notes()

    @property
    def node(self) -> fw.Node:
        node = self.engine.cache.table.node("n1")
        assert node is not None
        return node


async def test_a_rejected_pod_is_counted_and_reported() -> None:
    story = Story()
    await story.end()

    assert story.engine.count("loadmaster_kubelet_rejections_total", reason="OutOfcpu") == 1
    (note,) = story.engine.world.notes("RejectedByKubelet")
    assert note.startswith("Node n1 rejected the pod and is left alone for 10s: OutOfcpu: Node didn't have enough")


async def test_the_node_is_left_alone_for_a_moment_and_then_waiting_pods_are_tried_again() -> None:
    story = Story()
    await story.end()

    (note,) = await story.try_another()
    assert "1 node(s) had untolerated taint(s)" in note

    story.engine.wait(REST_SECONDS)
    story.rejections.end_avoidance()
    await story.engine.schedule()
    assert story.engine.world.bound["default/another"] == "n1"
    assert story.node.taints == ()


async def test_a_pod_that_tolerates_everything_is_placed_on_a_node_at_rest() -> None:
    story = Story()
    await story.end()

    assert await story.try_another(tolerations=[Toleration(operator="Exists")]) == []
    assert story.engine.world.bound["default/another"] == "n1"


async def test_what_the_watch_reports_of_a_node_does_not_end_its_rest() -> None:
    story = Story()
    await story.end()
    story.engine.see(a_node("n1", labels={"a": "b"}))

    assert [taint.key for taint in story.node.taints] == ["loadmaster/rejected-a-pod"]
    assert story.node.labels == {"a": "b"}


async def test_a_node_of_the_same_name_as_one_that_rested_does_not_rest() -> None:
    story = Story()
    await story.end()
    story.engine.handlers.node_deleted(a_node("n1"))
    story.engine.see(a_node("n1"))

    assert story.node.taints == ()
    story.engine.wait(REST_SECONDS)
    story.rejections.end_avoidance()
    assert story.node.taints == ()


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(Ending("Succeeded", "", ""), id="ran to its end"),
        pytest.param(Ending("Failed", "Evicted", "The node was low on resource: memory."), id="evicted"),
        pytest.param(Ending("Failed", "", ""), id="failed by itself"),
        pytest.param(None, id="gone"),
    ],
)
async def test_a_pod_that_ended_in_another_way_is_none_of_our_business(ending: Ending | None) -> None:
    story = Story(ending)
    await story.end()

    assert story.reader.asked == ["web"]
    assert story.engine.world.notes("RejectedByKubelet") == []
    assert story.node.taints == ()


async def test_a_pod_that_is_rejected_for_its_own_sake_keeps_no_others_from_the_node() -> None:
    story = Story(Ending("Failed", "SysctlForbidden", "forbidden sysctl"))
    await story.end()

    assert story.engine.world.notes("RejectedByKubelet") == [
        "Node n1 rejected the pod: SysctlForbidden: forbidden sysctl"
    ]
    assert story.node.taints == ()


async def test_reasons_that_name_resources_of_their_own_are_counted_as_one() -> None:
    story = Story(Ending("Failed", "OutOfexample.com/gpu", ""))
    await story.end()

    assert story.engine.count("loadmaster_kubelet_rejections_total", reason="other") == 1
    assert story.node.taints != ()


async def test_an_api_server_that_does_not_tell_why_costs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    story = Story(ClusterError("no answer"))
    await story.end()

    assert "A pod ended before it ran; why is not known" in caplog.text
    assert story.node.taints == ()


async def test_pods_that_ran_or_were_deleted_or_were_bound_by_others_are_not_read() -> None:
    story = Story()
    ran = newer(await story.bind("ran"), phase="Running")
    story.engine.see(ran)
    deleted = newer(await story.bind("deleted"), deletion_timestamp="2026-01-01T00:00:00Z")
    story.engine.see(deleted)
    foreign = a_pod("foreign", node_name="n1", status=PodStatus(phase="Pending"))
    story.engine.see(foreign)
    for pod in (ran, deleted, foreign):
        story.engine.handlers.pod_deleted(pod)
    await story.look()

    assert story.reader.asked == []


async def test_a_flood_of_ends_is_cut() -> None:
    story = Story()
    bound = await story.bind()
    for _ in range(MAX_WAITING + 1):
        story.engine.engine.ends.note(bound)
    await story.look()

    assert len(story.reader.asked) == MAX_WAITING
