"""DefaultBinder: telling the API server."""

import pytest

from plugins.default_binder import DefaultBinder
from scheduler import framework as fw
from scheduler.testing import a_pod, started
from tests.unit.plugins.cluster import FakeBinder, a_handle


async def test_the_pod_is_bound_to_the_node() -> None:
    binder = FakeBinder()

    answer = await started(DefaultBinder(), a_handle(binder)).bind(fw.CycleState(), a_pod("web"), "worker-1")

    assert answer is None
    assert binder.bound == [("default/web", "worker-1")]


async def test_a_refusal_is_left_to_the_framework() -> None:
    binder = FakeBinder(refusal=fw.BindRejected("pod web is being deleted"))

    with pytest.raises(fw.BindRejected, match="being deleted"):
        await started(DefaultBinder(), a_handle(binder)).bind(fw.CycleState(), a_pod("web"), "worker-1")
