"""Refusals, errors and labels at the extension points: what test_framework.py leaves open."""

from collections.abc import Callable, Hashable
from inspect import iscoroutine
from typing import Any

import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.status import Code, Status
from scheduler.process.metrics import Metrics
from scheduler.runtime.framework import Framework
from scheduler.testing import a_pod
from tests.fakes import a_framework, everything, run, sample
from tests.unit.runtime.fakes import (
    Bind,
    Extensions,
    Filter,
    FilterNodes,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreFilter,
    PreFlight,
    PreScore,
    Reserve,
    Score,
    ScoreNodes,
    a,
    nodes,
)

POD = a_pod()
NO = fw.unschedulable("no")
BOOM = RuntimeError("boom")

Act = Callable[[Framework, fw.CycleState], Any]


def to(point: str, further: Callable[[], object] = lambda: "n") -> Act:
    """What runs an extension point for a pod; `further`: its last argument."""

    def act(framework: Framework, state: fw.CycleState) -> Any:
        answer = getattr(framework, f"run_{point}")(state, a_pod(), further())
        return run(answer) if iscoroutine(answer) else answer

    return act


do_pre_filter = to("pre_filter", lambda: Diagnosis(1))
do_filter = to("filter", lambda: everything(nodes("n")))
do_post_filter = to("post_filter", lambda: Diagnosis(1))
do_score = to("score", lambda: np.array([0]))
do_reserve, do_unreserve, do_permit = to("reserve"), to("unreserve"), to("permit")
do_pre_flight, do_pre_bind = to("pre_bind_pre_flight"), to("pre_bind")
do_bind, do_post_bind = to("bind"), to("post_bind")


class SignedScore(ScoreNodes, fw.SignPlugin):
    aspects = fw.Aspect.NODE

    def sign(self, pod: fw.Pod) -> Hashable:
        return self.say(f"signs {pod.uid}") and None


class Normalize(ScoreNodes, fw.NormalizeScorePlugin):
    """Raises its answer when it normalises."""

    def score_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: Any) -> None:
        return None

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: Any) -> Any:
        return self.say("")


class NoStatus(FilterNodes):
    """Refuses, and raises when it is asked why."""

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        raise BOOM


@pytest.mark.parametrize(
    ("kind", "act", "message"),
    [
        (PreFilter, do_pre_filter, 'running PreFilter plugin "Bad": RuntimeError: boom'),
        (Filter, do_filter, 'running "Bad" filter plugin: RuntimeError: boom'),
        (FilterNodes, do_filter, 'running "Bad" filter plugin: RuntimeError: boom'),
        (Extensions, do_filter, 'running AddPod on PreFilter plugin "Bad": RuntimeError: boom'),
        (PostFilter, do_post_filter, 'running PostFilter plugin "Bad": RuntimeError: boom'),
        (PreScore, do_score, 'running PreScore plugin "Bad": RuntimeError: boom'),
        (Score, do_score, 'running Score plugins: plugin "Bad" failed with: RuntimeError: boom'),
        (ScoreNodes, do_score, 'running Score plugins: plugin "Bad" failed with: RuntimeError: boom'),
        (Normalize, do_score, 'running Normalize on Score plugins: plugin "Bad" failed with: RuntimeError: boom'),
        (SignedScore, do_score, 'running Sign plugin "Bad": RuntimeError: boom'),
        (SignedScore, do_filter, 'running Sign plugin "Bad": RuntimeError: boom'),
        (Reserve, do_reserve, 'running Reserve plugin "Bad": RuntimeError: boom'),
        (Permit, do_permit, 'running Permit plugin "Bad": RuntimeError: boom'),
        (PreFlight, do_pre_flight, 'running PreBindPreFlight plugin "Bad": RuntimeError: boom'),
        (PreBind, do_pre_bind, 'running PreBind plugin "Bad": RuntimeError: boom'),
        (Bind, do_bind, 'running Bind plugin "Bad": RuntimeError: boom'),
    ],
)
def test_what_a_plugin_raises_is_told_with_its_name(kind: type[fw.Plugin], act: Act, message: str) -> None:
    framework = a_framework(a(kind, "Bad", BOOM), a(Score, "Good", {}), nominated={"n": [a_pod("promised")]})

    with pytest.raises(fw.PluginError) as caught:
        act(framework, fw.CycleState())

    assert (caught.value.plugin, str(caught.value)) == ("Bad", message)
    assert caught.value.__cause__ is BOOM


