"""What VolumeBinding writes before a pod is bound, what it waits for, and what ends the wait."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from plugins.volumes.prebind import bind_volume_to_claim
from scheduler import framework as fw
from scheduler.testing import a_node, a_pod
from tests.fakes import run, sample, settle
from tests.unit.plugins.claims import MADE, World, a_claim, a_class, a_pod_with, a_volume

NODE = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
COMPLETED = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
REFERENCE = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "default",
    "name": "data",
    "uid": "uid-data",
    "resourceVersion": "1",
}


def errors(world: World, operation: str) -> float:
    return sample(world.metrics, "scheduler_volume_scheduling_stage_error_total", operation=operation)


async def binding(world: World, pod: fw.Pod, node: str = "a") -> "asyncio.Task[fw.Status | None]":
    """Reserve the pod, and let PreBind go as far as it goes."""
    state = world.reserve(pod, node)
    assert world.plugin.pre_bind_pre_flight(state, pod, node) is None
    task = asyncio.ensure_future(world.plugin.pre_bind(state, pod, node))
    await settle()
    return task


def static_world() -> World:
    return World(a_class(), a_claim(), a_volume(on={"host": ["a"]}))


def made_world() -> World:
    return World(a_class(MADE), a_claim(class_name=MADE))


def test_pods_whose_claims_are_bound_have_nothing_to_write() -> None:
    world = World(a_claim(volume="pv"), a_volume())
    pod = a_pod_with("data")
    state = world.reserve(pod, "a")

    assert world.plugin.pre_bind_pre_flight(state, pod, "a") == fw.SKIP
    assert world.plugin.pre_bind_pre_flight(fw.CycleState(), a_pod(), "a") == fw.SKIP
    world.plugin.unreserve(fw.CycleState(), a_pod(), "a")


async def test_a_volume_is_told_of_its_claim_and_the_pod_waits_until_the_claim_is_bound() -> None:
    world = static_world()
    task = await binding(world, a_pod_with("data"))
    done = [task.done()]
    volume = world.show(a_volume(on={"host": ["a"]}), spec={"claimRef": REFERENCE})
    await settle()
    done.append(task.done())
    world.show(a_claim(), **COMPLETED, spec={"volumeName": volume.name})
    assert await task is None
    metadata = {"resourceVersion": "1", "annotations": {BY_CONTROLLER: "yes"}}

    assert world.written == [(fw.PERSISTENT_VOLUME, "pv", {"metadata": metadata, "spec": {"claimRef": REFERENCE}})]
    assert done == [False, False]
    assert errors(world, "bind") == 0


async def test_a_claim_is_told_its_node_and_the_pod_waits_until_a_volume_is_made() -> None:
    world = made_world()
    task = await binding(world, a_pod_with("data"), "b")
    claim = world.show(a_claim(class_name=MADE), metadata={"annotations": {NODE: "b"}})
    await settle()
    done = [task.done()]
    claim = world.show(claim, **COMPLETED, spec={"volumeName": "made"})
    await settle()
    done.append(task.done())  # the volume is not seen yet
    world.put(a_volume("made", claim={"namespace": "default", "name": "data"}, on={"host": ["b"]}))
    assert await task is None

    patch = {"metadata": {"resourceVersion": "1", "annotations": {NODE: "b"}}}
    assert world.written == [(fw.PERSISTENT_VOLUME_CLAIM, "data", patch)]
    assert done == [False, False]


def fails(world: World, happen: Callable[[World], Any]) -> str:
    """What PreBind fails with after something has happened."""

    async def scenario() -> str:
        task = await binding(world, a_pod_with("data"))
        happen(world)
        with pytest.raises(ValueError, match="binding volumes") as raised:
            await task
        assert errors(world, "bind") == 1
        return str(raised.value)

    return run(scenario())


def selected(world: World, **changes: Any) -> Any:
    return world.show(a_claim(class_name=MADE), **(changes or {"metadata": {"annotations": {NODE: "a"}}}))


def referred(world: World, **spec: Any) -> Any:
    return world.show(a_volume(on={"host": ["a"]}), spec={"claimRef": REFERENCE, **spec})


ELSEWHERE = {
    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["b"]}]}]}
}


@pytest.mark.parametrize(
    ("world", "happen", "message"),
    [
        (static_world, lambda w: w.gone(referred(w)), 'failed to check binding: persistentvolumes "pv" not found'),
        (
            static_world,
            lambda w: w.gone(a_claim()),
            'failed to check binding: persistentvolumeclaims "default/data" not found',
        ),
        (static_world, lambda w: w.show(referred(w), spec={"claimRef": None}), 'ClaimRef got reset for pv "pv"'),
        (
            static_world,
            lambda w: referred(w, nodeAffinity=ELSEWHERE),
            'pv "pv" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
        ),
        (
            made_world,
            lambda w: w.gone(a_claim()),
            'failed to check provisioning pvc: persistentvolumeclaims "default/data" not found',
        ),
        (
            made_world,
            lambda w: selected(w, metadata={"annotations": None}),
            'selectedNode annotation reset for PVC "data"',
        ),
        (
            made_world,
            lambda w: selected(w, metadata={"annotations": {"other": "x"}}),
            'provisioning failed for PVC "data"',
        ),
    ],
)
def test_what_is_undone_meanwhile_fails_the_binding(
    world: Callable[[], World], happen: Callable[[World], Any], message: str
) -> None:
    assert fails(world(), happen) == f"binding volumes: {message}"


@pytest.mark.parametrize(
    ("happen", "message"),
    [
        (lambda w: w.table.remove_node("a"), 'failed to get node "a": node "a" not found'),
        (lambda w: w.pods.clear(), 'pod does not exist any more: pod "web" not found'),
    ],
    ids=["the node", "the pod"],
)
def test_a_pod_or_node_that_is_gone_ends_the_wait_at_the_next_look(happen: Any, message: str) -> None:
    def wake(world: World) -> None:
        happen(world)
        selected(world)

    assert fails(made_world(), wake) == f"binding volumes: {message}"


def test_the_wait_ends_after_the_time_that_was_set() -> None:
    world = World(a_class(MADE), a_claim(class_name=MADE), timeout=0)

    assert fails(world, lambda _: None) == "binding volumes: context deadline exceeded"


async def test_a_write_that_is_refused_fails_the_binding_and_gives_all_back() -> None:
    conflict = fw.ApiError(409, 'Operation cannot be fulfilled on persistentvolumes "pv"')

    world = static_world()
    world.refusal = conflict
    pod = a_pod_with("data")
    state = world.reserve(pod, "a")
    with pytest.raises(fw.ApiError) as raised:
        await world.plugin.pre_bind(state, pod, "a")
    assert raised.value is conflict
    world.plugin.unreserve(state, pod, "a")
    world.put(a_claim("other"))

    assert world.refusals(a_pod_with("other")) == {"b": ("node(s) didn't find available persistent volumes to bind",)}
    assert errors(world, "bind") == 1


async def test_what_is_written_stays_taken_until_the_watch_shows_it() -> None:
    world = static_world()
    pod = a_pod_with("data")
    task = await binding(world, pod)
    task.cancel()
    await settle()
    world.put(a_claim("other"))

    assert set(world.refusals(a_pod_with("other"))) == {"a", "b"}


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    world = made_world()
    task = await binding(world, a_pod_with("data"))
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()

    assert world.plugin._binder._waiting == {}


async def test_a_change_of_other_claims_wakes_nobody() -> None:
    world = made_world()
    task = await binding(world, a_pod_with("data"))
    waiting = world.plugin._binder._waiting["default", "data"]
    world.put(a_claim("other"), a_volume("another", claim={"namespace": "default", "name": "other"}))
    woken = any(event.is_set() for event in waiting)
    task.cancel()
    await asyncio.wait([task])

    assert woken is False


def test_out_of_date_objects_are_not_assumed() -> None:
    world = static_world()
    binder = world.plugin._binder
    world.show(a_volume())

    with pytest.raises(ValueError, match=r'"pv" is out of sync \(stored: 101, assume: 1\)'):
        binder._volumes.assume(a_volume())
    with pytest.raises(ValueError, match='persistentvolumes "gone" not found'):
        binder._volumes.assume(a_volume("gone"))


def test_a_volume_that_the_user_meant_for_the_claim_is_not_marked_as_the_controller_s() -> None:
    claim = a_claim()
    free = bind_volume_to_claim(a_volume(), claim)
    named = bind_volume_to_claim(a_volume(claim={"namespace": "default", "name": "data"}), claim)

    assert free.annotations == {BY_CONTROLLER: "yes"}
    assert named.annotations == {}
    assert free.spec.claim_ref == named.spec.claim_ref
    assert free.spec.claim_ref is not None
    assert free.spec.claim_ref.uid == "uid-data"
    assert bind_volume_to_claim(free, claim) is free


async def test_the_wait_is_over_for_pods_whose_node_was_made_anew() -> None:
    world = made_world()
    task = await binding(world, a_pod_with("data"))
    world.table.set_node(a_node("a", labels={"host": "other"}))
    claim = selected(world)
    await settle()
    waits = not task.done()
    world.show(claim, **COMPLETED, spec={"volumeName": "made"})
    world.put(a_volume("made", claim={"namespace": "default", "name": "data"}, on={"host": ["a"]}))
    with pytest.raises(ValueError, match="node affinity doesn't match"):
        await task

    assert waits
