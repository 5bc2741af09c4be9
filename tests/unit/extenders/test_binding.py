"""Bindings by an extender: what its answers mean, and what becomes of a binding that it only talks about."""

from typing import Any

import pytest

from scheduler.config.extenders import ManagedResource
from scheduler.extenders import binding as extender_binding
from scheduler.extenders.chain import FoundPod
from scheduler.framework.errors import ClusterError
from scheduler.testing import a_node, a_pod
from tests.fakes import Unschedulable, settle
from tests.fakes.extenders import FakeExtender, FakePods, an_extender, extender_access, failing
from tests.unit.cycle.fakes import EngineUnderTest, an_engine, newer

BOUND, ELSEWHERE, UNBOUND = FoundPod(b"{}", "n0"), FoundPod(b"{}", "n9"), FoundPod(b"{}", "")


def a_binder(*answers: Any, **settings: Any) -> FakeExtender:
    settings |= {"filter_verb": "", "prioritize_verb": "", "preempt_verb": "", "bind_verb": "bind"}
    return an_extender({"bind": answers[0]} if answers else {}, hangs=False, **settings)


def with_a_node(binder: FakeExtender, found: FoundPod | ClusterError | None = UNBOUND) -> EngineUnderTest:
    scheduler = an_engine(extender_access=extender_access(binder, pods=FakePods({"default/web": found})))
    scheduler.see(a_node("n0"))
    return scheduler


async def tried(binder: FakeExtender, found: FoundPod | ClusterError | None = UNBOUND) -> EngineUnderTest:
    """An engine that has found a node for a pod."""
    scheduler = with_a_node(binder, found)
    scheduler.see(a_pod("web"))
    await scheduler.schedule()
    return scheduler


async def test_an_extender_binds_in_place_of_the_plugins() -> None:
    binder = a_binder()
    scheduler = await tried(binder)

    assert binder.asked == [
        ("bind", {"PodName": "web", "PodNamespace": "default", "PodUID": "default/web", "Node": "n0"})
    ]
    assert scheduler.world.asked == []
    assert scheduler.world.notes("Scheduled") == ["Successfully assigned default/web to n0"]
    assert scheduler.cache.is_assumed("default/web")


@pytest.mark.parametrize(
    "binder",
    [
        pytest.param(a_binder(managed_resources=(ManagedResource("example.com/gpu"),)), id="a pod of no interest"),
        pytest.param(a_binder(lambda _: {"Error": "no device"}, ignorable=True), id="one that is ignorable fails"),
    ],
)
async def test_the_plugins_take_over(binder: FakeExtender) -> None:
    assert (await tried(binder)).world.bound == {"default/web": "n0"}


async def test_a_refusal_sends_the_pod_back() -> None:
    scheduler = await tried(a_binder(lambda _: {"Error": "no device"}))

    assert scheduler.world.written(Unschedulable)[-1].message == "no device"
    assert not scheduler.cache.is_assumed("default/web")
    assert scheduler.where("default/web") == "backoff"


@pytest.mark.parametrize("ignorable", [False, True])
async def test_a_lost_answer_is_settled_by_a_read(ignorable: bool) -> None:
    scheduler = await tried(a_binder(failing(), ignorable=ignorable), BOUND)

    assert scheduler.world.asked == [], "nothing is bound twice"
    assert scheduler.world.notes("Scheduled") == ["Successfully assigned default/web to n0"]


@pytest.mark.parametrize(
    ("found", "text"),
    [(ELSEWHERE, "the pod is bound to node 'n9'"), (None, "the pod is gone"), (UNBOUND, "it is away")],
)
async def test_what_the_read_finds_otherwise_ends_the_binding(found: FoundPod | None, text: str) -> None:
    scheduler = await tried(a_binder(failing()), found)

    assert scheduler.world.written(Unschedulable)[-1].message == text
    assert not scheduler.cache.is_assumed("default/web")


async def test_what_was_never_sent_needs_no_read() -> None:
    pods = FakePods()
    scheduler = an_engine(extender_access=extender_access(a_binder(failing("refused", was_sent=False)), pods=pods))
    scheduler.see(a_node("n0"), a_pod("web"))

    await scheduler.schedule()

    assert pods.read_uids == []
    assert scheduler.where("default/web") == "backoff"


async def test_a_read_that_fails_is_repeated_and_the_pod_counts_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_binding, "READ_AGAIN_SECONDS", 0.0)
    pods = FakePods({"default/web": ClusterError("away")})
    scheduler = an_engine(extender_access=extender_access(a_binder(failing()), pods=pods))
    scheduler.see(a_node("n0"), a_pod("web"))
    await scheduler.schedule()
    assert scheduler.cache.is_assumed("default/web")

    pods.found["default/web"] = BOUND
    await settle()

    assert scheduler.world.notes("Scheduled") == ["Successfully assigned default/web to n0"]


async def test_a_node_that_changed_is_not_bound_to() -> None:
    binder = a_binder()
    scheduler = with_a_node(binder)
    scheduler.see(a_pod("web", requests={"cpu": "3"}))
    scheduler.loop.schedule_one(scheduler.pop())

    scheduler.see(a_pod("rival", requests={"cpu": "3"}, node_name="n0"))
    await settle()

    assert binder.asked == []
    assert "changed since it was chosen" in scheduler.world.written(Unschedulable)[-1].message


async def test_a_binding_that_was_only_talked_about_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_binding, "CONFIRM_SECONDS", (0.0, 0.0))
    scheduler = await tried(a_binder())

    assert not scheduler.cache.is_assumed("default/web")
    assert scheduler.where("default/web") == "active"


@pytest.mark.parametrize("found", [BOUND, ELSEWHERE, None])
async def test_one_that_the_watch_has_yet_to_show_is_not(
    monkeypatch: pytest.MonkeyPatch, found: FoundPod | None
) -> None:
    monkeypatch.setattr(extender_binding, "CONFIRM_SECONDS", (0.0,))
    scheduler = await tried(a_binder(), found)

    assert scheduler.cache.is_assumed("default/web")
    assert scheduler.where("default/web") == ""


async def test_one_that_the_watch_has_shown_costs_no_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_binding, "CONFIRM_SECONDS", (0.0,))
    pods = FakePods()
    scheduler = an_engine(extender_access=extender_access(a_binder(), pods=pods))
    pod = a_pod("web")
    scheduler.see(a_node("n0"), pod)
    scheduler.loop.schedule_one(scheduler.pop())

    scheduler.see(newer(pod, node_name="n0"))
    await settle()

    assert pods.read_uids == []
    assert not scheduler.cache.is_assumed("default/web")
