"""DynamicResources: a pod's claims on their way from waiting for them to writing what they got."""

import asyncio
import dataclasses
from typing import Any

import msgspec
import numpy as np
import pytest

from plugins.dynamic_resources.allocation.catalog import catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.plugin import (
    DEALLOCATED,
    NOT_ALLOCATABLE,
    NOT_AVAILABLE,
    NOTHING_TO_DEALLOCATE,
    DynamicResources,
)
from scheduler import framework as fw
from scheduler.api.decoding import reread
from scheduler.api.devices import DeviceStatus, ResourceClaim
from scheduler.framework.duration import Duration
from scheduler.framework.errors import ApiError
from scheduler.process.metrics import Metrics
from scheduler.state.objects import ObjectStore
from scheduler.testing import started
from tests.fakes import settle
from tests.unit.plugins.devices import (
    DRIVER,
    Api,
    Attempt,
    OneGroup,
    a_claim,
    a_class,
    a_device,
    a_request,
    a_slice,
    a_world,
    allocated,
    claiming,
    put,
)

GPUS = (a_slice("n1", a_device("d0"), a_device("d1")), a_slice("n2", a_device("d0")))


def a_plugin(*objects: Any) -> tuple[DynamicResources, ObjectStore, Api]:
    handle, store, api = a_world(*objects)
    return started(DynamicResources(), handle), store, api


def stored(store: ObjectStore, name: str) -> ResourceClaim:
    claim = store.get(fw.RESOURCE_CLAIM, name, "default")
    assert isinstance(claim, ResourceClaim)
    return claim


def refusal(reason: str) -> fw.Status:
    return fw.unresolvable(reason)


def test_pods_without_claims_are_nothing_to_it() -> None:
    plugin, _, _ = a_plugin()
    attempt = Attempt(plugin, claiming("p"))

    assert plugin.pre_enqueue(claiming("p")) is None
    assert attempt.pre_filter == fw.SKIP
    assert attempt.post_filter() == NOTHING_TO_DEALLOCATE
    assert attempt.scores() == []
    assert attempt.reserve("n1") is None
    assert plugin.pre_bind_pre_flight(attempt.state, attempt.pod, "n1") == fw.SKIP
    attempt.unreserve("n1")


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(claiming("p", "absent"), 'could not find ResourceClaim "default/absent"', id="no such claim"),
        pytest.param(claiming("p", "made*"), 'pod "default/p": ResourceClaim not created yet', id="not made yet"),
        pytest.param(claiming("p", "going"), 'resourceclaim "going" is being deleted', id="being deleted"),
        pytest.param(
            claiming("p", "made*", resourceClaimStatuses=[{"name": "made", "resourceClaimName": "mine"}]),
            "ResourceClaim default/mine was not created for Pod default/p (Pod is not owner)",
            id="made for somebody else",
        ),
    ],
)
def test_a_pod_waits_for_its_claims(pod: fw.Pod, reason: str) -> None:
    going = a_claim("going")
    meta = msgspec.structs.replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    plugin, _, _ = a_plugin(a_claim("mine"), msgspec.structs.replace(going, metadata=meta))

    assert plugin.pre_enqueue(pod) == refusal(reason)
    assert Attempt(plugin, pod).pre_filter == refusal(reason)


def test_a_claim_that_was_left_out_on_purpose_is_not_waited_for() -> None:
    plugin, _, _ = a_plugin()
    pod = claiming("p", "made*", resourceClaimStatuses=[{"name": "made"}])

    assert plugin.pre_enqueue(pod) is None
    assert Attempt(plugin, pod).pre_filter == fw.SKIP


def test_a_missing_class_refuses_the_pod_everywhere() -> None:
    either = {"name": "q", "firstAvailable": [{"name": "s", "deviceClassName": "absent"}]}
    plugin, _, _ = a_plugin(a_claim("one", a_request("q", "absent")), a_claim("two", either))

    assert Attempt(plugin, claiming("p", "one")).pre_filter == refusal("request q: device class absent does not exist")
    assert Attempt(plugin, claiming("p", "two")).pre_filter == refusal(
        "request q/s: device class absent does not exist"
    )


