"""What the framework makes of the answers at each extension point, except Filter and Score."""

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.plugin import (
    MAX_PERMIT_SECONDS,
    BindPlugin,
    PermitPlugin,
    PermitWait,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler.framework.status import SKIP, Code, Status, pending, unresolvable, unschedulable
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.fakes import a_framework, fail, plugin
from tests.unit.runtime.fakes import ERROR, answer, later, some

# PreFilter.


def pre_filtered(*answers: object) -> tuple[CycleState, Diagnosis, frozenset[str] | None, Status | None]:
    plugins = [plugin(PreFilterPlugin, f"P{i}", pre_filter=answer(each)) for i, each in enumerate(answers)]
    state, diagnosis = CycleState(), Diagnosis(3)
    names, refusal = a_framework(*plugins).run_pre_filter(state, a_pod(), diagnosis)
    return state, diagnosis, names, refusal


@pytest.mark.parametrize(
    ("answers", "names", "refusal", "blamed"),
    [
        pytest.param((None,), None, None, set(), id="all nodes"),
        pytest.param((some("a"), None), frozenset("a"), None, {"P0"}, id="some nodes"),
        pytest.param((some("a", "b"), some("b", "c")), frozenset("b"), None, {"P0", "P1"}, id="common nodes"),
        pytest.param(
            (None, some()),
            frozenset(),
            unresolvable("node(s) didn't satisfy plugin P1"),
            {"P1"},
            id="no node",
        ),
        pytest.param(
            (some("b"), some("a")),
            frozenset(),
            unresolvable("node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"),
            {"P0", "P1"},
            id="no common node",
        ),
        pytest.param(
            (some("a"), unresolvable("never"), fail),
            None,
            unresolvable("never").by("P1"),
            set(),
            id="unresolvable ends it",
        ),
        pytest.param(
            (unschedulable("not now"), some("a")),
            frozenset("a"),
            unschedulable("not now").by("P0"),
            {"P1"},
            id="unschedulable goes on",
        ),
        pytest.param(
            (unschedulable("not now"), unresolvable("never")),
            None,
            unresolvable("never").by("P1"),
            set(),
            id="unresolvable wins",
        ),
    ],
)
def test_answers_of_pre_filter_are_merged(
    answers: tuple[object, ...], names: frozenset[str] | None, refusal: Status | None, blamed: set[str]
) -> None:
    _, diagnosis, found, status = pre_filtered(*answers)

    assert (found, status, diagnosis.unschedulable_plugins) == (names, refusal, blamed)


def test_a_pre_filter_that_skips_leaves_the_filter_of_its_plugin_out() -> None:
    state, _, names, refusal = pre_filtered(SKIP, None)

    assert (state.skip_filter, names, refusal) == (frozenset({"P0"}), None, None)


@pytest.mark.parametrize("timed", [False, True])
def test_a_plugin_that_a_pod_does_not_concern_is_asked_only_to_be_timed(timed: bool) -> None:
    asked: list[str] = []
    plugins = [
        plugin(PreFilterPlugin, name, pre_filter=lambda *_, name=name: asked.append(name), concerns=answer(concerned))
        for name, concerned in (("Yes", True), ("No", False))
    ]
    state = CycleState()
    state.record_plugin_metrics = timed

    a_framework(*plugins).run_pre_filter(state, a_pod(), Diagnosis(3))

    assert asked == (["Yes", "No"] if timed else ["Yes"])
    assert state.skip_filter == (set() if timed else {"No"})


def test_a_plugin_that_cannot_tell_whether_a_pod_concerns_it_is_named() -> None:
    framework = a_framework(plugin(PreFilterPlugin, "P", pre_filter=answer(None), concerns=fail))

    with pytest.raises(PluginError) as raised:
        framework.run_pre_filter(CycleState(), a_pod(), Diagnosis(3))

    assert (raised.value.plugin, raised.value.point) == ("P", "PreFilter")


@pytest.mark.parametrize("odd", [ERROR, pending("broken")], ids=["error", "pending"])
def test_a_pre_filter_that_neither_passes_nor_refuses_is_an_error(odd: Status) -> None:
    with pytest.raises(PluginError, match=r'running PreFilter plugin "P0": .*broken'):
        pre_filtered(odd)


# PostFilter.


@pytest.mark.parametrize(
    ("answers", "result", "status"),
    [
        pytest.param([(PostFilterResult("n"), None), (None, unresolvable("x"))], "n", None, id="first success"),
        pytest.param(
            [(None, unschedulable("x")), (PostFilterResult("n"), None)], "n", None, id="success after a refusal"
        ),
        pytest.param(
            [(None, unresolvable("x")), (PostFilterResult("n"), None)],
            None,
            unresolvable("x").by("P0"),
            id="unresolvable ends it",
        ),
        pytest.param(
            [(None, unschedulable("x")), (PostFilterResult(""), unschedulable("y"))],
            "",
            Status(Code.UNSCHEDULABLE, ("x", "y"), "P0"),
            id="all refuse",
        ),
    ],
)
def test_post_filter_plugins_are_asked_until_one_knows(
    answers: list[object], result: str | None, status: Status | None
) -> None:
    plugins = [plugin(PostFilterPlugin, f"P{i}", post_filter=answer(each)) for i, each in enumerate(answers)]
    found, said = a_framework(*plugins).run_post_filter(CycleState(), a_pod(), Diagnosis(1))

    assert (found and found.nominated_node_name, said) == (result, status)


# PreScore.


def pre_scored(state: CycleState, *plugins: PreScorePlugin) -> None:
    table = NodeTable()
    table.set_node(a_node("n"))
    score = plugin(ScorePlugin, "Score", score=answer(0))
    a_framework(*plugins, score, table=table).run_score(state, a_pod(), np.array([0]))


@pytest.mark.parametrize("timed", [False, True])
def test_a_plugin_whose_score_a_pod_does_not_concern_is_asked_only_to_be_timed(timed: bool) -> None:
    asked: list[str] = []
    plugins = [
        plugin(
            PreScorePlugin,
            name,
            pre_score=lambda *_, name=name: asked.append(name),
            concerns_score=answer(concerned),
        )
        for name, concerned in (("Yes", True), ("No", False))
    ]
    state = CycleState()
    state.record_plugin_metrics = timed

    pre_scored(state, *plugins)

    assert asked == (["Yes", "No"] if timed else ["Yes"])
    assert state.skip_score == {"No"}


def test_a_plugin_that_cannot_tell_whether_a_pod_concerns_its_score_is_named() -> None:
    unsure = plugin(PreScorePlugin, "P", pre_score=answer(None), concerns_score=fail)

    with pytest.raises(PluginError) as raised:
        pre_scored(CycleState(), unsure)

    assert (raised.value.plugin, raised.value.point) == ("P", "PreScore")


# Reserve and Permit.


def reserving(
    name: str, calls: list[str], reserve: object = None, unreserve: object = None, **methods: object
) -> ReservePlugin:
    def do(what: str, outcome: object) -> Callable[..., object]:
        def method(*_: Any) -> object:
            calls.append(f"{what} {name}")
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return method

    return plugin(ReservePlugin, name, reserve=do("reserve", reserve), unreserve=do("unreserve", unreserve), **methods)


def test_reserve_goes_forward_to_the_first_refusal_and_unreserve_back_through_all() -> None:
    calls: list[str] = []
    framework = a_framework(
        reserving("A", calls),
        reserving("B", calls, reserve=unschedulable("no"), unreserve=ValueError("broken")),
        reserving("C", calls),
    )
    refusal = framework.run_reserve(CycleState(), a_pod(), "n")
    errors = framework.run_unreserve(CycleState(), a_pod(), "n")

    assert refusal == unschedulable("no").by("B")
    assert calls == ["reserve A", "reserve B", "unreserve C", "unreserve B", "unreserve A"]
    assert [error.plugin for error in errors] == ["B"]


@pytest.mark.parametrize("timed", [False, True])
def test_reserve_is_asked_only_of_those_whom_the_pod_concerns_and_they_alone_take_it_back(timed: bool) -> None:
    calls: list[str] = []
    concerned_at_first = reserving("Yes", calls, concerns_reserve=lambda _: not calls)
    idle = reserving("No", calls, concerns_reserve=answer(False))
    framework, state = a_framework(concerned_at_first, idle), CycleState()
    state.record_plugin_metrics = timed
    framework.classify(state, a_pod())

    framework.run_reserve(state, a_pod(), "n")
    framework.pod_classes.store.clear()
    framework.run_unreserve(state, a_pod(), "n")

    every = ["reserve Yes", "reserve No", "unreserve No", "unreserve Yes"]
    assert calls == (every if timed else ["reserve Yes", "unreserve Yes"])


def permitting(*answers: object) -> Framework:
    return a_framework(*(plugin(PermitPlugin, f"P{i}", permit=answer(each)) for i, each in enumerate(answers)))


@pytest.mark.parametrize(
    ("answers", "holds", "refusal"),
    [
        pytest.param((None, None), {}, None, id="approved"),
        pytest.param(
            (PermitWait(5), None, PermitWait(7)), {"P0": PermitWait(5), "P2": PermitWait(7)}, None, id="held by two"
        ),
        pytest.param((PermitWait(10**9),), {"P0": PermitWait(MAX_PERMIT_SECONDS)}, None, id="not for ever"),
        pytest.param((PermitWait(5), unschedulable("no")), {}, unschedulable("no").by("P1"), id="denied"),
    ],
)
def test_permit_approves_holds_or_denies(
    answers: tuple[object, ...], holds: dict[str, PermitWait], refusal: Status | None
) -> None:
    assert permitting(*answers).run_permit(CycleState(), a_pod(), "n") == (holds, refusal)


# Binding.


@pytest.mark.parametrize(
    ("answers", "busy", "skipped"),
    [
        pytest.param((), False, set(), id="no plugin"),
        pytest.param((SKIP, SKIP), False, {"P0", "P1"}, id="nobody has work"),
        pytest.param((SKIP, None), True, {"P0"}, id="one has work"),
    ],
)
async def test_only_plugins_with_work_are_called_before_binding(
    answers: tuple[object, ...], busy: bool, skipped: set[str]
) -> None:
    called: list[str] = []

    def pre_bind(name: str) -> Callable[..., Awaitable[None]]:
        async def method(*_: Any) -> None:
            called.append(name)

        return method

    framework = a_framework(
        *(
            plugin(PreBindPlugin, f"P{i}", pre_bind_pre_flight=answer(each), pre_bind=pre_bind(f"P{i}"))
            for i, each in enumerate(answers)
        )
    )
    state = CycleState()

    assert framework.run_pre_bind_pre_flight(state, a_pod(), "n") is busy
    assert state.skip_pre_bind == skipped
    assert await framework.run_pre_bind(state, a_pod(), "n") is None
    assert set(called) == {f"P{i}" for i in range(len(answers))} - skipped


async def test_the_first_bind_plugin_that_does_not_skip_binds() -> None:
    framework = a_framework(
        plugin(BindPlugin, "A", bind=later(SKIP)),
        plugin(BindPlugin, "B", bind=later(None)),
        plugin(BindPlugin, "C", bind=later(ValueError("never asked"))),
    )

    assert await framework.run_bind(CycleState(), a_pod(), "n") is None


async def test_a_pod_that_every_bind_plugin_skips_is_an_error() -> None:
    with pytest.raises(PluginError, match="skipped"):
        await a_framework(plugin(BindPlugin, "A", bind=later(SKIP))).run_bind(CycleState(), a_pod(), "n")
