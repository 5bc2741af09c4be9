"""Where a pod is on its way, in a user's words."""

from difflib import get_close_matches
from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api import objects
from scheduler.explain import explainer
from scheduler.explain.explainer import Explainer
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import EngineUnderTest, an_engine


async def about(scheduler: EngineUnderTest, name: str, namespace: str = "default") -> dict[str, Any]:
    report = await Explainer(scheduler.engine, scheduler.clock).about(namespace, name)
    document: dict[str, Any] = msgspec.to_builtins(report)
    return document


async def test_a_refused_pod_says_who_refused_it_and_what_may_wake_it() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("n", cpu="1"), a_pod("web", requests={"cpu": 2}))
    await scheduler.schedule()
    document = await about(scheduler, "web")
    assert document["state"] == "unschedulable"
    lines = document["about"]
    assert isinstance(lines, list)
    assert "tried once" in lines
    assert any(line.startswith("refused by NodeResourcesFit; may be woken by ") for line in lines)
    assert document["explanation"]["groups"][0]["count"] == 1


async def test_a_pod_that_backs_off_says_for_how_long() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("n", cpu="1"), a_pod("web", requests={"cpu": 2}))
    await scheduler.schedule()
    scheduler.see(a_node("m", cpu="1500m"))
    scheduler.see(a_node("m", cpu="4"))
    document = await about(scheduler, "web")
    assert document["state"] == "backing off"
    assert "tried again in 0.8 s" in document["about"]


async def test_a_gated_pod_is_explained_as_if_it_was_not() -> None:
    scheduler = an_engine()
    gated = a_pod("web")
    gates = (objects.PodSchedulingGate(name="example.com/quota"),)
    gated = msgspec.structs.replace(gated, spec=msgspec.structs.replace(gated.spec, scheduling_gates=gates))
    scheduler.see(a_node("n"), gated)
    document = await about(scheduler, "web")
    assert document["state"] == "gated"
    assert document["explanation"]["nodes"]["fitting"] == 1


async def test_a_bound_pod_says_where() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("n"), a_pod("web", node_name="n"))
    document = await about(scheduler, "web")
    assert document["state"] == "runs on n"
    assert "explanation" not in document


async def test_a_pod_of_a_scheduler_with_almost_our_name_is_told_so() -> None:
    scheduler = an_engine(profiles=("loadmaster",))
    pod = a_pod("web")
    scheduler.see(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name="loadmastr")))
    document = await about(scheduler, "web")
    assert document["state"] == "is for another scheduler: 'loadmastr'"
    assert document["about"] == [
        "its spec.schedulerName is 'loadmastr': did you mean 'loadmaster'?",
        "this scheduler places pods of loadmaster",
    ]


async def test_a_name_of_a_scheduler_is_no_longer_than_names_are() -> None:
    scheduler = an_engine()
    pod = a_pod("web")
    long = msgspec.structs.replace(pod.spec, scheduler_name="loadmaster" * 50_000)
    scheduler.see(msgspec.structs.replace(pod, spec=long))
    document = await about(scheduler, "web")
    assert len(str(document["state"])) < 300
    assert all(len(line) < 300 for line in document["about"])


async def test_the_nearest_of_many_names_are_found() -> None:
    scheduler = an_engine()
    names = [f"web-{number}" for number in range(20)]
    scheduler.see(*map(a_pod, names))

    document = await about(scheduler, "web-17x")

    near = get_close_matches("default/web-17x", [f"default/{name}" for name in names], 3)
    assert (document["found"], document["near"]) == (False, near)


async def test_names_are_compared_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explainer, "NEAR_SECONDS", 0.0)
    scheduler = an_engine()
    scheduler.see(*(a_pod(f"{'k' * 40}-{number}") for number in range(explainer.NEAR_AT_ONCE)), a_pod("web-1"))

    document = await about(scheduler, "wep-1")

    assert document["near"] == [], "the name in turn after the others"


async def test_a_pod_that_a_plugin_holds_says_which() -> None:
    class Holds(fw.PermitPlugin):
        name = "Holds"

        def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
            return fw.PermitWait(60, "quota")

    scheduler = an_engine(Holds)
    scheduler.see(a_node("n"), a_pod("web"))
    await scheduler.schedule()
    document = await about(scheduler, "web")
    assert document["state"] == "being tried"
    assert "waits for the Permit of Holds: quota (1m0s left)" in document["about"]
    scheduler.framework.handle.waiting_pods.reject("default/web")
    await scheduler.loop.finish(1)