def test_nodes_without_devices_are_refused() -> None:
    plugin, _, _ = a_plugin(*GPUS, a_claim("c", a_request(count=2)))
    attempt = Attempt(plugin, claiming("p", "c"))

    assert attempt.pre_filter is None
    assert (attempt.filter("n1"), attempt.filter("n2")) == (None, NOT_ALLOCATABLE)


async def test_devices_are_taken_in_memory_then_written() -> None:
    plugin, store, api = a_plugin(*GPUS, a_claim("c"))
    first = Attempt(plugin, claiming("first", "c"))
    assert first.filter("n2") is None
    assert first.reserve("n2") is None

    waiting = Attempt(plugin, claiming("second", "c"))
    await first.pre_bind("n2")

    assert waiting.pre_filter == refusal("resource claim default/c is in the process of being allocated")
    written = stored(store, "c")
    assert [(each.pool, each.device) for each in written.results] == [("n2", "d0")]
    assert [each.uid for each in written.status.reserved_for or ()] == ["first"]
    assert written.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert [subresource for subresource, _ in api.patches] == ["", "status"]
    later = Attempt(plugin, claiming("second", "c"))
    assert (later.filter("n1"), later.filter("n2")) == (NOT_AVAILABLE, None)


def test_reserved_devices_are_taken_for_other_claims() -> None:
    plugin, _, _ = a_plugin(*GPUS, a_claim("c"), a_claim("d"))
    first = Attempt(plugin, claiming("first", "c"))
    first.filter("n2")
    first.reserve("n2")

    assert Attempt(plugin, claiming("second", "d")).filter("n2") == NOT_ALLOCATABLE
    first.unreserve("n2")
    assert Attempt(plugin, claiming("second", "d")).filter("n2") is None


def test_devices_are_found_again_although_others_of_the_group_found_none_meanwhile() -> None:
    plugin, _, _ = a_plugin(*GPUS, a_claim("c"), a_claim("d"))
    first, second = (Attempt(plugin, claiming(name, claim)) for name, claim in (("first", "c"), ("second", "d")))
    assert first.filter("n2") is None
    first.reserve("n2")
    assert second.filter("n2") == NOT_ALLOCATABLE

    first.unreserve("n2")

    assert first.reserve("n2") is None


async def test_what_was_written_counts_before_the_watch_shows_it() -> None:
    plugin, store, api = a_plugin(*GPUS, a_claim("c"), a_claim("d"))
    api.late = True
    first = Attempt(plugin, claiming("first", "c"))
    first.filter("n2")
    first.reserve("n2")

    await first.pre_bind("n2")

    assert stored(store, "c").status.allocation is None
    assert Attempt(plugin, claiming("second", "d")).filter("n2") == NOT_ALLOCATABLE
    assert Attempt(plugin, claiming("third", "c")).filter("n1") == NOT_AVAILABLE
    api.show()
    assert Attempt(plugin, claiming("second", "d")).filter("n2") == NOT_ALLOCATABLE
    store.remove(fw.RESOURCE_CLAIM, "claim-c")
    assert Attempt(plugin, claiming("second", "d")).filter("n2") is None


async def test_pods_that_share_a_claim_write_one_after_the_other() -> None:
    plugin, store, api = a_plugin(*GPUS, a_claim("c", status=allocated("n1/d0")))
    api.late = True
    attempts = [Attempt(plugin, claiming(name, "c")) for name in ("one", "other", "third")]

    await asyncio.gather(*(each.pre_bind("n1") for each in attempts))

    api.show()

    assert [each.uid for each in stored(store, "c").status.reserved_for or ()] == ["one", "other", "third"]
    assert len(api.patches) == 3  # no conflict


async def test_a_claim_is_shared_by_pods_that_are_tried_together() -> None:
    handle, store, api = a_world(*GPUS, a_claim("c"))
    plugin = started(DynamicResources(), dataclasses.replace(handle, pod_groups=OneGroup()))
    first = Attempt(plugin, claiming("first", "c"), with_its_group=True)
    first.filter("n2")
    first.reserve("n2")

    second = Attempt(plugin, claiming("second", "c"), with_its_group=True)
    where = second.filter("n1"), second.filter("n2")
    second.reserve("n2")
    first.unreserve("n2")
    alone = Attempt(plugin, claiming("third", "c"))
    first.reserve("n2")
    await asyncio.gather(first.pre_bind("n2"), second.pre_bind("n2"))

    assert where == (NOT_AVAILABLE, None)
    assert alone.pre_filter == refusal("resource claim default/c is in the process of being allocated")
    written = stored(store, "c")
    assert [(each.pool, each.device) for each in written.results] == [("n2", "d0")]
    assert [each.uid for each in written.status.reserved_for or ()] == ["first", "second"]
    assert api.errors == []


