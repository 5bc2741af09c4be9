"""Groups of pods while the configuration changes: they come and go with the plugin Coscheduling of a profile."""

from plugins import SHIPPED
from scheduler import framework as fw
from scheduler.testing import a_node, a_pod
from tests.fakes import settle
from tests.unit.assembly.test_reloading import Reloading, a_profile

PLAIN, GROUPED = a_profile("one"), a_profile("one", "Coscheduling")


def a_member(name: str, minimum: int = 2, node: str = "") -> fw.Pod:
    annotations = {"loadmaster.dev/pod-group": "g", "loadmaster.dev/pod-group-min-available": str(minimum)}
    return a_pod(name, scheduler_name="one", node_name=node, requests={"cpu": "1"}, annotations=annotations)


def has_groups(reloading: Reloading) -> bool:
    engine = reloading.engine
    are_on = engine.pod_groups is not None
    assert (engine.group_parts.cycle is not None) == (engine.group_parts in tuple(engine.core.listeners)) == are_on
    return are_on


async def scheduled(reloading: Reloading) -> list[str]:
    """The names of the pods that are bound once all are tried."""
    engine = reloading.engine
    while (queued := engine.queue.pop_nowait()) is not None:
        engine.loop.schedule_one(queued)
        await settle()
    return sorted(uid.rpartition("/")[2] for uid in reloading.under_test.world.bound)


async def test_a_profile_that_gets_the_plugin_has_groups_from_then_on() -> None:
    reloading = Reloading(SHIPPED, profiles=[PLAIN])
    reloading.under_test.see(a_node("n1", cpu="2"), a_member("runs", 3, node="n1"))
    assert not has_groups(reloading)

    await reloading.change(profiles=[GROUPED])
    reloading.under_test.see(a_member("p", 3))

    assert reloading.reloads("success") == 1
    assert has_groups(reloading)
    assert await scheduled(reloading) == []
    reloading.under_test.see(a_node("n2", cpu="2"), a_member("q", 3))
    assert await scheduled(reloading) == ["p", "q"]


async def test_pods_that_wait_for_their_group_are_pods_like_others_once_the_plugin_is_gone() -> None:
    reloading = Reloading(SHIPPED, profiles=[GROUPED])
    reloading.under_test.see(a_node("n1", cpu="2"), a_member("p"))
    assert await scheduled(reloading) == []

    await reloading.change(profiles=[PLAIN])

    assert await scheduled(reloading) == ["p"]
    assert not has_groups(reloading)


async def test_a_profile_that_gets_groups_again_counts_what_came_meanwhile() -> None:
    reloading = Reloading(SHIPPED, profiles=[GROUPED])
    reloading.under_test.see(a_node("n1", cpu="2"))
    await reloading.change(profiles=[PLAIN])
    reloading.under_test.see(a_member("p", 3, node="n1"), a_member("r", 3, node="n1"))

    await reloading.change(profiles=[GROUPED])
    reloading.under_test.see(a_node("n2", cpu="2"), a_member("q", 3))

    assert await scheduled(reloading) == ["q"]


async def test_the_levels_of_a_topology_count_from_the_reload_on() -> None:
    reloading = Reloading(SHIPPED, profiles=[GROUPED])
    assert list(reloading.engine.group_parts.levels._configured) == []

    await reloading.change(profiles=[GROUPED], loadmaster={"topologyLevels": ["example.com/block", "example.com/rack"]})

    assert reloading.reloads("success") == 1
    assert tuple(reloading.engine.group_parts.levels._configured) == ("example.com/block", "example.com/rack")