@pytest.mark.parametrize(
    ("kind", "act", "message"),
    [
        (Reserve, do_unreserve, 'running Unreserve plugin "Bad": RuntimeError: boom'),
        (PostBind, do_post_bind, 'running PostBind plugin "Bad": RuntimeError: boom'),
    ],
)
def test_what_comes_too_late_to_stop_the_pod_is_returned(kind: type[fw.Plugin], act: Act, message: str) -> None:
    errors = act(a_framework(a(kind, "Bad", BOOM), a(kind, "Good")), fw.CycleState())

    assert [str(error) for error in errors] == [message]


def test_an_error_without_words_is_told_by_its_kind() -> None:
    with pytest.raises(fw.PluginError, match=r'running Reserve plugin "Bad": KeyError$'):
        do_reserve(a_framework(a(Reserve, "Bad", KeyError())), fw.CycleState())


def test_a_plugin_that_cannot_tell_why_it_refuses_is_named() -> None:
    framework, state = a_framework(a(NoStatus, "Bad", {"n": NO})), fw.CycleState()

    outcome = do_filter(framework, state)

    for ask in (
        lambda: outcome.status(state, POD, 0),
        lambda: outcome.count_into(Diagnosis(1), state, POD),
        lambda: framework.filtering.run_one(state, POD, 0),
    ):
        with pytest.raises(fw.PluginError, match='running "Bad" filter plugin: RuntimeError: boom'):
            ask()


@pytest.mark.parametrize(
    ("kind", "act"),
    [(Reserve, do_reserve), (PreBind, do_pre_bind), (Bind, do_bind)],
    ids=["Reserve", "PreBind", "Bind"],
)
@pytest.mark.parametrize("status", [NO, fw.unresolvable("no"), fw.pending("no")])
def test_the_first_refusal_is_the_answer(kind: type[fw.Plugin], act: Act, status: fw.Status) -> None:
    log: list[str] = []

    refusal = act(a_framework(a(kind, "A", status, log), a(kind, "B", None, log)), fw.CycleState())

    assert refusal == status.by("A")
    assert len(log) == 1


@pytest.mark.parametrize(
    ("kind", "act", "status"),
    [
        (kind, act, Status(code, ("odd",)))
        for kind, act in ((Reserve, do_reserve), (Permit, do_permit), (PreBind, do_pre_bind), (Bind, do_bind))
        for code in (Code.ERROR, Code.WAIT, Code.SKIP)
        if (kind, code) != (Bind, Code.SKIP)
    ],
)
def test_any_other_status_is_an_error(kind: type[fw.Plugin], act: Act, status: fw.Status) -> None:
    said = "odd" if status.code is Code.ERROR else f".* answered {status.code.label}: odd; it may answer None"
    with pytest.raises(fw.PluginError, match=f'running {kind.__name__} plugin "Odd": {said}'):
        act(a_framework(a(kind, "Odd", status)), fw.CycleState())


@pytest.mark.parametrize("status", [NO, fw.unresolvable("no"), Status(Code.ERROR, ("no",))])
def test_pre_score_may_only_pass_or_skip(status: fw.Status) -> None:
    with pytest.raises(fw.PluginError, match=r'running PreScore plugin "Odd": .*no'):
        do_score(a_framework(a(PreScore, "Odd", status), a(Score, "Good", {})), fw.CycleState())


def test_post_filter_counts_pending_as_unschedulable_and_reports_any_other_answer() -> None:
    refused = a_framework(a(PostFilter, "A", (None, fw.pending("later"))), a(PostFilter, "B", (None, NO)))
    odd = a_framework(a(PostFilter, "A", (None, NO)), a(PostFilter, "Odd", (None, Status(Code.ERROR, ("odd",)))))

    assert do_post_filter(refused, fw.CycleState()) == (None, Status(Code.UNSCHEDULABLE, ("later", "no"), "A"))
    with pytest.raises(fw.PluginError, match=r"^odd$") as caught:
        do_post_filter(odd, fw.CycleState())
    assert caught.value.plugin == "Odd"


def test_post_filter_is_shown_why_each_node_was_refused() -> None:
    log: list[str] = []
    framework = a_framework(a(PostFilter, "Preempt", (None, None), log))

    framework.run_post_filter(fw.CycleState(), POD, Diagnosis(2, node_to_status={"a": NO, "b": NO}))

    assert log == ["Preempt a,b"]