async def test_a_conflict_is_tried_again_with_the_newest_version() -> None:
    plugin, store, api = a_plugin(*GPUS, a_claim("c"))
    api.errors = [ApiError(409, "the object has been modified")]
    attempt = Attempt(plugin, claiming("p", "c"))
    attempt.filter("n1")
    attempt.reserve("n1")
    plugin._writer._sleep = lambda seconds: asyncio.sleep(0)

    await attempt.pre_bind("n1")

    assert stored(store, "c").status.allocation is not None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            a_claim("c", status=allocated("n1/d1"), version="2"), "allocated elsewhere in the meantime", id="allocated"
        ),
        pytest.param(None, "not found", id="deleted"),
    ],
)
async def test_a_claim_that_changed_meanwhile_fails_the_binding(change: ResourceClaim | None, problem: str) -> None:
    plugin, store, _ = a_plugin(*GPUS, a_claim("c"))
    attempt = Attempt(plugin, claiming("p", "c"))
    attempt.filter("n1")
    attempt.reserve("n1")
    plugin._writer._sleep = lambda seconds: asyncio.sleep(0)
    store.remove(fw.RESOURCE_CLAIM, "claim-c")
    put(store, change or a_claim("other"))

    with pytest.raises(Exception, match=problem):
        await attempt.pre_bind("n1")

    assert catalog_of(plugin.handle).allocations.in_flight("claim-c") is None


async def test_unreserve_takes_the_pod_out_of_claims_that_were_written() -> None:
    plugin, store, _ = a_plugin(*GPUS, a_claim("c", status=allocated("n1/d0", reserved_for=("other",))))
    attempt = Attempt(plugin, claiming("p", "c"))

    await attempt.pre_bind("n1")
    before = [each.uid for each in stored(store, "c").status.reserved_for or ()]
    attempt.unreserve("n1")
    await settle()

    assert [before, [each.uid for each in stored(store, "c").status.reserved_for or ()]] == [["other", "p"], ["other"]]
    assert stored(store, "c").status.allocation is not None


async def test_devices_that_keep_the_pod_from_all_nodes_are_given_back() -> None:
    plugin, store, _ = a_plugin(*GPUS, a_claim("c", status=allocated("gone/d0", node="gone", reserved_for=("p",))))

    attempt = Attempt(plugin, claiming("p", "c"))
    assert attempt.filter("n1") == NOT_AVAILABLE
    found = attempt.post_filter()
    await settle()

    assert found == DEALLOCATED
    assert stored(store, "c").status.allocation is None
    assert not stored(store, "c").status.reserved_for


def test_devices_that_another_pod_uses_stay() -> None:
    status = allocated("gone/d0", node="gone", reserved_for=("p", "other"))
    plugin, _, api = a_plugin(a_claim("c", status=status))
    attempt = Attempt(plugin, claiming("p", "c"))
    attempt.filter("n1")

    assert attempt.post_filter() == NOTHING_TO_DEALLOCATE
    assert api.patches == []


def test_devices_are_not_taken_on_a_node_that_filter_was_not_asked_about() -> None:
    plugin, _, _ = a_plugin(*GPUS, a_claim("c"))

    with pytest.raises(DevicesError, match="claim allocation not found for node"):
        Attempt(plugin, claiming("p", "c")).reserve("n1")


def test_earlier_alternatives_score_higher() -> None:
    either = {
        "name": "q",
        "firstAvailable": [
            {"name": "two", "deviceClassName": "any", "count": 2},
            {"name": "one", "deviceClassName": "any"},
        ],
    }
    plugin, _, _ = a_plugin(*GPUS, a_claim("c", either))
    attempt = Attempt(plugin, claiming("p", "c"))
    for node in ("n1", "n2"):
        assert attempt.filter(node) is None

    assert attempt.scores() == [8, 7]
    normal = plugin.normalize_score(attempt.state, attempt.pod, np.array([8, 7], np.int64))
    assert normal.tolist() == [100, 87]


