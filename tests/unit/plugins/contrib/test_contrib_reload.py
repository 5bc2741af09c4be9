"""LoadAware and NodeResourceTopologyMatch while the configuration changes: what they open is closed, and what they
believe follows the arguments of the profiles that there are."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from plugins import SHIPPED
from plugins.contrib.node_resource_topology.beliefs import Beliefs
from plugins.contrib.node_resource_topology.requests import asked
from plugins.contrib.node_resource_topology.topology import RESOURCE
from scheduler import framework as fw
from scheduler.cycle.writers import Writers
from scheduler.testing import a_node
from tests.fakes import FakeWorld, settle
from tests.unit.assembly.test_reloading import Reloading, a_profile
from tests.unit.plugins.contrib.topologies import a_numa_pod, a_topology, a_zone

NUMA = "NodeResourceTopologyMatch"


class SlowReader:
    """A framework.handle.Reader of a server that never answers, so whoever reads is seen reading."""

    def __init__(self) -> None:
        self.reading = 0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def read(self, url: str, seconds: float, access: fw.Access | None = None) -> bytes:
        self.reading += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.reading -= 1
        raise AssertionError("unreachable")

    async def post(self, url: str, body: bytes, seconds: float, access: fw.Access | None = None) -> bytes:
        raise AssertionError("nothing is posted")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> SlowReader:
    """What plugins read with."""
    reader = SlowReader()

    def writers(world: FakeWorld) -> Writers:
        return replace(Writers(world, world, world, world), reader=reader)

    monkeypatch.setattr(FakeWorld, "writers", property(writers))
    return reader


async def until_retired(reloading: Reloading) -> None:
    await settle()
    await reloading.reloader.look()
    await settle()


# --- LoadAware ---


async def test_metrics_are_read_for_as_long_as_a_profile_has_the_plugin_and_once_for_each(reader: SlowReader) -> None:
    reloading = Reloading(SHIPPED, profiles=[a_profile("one")])
    counts = []

    for profiles in (
        [a_profile("one", "LoadAware")],
        [a_profile("one", "LoadAware", targetUtilization=60)],
        [a_profile("one", "LoadAware", targetUtilization=60), a_profile("two", "LoadAware")],
        [a_profile("two", "LoadAware")],
        [a_profile("two")],
    ):
        await reloading.change(profiles=profiles)
        await until_retired(reloading)
        counts.append(reader.reading)

    assert counts == [1, 1, 2, 1, 0]


async def test_a_profile_that_stays_reads_on_undisturbed(reader: SlowReader) -> None:
    reloading = Reloading(SHIPPED, profiles=[a_profile("one", "LoadAware")])
    plugin = reloading.engine.frameworks["one"].plugins.by_name["LoadAware"]

    await reloading.change(profiles=[a_profile("one", "LoadAware"), a_profile("two")])
    await until_retired(reloading)

    assert reloading.engine.frameworks["one"].plugins.by_name["LoadAware"] is plugin
    assert reader.reading == 1


@pytest.mark.parametrize("plugin", ["LoadAware", NUMA])
async def test_many_reloads_leave_nothing_behind(plugin: str, reader: SlowReader) -> None:
    reloading = Reloading(SHIPPED, profiles=[a_profile("one")])
    before = len(asyncio.all_tasks())

    for number in range(1, 11):
        arguments = {"scoreWithoutData": number} if plugin == "LoadAware" else {"cacheResyncPeriodSeconds": number}
        await reloading.change(profiles=[a_profile("one", plugin, **arguments)])
        await until_retired(reloading)
    listeners = len(reloading.engine.objects._listeners[RESOURCE])
    await reloading.change(profiles=[a_profile("one")])
    await until_retired(reloading)

    assert listeners == (1 if plugin == NUMA else 0)
    assert len(reloading.engine.objects._listeners[RESOURCE]) == 0
    assert reader.reading == 0
    assert len(asyncio.all_tasks()) == before


# --- NodeResourceTopologyMatch ---


def beliefs(reloading: Reloading, profile: str = "one") -> Beliefs:
    return reloading.engine.frameworks[profile].handle.shared.get(Beliefs, lambda: pytest.fail("there are none"))


def resyncs(reloading: Reloading) -> Any:
    plugin: Any = reloading.engine.frameworks["one"].plugins.by_name[NUMA]
    return plugin._repetition


async def test_topologies_are_watched_for_as_long_as_a_profile_has_the_plugin() -> None:
    reloading = Reloading(SHIPPED, profiles=[a_profile("one")])

    await reloading.change(profiles=[a_profile("one", NUMA)])
    opened = RESOURCE in reloading.cluster.watched
    await reloading.change(profiles=[a_profile("one", NUMA, cacheResyncPeriodSeconds=5)])
    await until_retired(reloading)
    kept = RESOURCE in reloading.cluster.watched
    await reloading.change(profiles=[a_profile("one")])
    await until_retired(reloading)

    assert (opened, kept, RESOURCE in reloading.cluster.watched) == (True, True, False)


async def test_what_was_reserved_outlives_a_change_of_the_arguments() -> None:
    """Its agent does not know yet of a pod that was placed just before."""
    reloading = Reloading(SHIPPED, profiles=[a_profile("one", NUMA, cacheResyncPeriodSeconds=5)])
    hear(reloading, version=1)
    beliefs(reloading).reserve("n", "uid", a_request())

    await reloading.change(profiles=[a_profile("one", NUMA, cacheResyncPeriodSeconds=6)])
    await until_retired(reloading)

    assert left(reloading) == 3_000
    assert resyncs(reloading)._pause == 6


async def test_without_the_cache_objects_count_as_they_come_also_where_there_was_a_cache() -> None:
    reloading = Reloading(SHIPPED, profiles=[a_profile("one", NUMA, cacheResyncPeriodSeconds=5)])
    hear(reloading, version=1)
    beliefs(reloading).reserve("n", "uid", a_request())
    hear(reloading, version=2, cpu="3")
    with_cache = left(reloading)

    await reloading.change(profiles=[a_profile("one", NUMA)])
    await until_retired(reloading)
    without = left(reloading)
    hear(reloading, version=3, cpu="2")

    assert (with_cache, without, left(reloading)) == (3_000, 3_000, 2_000)
    assert resyncs(reloading) is None


async def test_of_two_profiles_the_more_careful_one_counts_for_both_and_only_while_it_is_there() -> None:
    careless = a_profile("one", NUMA)
    careful = a_profile("two", NUMA, cacheResyncPeriodSeconds=5, cache={"foreignPodsDetect": "OnlyExclusiveResources"})
    careful_too = a_profile("three", NUMA, cacheResyncPeriodSeconds=5, cache={"foreignPodsDetect": "None"})
    discarding = a_profile("four", NUMA, discardReservedNodes=True)
    reloading = Reloading(SHIPPED, profiles=[careful, careless, careful_too, discarding])
    of_all = ways(reloading)

    await reloading.change(profiles=[careless, careful_too])
    await until_retired(reloading)
    of_two = ways(reloading)
    await reloading.change(profiles=[careless])
    await until_retired(reloading)

    assert of_all == (True, True, "OnlyExclusiveResources", {"one", "two", "three", "four"})
    assert of_two == (True, False, "None", {"one", "three"})
    assert ways(reloading) == (False, False, "None", {"one"})


def ways(reloading: Reloading) -> tuple[bool, bool, str, set[str]]:
    found = beliefs(reloading)
    return found.over_reserves, found.discards, found.foreign_pods, set(found.profiles)


def hear(reloading: Reloading, *, version: int, cpu: str = "4") -> None:
    if version == 1:
        reloading.engine.handlers.node_changed(a_node("n"))
    topology = a_topology("n", a_zone(0, cpu=cpu), version=version)
    reloading.engine.object_handlers.object_changed(RESOURCE, topology)


def a_request() -> Any:
    return asked(a_numa_pod({"cpu": "1"})).whole


def left(reloading: Reloading) -> int:
    """Thousandths of a core that are believed to be left in the zone."""
    topology = beliefs(reloading).topology("n")
    assert topology is not None
    return topology.zones[0].available["cpu"]