@pytest.mark.parametrize(
    ("plugin", "act", "point", "status"),
    [
        (a(PreFilter, answer=NO), do_pre_filter, "PreFilter", "Unschedulable"),
        (
            a(PreFilter, answer=fw.PreFilterResult(frozenset())),
            do_pre_filter,
            "PreFilter",
            "UnschedulableAndUnresolvable",
        ),
        (a(PostFilter, answer=(None, None)), do_post_filter, "PostFilter", "Success"),
        (a(PostFilter, answer=(None, fw.pending("x"))), do_post_filter, "PostFilter", "Unschedulable"),
        (a(Reserve, answer=fw.pending("x")), do_reserve, "Reserve", "Pending"),
        (a(Permit, answer=NO), do_permit, "Permit", "Unschedulable"),
        (a(Permit), do_permit, "Permit", "Success"),
        (a(PreFlight, answer=fw.SKIP), do_pre_flight, "PreBindPreFlight", "Skip"),
        (a(PreBind, answer=NO), do_pre_bind, "PreBind", "Unschedulable"),
        (a(Bind, answer=NO), do_bind, "Bind", "Unschedulable"),
        (a(Reserve, answer=BOOM), do_unreserve, "Unreserve", "Success"),
        (a(PostBind, answer=BOOM), do_post_bind, "PostBind", "Success"),
    ],
)
def test_an_extension_point_is_timed_by_what_came_of_it(plugin: fw.Plugin, act: Act, point: str, status: str) -> None:
    metrics = Metrics()

    act(a_framework(plugin, metrics=metrics, profile="mine"), fw.CycleState())

    samples = [
        sample.labels
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "scheduler_framework_extension_point_duration_seconds_count"
    ]
    assert samples == [{"extension_point": point, "status": status, "profile": "mine"}]


@pytest.mark.parametrize("answer", [BOOM, Status(Code.ERROR, ("boom",))], ids=["raises", "says error"])
@pytest.mark.parametrize(
    ("kind", "act", "point"),
    [
        (PreFilter, do_pre_filter, "PreFilter"),
        (Filter, do_filter, "Filter"),
        (PreScore, do_score, "PreScore"),
        (Reserve, do_reserve, "Reserve"),
        (Permit, do_permit, "Permit"),
        (PreFlight, do_pre_flight, "PreBindPreFlight"),
        (PreBind, do_pre_bind, "PreBind"),
        (Bind, do_bind, "Bind"),
    ],
)
def test_a_plugin_that_fails_and_its_extension_point_are_timed_as_errors(
    kind: type[fw.Plugin], act: Act, point: str, answer: object
) -> None:
    metrics, state = Metrics(), fw.CycleState()
    state.record_plugin_metrics = True

    with pytest.raises(fw.PluginError, match="boom") as caught:
        act(a_framework(a(kind, "Bad", answer), a(Score, "Good", {}), metrics=metrics, profile="mine"), state)

    assert (caught.value.plugin, caught.value.point) == ("Bad", point)
    ended = {"extension_point": point, "status": "Error"}
    assert sample(metrics, "scheduler_framework_extension_point_duration_seconds_count", profile="mine", **ended) == 1
    assert sample(metrics, "scheduler_plugin_execution_duration_seconds_count", plugin="Bad", **ended) == 1


def test_scoring_without_score_plugins_is_not_timed() -> None:
    metrics = Metrics()

    do_score(a_framework(a(PreScore), metrics=metrics), fw.CycleState())

    assert [family.samples for family in metrics.framework_extension_point_duration.collect()] == [[]]


def test_a_pod_is_signed_once_a_version_and_profile() -> None:
    log: list[str] = []
    signer = a(SignedScore, "S", None, log)
    one, other = a_framework(signer, profile="one"), a_framework(signer, profile="other")
    pod = a_pod(uid="first")

    for framework in (one, one, other, other):
        framework.pod_classes.of(pod)
    one.pod_classes.of(a_pod(uid="second"))

    assert log == ["S signs first", "S signs first", "S signs second"]


def test_a_plugin_that_cannot_sign_a_pod_has_no_signature() -> None:
    class Signs(Filter, Score, fw.SignPlugin):
        aspects = fw.Aspect.NODE

        def sign(self, pod: fw.Pod) -> Hashable | None:
            return pod.labels.get("app")

    framework = a_framework(a(Signs, "One"), a(Signs, "Two"), a(Filter, "Three"))

    classes = framework.pod_classes
    assert classes.of(a_pod()).pod_class.signatures == {}
    assert classes.of(a_pod(labels={"app": "web"})).pod_class.signatures == {"One": "web", "Two": "web"}
