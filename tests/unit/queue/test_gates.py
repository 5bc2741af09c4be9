from collections.abc import Callable

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.plugin import PreEnqueuePlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.process.metrics import Metrics
from scheduler.queue.gates import GateRefusal, Gates
from tests.fakes import FakeClock, sample
from tests.unit.queue.fakes import PROFILE, a_waiting_pod


class Answering(PreEnqueuePlugin):
    def __init__(self, name: str, answer: Callable[[], Status | None], asked: list[str]) -> None:
        self.name = name  # type: ignore[misc]
        self.answer = answer
        self.asked = asked

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked.append(self.name)
        return self.answer()


def passes() -> None:
    return None


def refuses() -> Status:
    return unresolvable("no")


def errs() -> Status:
    return Status(Code.ERROR, ("broken",))


def raises() -> Status:
    raise RuntimeError("broken")


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("answers", "refusal", "expected"),
    [
        pytest.param([passes, passes], None, ["0", "1"], id="all let it in"),
        pytest.param(
            [passes, refuses, passes], GateRefusal("1", gates=True), ["0", "1"], id="the first refusal ends it"
        ),
        pytest.param([raises, passes], GateRefusal("0", gates=False), ["0"], id="a plugin that raises gates nothing"),
        pytest.param([errs, passes], GateRefusal("0", gates=False), ["0"], id="nor does one that answers Error"),
    ],
)
def test_plugins_are_asked_in_their_order(
    asked: list[str], answers: list[Callable[[], Status | None]], refusal: GateRefusal | None, expected: list[str]
) -> None:
    plugins = [Answering(str(number), answer, asked) for number, answer in enumerate(answers)]
    gates = Gates({PROFILE: plugins}, Metrics(), FakeClock())

    assert gates.refusal(QueuedPod(a_waiting_pod(), 0.0)) == refusal
    assert asked == expected


def test_the_plugin_that_gates_a_pod_is_asked_first(asked: list[str]) -> None:
    plugins = [Answering("0", passes, asked), Answering("1", passes, asked), Answering("2", refuses, asked)]

    Gates({PROFILE: plugins}, Metrics(), FakeClock()).refusal(QueuedPod(a_waiting_pod(), 0.0, gating_plugin="2"))

    assert asked == ["2"]


@pytest.mark.parametrize("answer", [raises, errs])
def test_a_failing_plugin_is_named_in_a_log_line_for_the_pod(
    caplog: pytest.LogCaptureFixture, answer: Callable[[], Status | None]
) -> None:
    Gates({PROFILE: [Answering("Gate", answer, [])]}, Metrics(), FakeClock()).refusal(QueuedPod(a_waiting_pod(), 0.0))

    record = caplog.records[-1]
    assert (record.getMessage(), record.__dict__["plugin"]) == ("PreEnqueue plugin failed", "Gate")


def test_every_run_is_timed_and_every_tenth_by_plugin() -> None:
    metrics = Metrics()
    gates = Gates({PROFILE: [Answering("Gate", refuses, [])]}, metrics, FakeClock())

    for _ in range(20):
        gates.refusal(QueuedPod(a_waiting_pod(), 0.0))

    labels = {"extension_point": "PreEnqueue", "status": "UnschedulableAndUnresolvable"}
    count = "scheduler_framework_extension_point_duration_seconds_count"
    assert sample(metrics, count, profile=PROFILE, **labels) == 20
    assert sample(metrics, "scheduler_plugin_execution_duration_seconds_count", plugin="Gate", **labels) == 2