def test_a_broken_expression_and_a_slow_search_are_errors() -> None:
    claims = (a_claim("c", a_request("q", "broken")), a_claim("d"))
    handle, _, _ = a_world(*GPUS, a_class("broken", f'device.attributes["{DRIVER}"].x == 1'), *claims)
    plugin = started(DynamicResources(), handle)

    with pytest.raises(
        DevicesError,
        match=r"class broken: selector #0 on device gpu\.example\.com/n1/d0: CEL runtime error: no such key: x",
    ):
        Attempt(plugin, claiming("p", "c")).filter("n1")
    with pytest.raises(TimeoutError, match="node n1: timed out trying to allocate devices"):
        Attempt(started(DynamicResources(filter_timeout=Duration(1e-9)), handle), claiming("p", "d")).filter("n1")


READY: dict[str, Any] = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}


def condition(kind: str) -> Any:
    conditions = [{"type": kind, "status": "True", "reason": "R", "message": "M"}]
    return [{"driver": DRIVER, "pool": "n1", "device": "d0", "conditions": conditions}]


def counted(plugin: DynamicResources, status: str) -> tuple[float | None, float | None]:
    """How many devices with conditions, and how many waits, came to this end."""
    metrics = plugin.handle.metrics
    assert isinstance(metrics, Metrics)
    registry, labels = metrics.registry, {"profile": plugin.handle.profile_name, "driver": DRIVER}
    allocations, waits = (
        registry.get_sample_value(f"scheduler_dra_bindingconditions_{name}", {**labels, "status": status})
        for name in ("allocations_total", "wait_duration_seconds_count")
    )
    return allocations, waits


async def test_a_binding_waits_until_its_devices_are_ready() -> None:
    plugin, store, _ = a_plugin(a_slice("n1", a_device("d0", **READY)), a_claim("c"))
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        claim = stored(store, "c")
        reported = reread(condition("ready"), tuple[DeviceStatus, ...])
        status = msgspec.structs.replace(claim.status, devices=reported)
        meta = msgspec.structs.replace(claim.metadata, resource_version="900")
        store.set(fw.RESOURCE_CLAIM, msgspec.structs.replace(claim, status=status, metadata=meta))

    plugin._pre_binding._sleep = sleep
    attempt = Attempt(plugin, claiming("p", "c"))
    attempt.filter("n1")
    attempt.reserve("n1")

    await attempt.pre_bind("n1")

    assert slept == [5.0]
    assert counted(plugin, "success") == (1, 1)


async def test_a_device_that_will_not_be_ready_fails_the_binding_and_is_given_back_later() -> None:
    status = {**allocated("n1/d0", reserved_for=("p",), **READY), "devices": condition("failed")}
    plugin, _, _ = a_plugin(a_claim("c", status=status))
    attempt = Attempt(plugin, claiming("p", "c"))

    assert attempt.filter("n1") == NOT_AVAILABLE
    with pytest.raises(Exception, match='device binding failed: claim=c, reason=R, message="M"'):
        await attempt.pre_bind("n1")
    assert counted(plugin, "failure") == (1, 1)


async def test_an_overdue_device_is_not_waited_for() -> None:
    status = allocated("n1/d0", **READY)
    status["allocation"]["allocationTimestamp"] = "2020-01-01T00:00:00Z"
    plugin, _, _ = a_plugin(a_claim("c", status=status))

    attempt = Attempt(plugin, claiming("p", "c"))
    assert attempt.filter("n1") == NOT_AVAILABLE
    with pytest.raises(Exception, match="device binding timeout: claim=c"):
        await attempt.pre_bind("n1")
    assert counted(plugin, "timeout") == (1, 1)


def test_wrong_arguments_are_told() -> None:
    wrong = DynamicResources(filter_timeout=Duration(-1), binding_timeout=Duration(0.5))

    assert [path for path, _ in wrong.problems()] == ["filterTimeout", "bindingTimeout"]
