"""The spans of attempts, as an engine makes them."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import StatusCode

from scheduler import framework as fw
from scheduler.engine.engine import ExtenderAccess
from scheduler.extenders.roster import Roster
from scheduler.runtime.event_stream import EventStream
from scheduler.testing import a_node, a_pod
from scheduler.tracing import spans as tracing
from scheduler.tracing.spans import MAX_TEXT
from tests.fakes import Metrics, a_plugin, settle
from tests.fakes.extenders import FakeExtender, FakePods, an_extender, failing
from tests.unit.cycle.fakes import PROFILE, EngineUnderTest, an_engine, raising
from tests.unit.groups.groups import Groups

CYCLE = ["PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit"]
"""What a pod that fits on two nodes goes through."""
BINDING = ["PreBindPreFlight", "Bind", "PostBind"]


@dataclass
class Spans:
    """What was sent."""

    sampler: Sampler = ALWAYS_ON
    sent: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    def __post_init__(self) -> None:
        provider = TracerProvider(sampler=self.sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.sent))
        self.stream = EventStream()
        tracing.Spans(provider.get_tracer("test"), self.stream)

    @property
    def roots(self) -> list[ReadableSpan]:
        return [span for span in self.sent.get_finished_spans() if span.parent is None]

    def below(self, span: ReadableSpan) -> list[ReadableSpan]:
        """In the order in which they began."""
        found = (s for s in self.sent.get_finished_spans() if s.parent and s.parent.span_id == span.context.span_id)
        return sorted(found, key=lambda each: each.start_time or 0)

    def tree(self, span: ReadableSpan) -> dict[str, Any]:
        """Name of a span below → the same of that one, in order."""
        return {each.name: self.tree(each) for each in self.below(span)}

    def of(self, pod: str) -> list[ReadableSpan]:
        return [root for root in self.roots if values(root)["k8s.pod.name"] == pod]


def values(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture
def spans() -> Spans:
    return Spans()


def traced(spans: Spans, *plugins: type[fw.Plugin], **wishes: Any) -> EngineUnderTest:
    """An engine with two nodes of 4 cores."""
    scheduler = an_engine(*plugins, stream=spans.stream, **wishes)
    scheduler.see(a_node("n0", cpu="4"), a_node("n1", cpu="4"))
    return scheduler


def extender_access(spans: Spans, *fakes: FakeExtender) -> ExtenderAccess:
    by_settings = {fake.settings: fake for fake in fakes}
    roster = Roster(lambda settings, _: by_settings[settings], Metrics(), tuple(by_settings), spans.stream)
    return ExtenderAccess(roster, FakePods())


async def test_a_pod_that_is_placed_leaves_one_trace_with_all_its_steps(spans: Spans) -> None:
    scheduler = traced(spans)
    scheduler.see(a_pod("web", requests={"cpu": "1"}))
    scheduler.clock.advance(3.0)

    await scheduler.schedule()

    (root,) = spans.roots
    assert root.name == "schedule pod"
    assert spans.tree(root) == {
        "queue": {},
        "scheduling cycle": {step: {} for step in CYCLE},
        "binding cycle": {step: {} for step in BINDING},
    }
    assert values(root) == {
        "k8s.namespace.name": "default",
        "k8s.pod.name": "web",
        "k8s.pod.uid": a_pod("web").uid,
        "k8s.node.name": scheduler.world.bound["default/web"],
        "loadmaster.profile": "default-scheduler",
        "loadmaster.attempt": 1,
        "loadmaster.result": "scheduled",
    }
    assert len({span.context.trace_id for span in spans.sent.get_finished_spans()}) == 1
    queue, cycle, binding = spans.below(root)
    assert (queue.end_time or 0) - (queue.start_time or 0) == 3_000_000_000
    assert queue.start_time == root.start_time
    assert queue.end_time == cycle.start_time
    assert (root.end_time or 0) >= (binding.end_time or 0)


async def test_a_pod_that_fits_nowhere_has_a_trace_of_each_attempt_with_the_reason(spans: Spans) -> None:
    scheduler = traced(spans)
    scheduler.see(a_pod("huge", requests={"cpu": "99"}))
    await scheduler.schedule()

    scheduler.see(a_node("n2", cpu="100"))
    scheduler.wait(10.0)
    await scheduler.schedule()

    first, second = spans.of("huge")
    assert values(first)["loadmaster.result"] == "unschedulable"
    assert values(first)["loadmaster.message"].startswith("0/2 nodes are available: 2 Insufficient cpu")
    assert first.status.status_code is StatusCode.UNSET
    assert spans.tree(first)["scheduling cycle"] == {"PreFilter": {}, "Filter": {}, "PostFilter": {}}
    assert (values(second)["loadmaster.result"], values(second)["loadmaster.attempt"]) == ("scheduled", 2)
    assert first.context.trace_id != second.context.trace_id


async def test_a_plugin_that_raises_is_an_error_of_its_step_and_of_the_attempt(spans: Spans) -> None:
    broken = a_plugin("Broken", fw.FilterPlugin, filter=raising(KeyError("\ud800" + "x" * 5000)))
    scheduler = traced(spans, broken)
    scheduler.see(a_pod("web"))

    await scheduler.schedule()

    (root,) = spans.roots
    (step,) = [each for each in spans.below(spans.below(root)[1]) if each.name == "Filter"]
    assert root.status.status_code is step.status.status_code is StatusCode.ERROR
    assert values(root)["loadmaster.result"] == "error"
    assert values(step)["loadmaster.status"] == "Error"
    message = values(root)["loadmaster.message"]
    assert message.startswith('running "Broken" filter plugin: KeyError')
    assert len(message.encode()) <= 4 * MAX_TEXT


async def test_a_binding_that_fails_ends_the_trace_with_an_error(spans: Spans) -> None:
    broken = a_plugin("Broken", fw.PreBindPlugin, pre_bind_pre_flight=raising(OSError("disk")))
    scheduler = traced(spans, broken)
    scheduler.see(a_pod("web"))

    await scheduler.schedule()

    (root,) = spans.roots
    assert values(root)["loadmaster.result"] == "error"
    assert "OSError: disk" in values(root)["loadmaster.message"]
    assert list(spans.tree(root)["binding cycle"]) == ["PreBindPreFlight", "Unreserve"]


async def test_bindings_under_way_at_once_are_not_mixed_up(spans: Spans) -> None:
    holding = a_plugin("Holding", fw.PermitPlugin, permit=lambda *_: fw.PermitWait(60.0))
    scheduler = traced(spans, holding)
    pods = [a_pod(f"web-{number}") for number in range(5)]
    scheduler.see(*pods)
    await scheduler.schedule()
    assert spans.roots == []

    for pod in reversed(pods):
        waiting = scheduler.framework.handle.waiting_pods.get(pod.uid)
        assert waiting is not None
        waiting.allow("Holding")
    await settle()

    for pod in pods:
        (root,) = spans.of(pod.name)
        assert list(spans.tree(root)["binding cycle"]) == ["PreBindPreFlight", "WaitOnPermit", "Bind", "PostBind"]
        assert values(root)["k8s.node.name"] == scheduler.world.bound[str(pod)]


async def test_a_question_to_an_extender_is_a_span_of_the_attempt_that_asks(spans: Spans) -> None:
    extender = an_extender({"prioritize": failing()}, hangs=True)
    scheduler = traced(spans, extender_access=extender_access(spans, extender), room=1)
    pods = [a_pod("first"), a_pod("second")]  # the second waits for the first one's end
    scheduler.see(*pods)
    await scheduler.schedule()

    while extender.waiting:
        await extender.answer(1)

    for pod in pods:
        (root,) = spans.of(pod.name)
        cycle = spans.below(root)[1]
        asked = [each for each in spans.below(cycle) if each.name.startswith("extender")]
        assert [each.name for each in asked] == ["extender filter", "extender prioritize"]
        assert [each.status.status_code for each in asked] == [StatusCode.UNSET, StatusCode.ERROR]
        assert values(asked[1])["error.type"] == "connection"
        assert values(asked[0])["loadmaster.extender"] == "http://extender"
        assert values(root)["loadmaster.result"] == "scheduled"


async def test_a_pod_that_is_skipped_leaves_no_trace(spans: Spans) -> None:
    scheduler = traced(spans)
    scheduler.see(a_pod("web"))
    queued = scheduler.pop()
    queued.pod = a_pod("web", scheduler_name="of-nobody")

    scheduler.loop.schedule_one(queued)

    assert spans.sent.get_finished_spans() == ()


async def test_a_pod_that_is_deleted_while_an_extender_thinks_leaves_a_trace_that_says_so(spans: Spans) -> None:
    scheduler = traced(spans, extender_access=extender_access(spans, an_extender(hangs=True)))
    scheduler.see(pod := a_pod("web"))
    await scheduler.schedule()

    scheduler.handlers.pod_deleted(pod)
    await settle()

    (root,) = spans.roots
    assert values(root)["loadmaster.result"] == "given up"
    assert all(span.parent is None or span.end_time is not None for span in spans.sent.get_finished_spans())


async def test_what_is_not_sampled_costs_no_span(spans: Spans) -> None:
    none = Spans(ALWAYS_OFF)
    scheduler = traced(none)
    scheduler.see(a_pod("web"), a_pod("huge", requests={"cpu": "99"}))

    await scheduler.schedule()

    assert scheduler.world.bound.keys() == {"default/web"}
    assert none.sent.get_finished_spans() == ()


async def test_what_is_decided_is_the_same_with_traces_and_without(spans: Spans) -> None:
    pods = [a_pod(f"web-{number}", requests={"cpu": "500m"}) for number in range(20)]
    bound = []
    for scheduler in (traced(spans), an_engine()):
        if scheduler.cache.table.count == 0:
            scheduler.see(a_node("n0", cpu="4"), a_node("n1", cpu="4"))
        scheduler.see(*pods)
        await scheduler.schedule()
        scheduler.check()
        bound.append(scheduler.world.bound)

    assert bound[0] == bound[1]
    assert len(bound[0]) == 16


async def test_a_group_leaves_a_span_of_its_decision_to_which_those_of_its_pods_alone_are_linked(spans: Spans) -> None:
    groups = Groups(nodes=1, stream=spans.stream)
    groups.create()
    groups.pods(3)

    await groups.schedule()

    group, *pods = spans.roots
    assert group.name == "schedule pod group"
    assert values(group) == {
        "k8s.namespace.name": "default",
        "loadmaster.profile": PROFILE,
        "loadmaster.pod_group": "g",
        "loadmaster.pod_group.pods": 3,
        "loadmaster.pod_group.fitting": 2,
        "loadmaster.pod_group.placement": "",
        "loadmaster.result": "unschedulable",
        "loadmaster.message": (
            "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, pod group preemption: No preemption "
            "victims found for incoming preemptor"
        ),
    }
    assert spans.below(group) == []
    assert [values(pod)["k8s.pod.name"] for pod in pods] == ["g-0", "g-1", "g-2"]
    assert {pod.links[0].context.span_id for pod in pods} == {group.context.span_id}
    groups.under_test.see(a_pod("alone", scheduler_name=PROFILE))

    await groups.schedule()

    (alone,) = [root for root in spans.roots if values(root).get("k8s.pod.name") == "alone"]
    assert not alone.links
