"""DefaultBinder: telling the API server."""

import pytest

from plugins.default_binder import DefaultBinder
from scheduler import framework as fw
from scheduler.testing import a_pod, started
from tests.fakes import FakeWorld, a_handle


async def test_the_pod_is_bound_to_the_node() -> None:
    world = FakeWorld()

    answer = await started(DefaultBinder(), a_handle(world=world)).bind(fw.CycleState(), a_pod("web"), "worker-1")

    assert answer is None
    assert world.bound == {"default/web": "worker-1"}


async def test_a_refusal_is_left_to_the_framework() -> None:
    world = FakeWorld(refusal=fw.BindRejected("pod web is being deleted"))

    with pytest.raises(fw.BindRejected, match="being deleted"):
        await started(DefaultBinder(), a_handle(world=world)).bind(fw.CycleState(), a_pod("web"), "worker-1")
