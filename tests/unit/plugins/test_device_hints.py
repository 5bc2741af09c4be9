"""What pods that wait for their claims want to hear of."""

from typing import Any

import pytest

from plugins.dynamic_resources.plugin import DynamicResources
from scheduler import framework as fw
from scheduler.api.devices import ResourceClaim
from scheduler.testing import a_pod, started
from tests.unit.plugins.devices import a_claim, a_class, a_slice, a_taint_rule, a_world, allocated, claiming
from tests.unit.plugins.hints import wakes

GONE = fw.Action.DELETE
CLAIM_CHANGED = fw.ClusterEvent(fw.RESOURCE_CLAIM, fw.Action.UPDATE_OTHER)


def a_plugin(*objects: Any) -> DynamicResources:
    handle, _, _ = a_world(*objects)
    return started(DynamicResources(), handle)


def test_pods_whose_claims_are_not_made_yet_are_asked_about_once() -> None:
    plugin = a_plugin(a_claim("c"))
    keys = {each.key for each in plugin.events_to_register() if each.event.matches(CLAIM_CHANGED)}
    made = {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "c"}]}

    (key,) = keys
    assert key is not None
    assert key(claiming("p", "t*")) == key(claiming("q", "t*")) != key(claiming("q", "t*", **made))
    assert key(claiming("p", "c")) == key(claiming("q", "c")) != key(claiming("q", "d"))
    assert key(claiming("p", "t*", **made)) != key(claiming("q", "t*", **made))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(a_claim("c", status=allocated("n1/d0")), a_claim("c"), True, id="its own gave devices back"),
        pytest.param(a_claim("x", status=allocated("n1/d0")), a_claim("x"), True, id="another one gave devices back"),
        pytest.param(None, a_claim("c"), True, id="its own is there"),
        pytest.param(None, a_claim("x"), False, id="another one is there"),
        pytest.param(a_claim("c"), a_claim("c", status=allocated("n1/d0")), True, id="its own got devices"),
        pytest.param(a_claim("x"), a_claim("x", status=allocated("n1/d0")), False, id="another one got devices"),
        pytest.param(a_claim("c"), a_claim("c", version="2"), False, id="its own changed in something else"),
    ],
)
def test_claims_help_that_are_the_pods_or_free_devices(
    old: ResourceClaim | None, new: ResourceClaim, expected: bool
) -> None:
    plugin = a_plugin(a_claim("c"))
    hints = [each.hint for each in plugin.events_to_register() if each.event.matches(CLAIM_CHANGED)]
    (hint,) = hints
    assert hint is not None

    assert (hint(claiming("p", "c"), old, new) is fw.QueueingHint.QUEUE) == expected
    assert hint(claiming("p", "c", "absent"), old, new) is fw.QueueingHint.SKIP


def test_a_deleted_claim_helps_that_had_devices() -> None:
    plugin, gone = a_plugin(a_claim("c")), fw.ClusterEvent(fw.RESOURCE_CLAIM, GONE)

    assert wakes(plugin, claiming("p", "c"), gone, a_claim("x", status=allocated("n1/d0")), None)
    assert not wakes(plugin, claiming("p", "c"), gone, a_claim("x"), None)
    assert wakes(plugin, claiming("p", "absent"), gone, a_claim("x", status=allocated("n1/d0")), None)


def test_a_deleted_slice_helps() -> None:
    assert wakes(a_plugin(), claiming("p", "c"), fw.ClusterEvent(fw.RESOURCE_SLICE, GONE), a_slice("n1"), None)


def test_a_rule_helps_that_changes_or_goes() -> None:
    old, new = a_taint_rule("broken"), a_taint_rule("broken", "None")

    for action, after in ((fw.Action.UPDATE_OTHER, new), (GONE, None)):
        assert wakes(a_plugin(), claiming("p", "c"), fw.ClusterEvent(fw.DEVICE_TAINT_RULE, action), old, after)


def test_a_deleted_class_helps_pods_that_request_its_resource() -> None:
    plugin, gone = a_plugin(), fw.ClusterEvent(fw.DEVICE_CLASS, GONE)
    named = a_class("newer", extendedResourceName="example.com/gpu")

    assert wakes(plugin, a_pod(requests={"example.com/gpu": "1"}), gone, named, None)
    assert not wakes(plugin, a_pod(requests={"example.com/nic": "1"}), gone, named, None)
    assert not wakes(plugin, a_pod(requests={"example.com/gpu": "1"}), gone, a_class("any"), None)
