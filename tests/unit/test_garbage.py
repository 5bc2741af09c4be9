"""What a pod leaves goes with its last reference: a full collection stops everything, so it is put off for hours."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import plugins
from scheduler.api.pods.pod import pod_from_dict
from scheduler.config.load import config_from_dict
from scheduler.process import allocator
from scheduler.runtime.framework import Framework
from scheduler.simulate.engine import simulate
from tests.bench.counted_world import CountedWorld
from tests.bench.cycle_cases import CASES
from tests.bench.still_loop import StillLoop

pytestmark = pytest.mark.usefixtures("frozen_again")

NODES = 20
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

SPECS: dict[str, dict[str, Any]] = {
    **{case.name: case.spec("web") for case in CASES if not (case.claims or case.full)},
    "fits nowhere": {"nodeSelector": {"example.com/no": "node"}},
    "asks for too much": {
        "priority": 10,
        "containers": [
            {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1000", "example.com/a": "1"}}}
        ],
    },
    "names a node that is not there": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nowhere"]}]}
                    ]
                }
            }
        }
    },
}


@contextmanager
def garbage() -> Iterator[list[str]]:
    """Our own types among what only the garbage collector would find; to be read after the `with` block."""
    found: list[str] = []
    gc.disable()
    gc.freeze()  # what is there already is not looked at: neither as garbage, nor at what it costs to look at all of it
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        types = (type(each) for each in gc.garbage)
        found += sorted({f"{each.__module__}.{each.__name__}" for each in types if is_ours(each)})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("scheduler", "plugins", "ctypes")


@pytest.mark.parametrize("name", SPECS)
def test_no_attempt_leaves_anything_to_the_garbage_collector(name: str) -> None:
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StillLoop)

        async def attempt() -> list[str]:
            world = CountedWorld(loop, NODES)
            async with world.running():
                await world.schedule(world.new_pods(["first"], SPECS[name], "web"))
                with garbage() as found:
                    await world.schedule(world.new_pods(["second"], SPECS[name], "web"))
                    assert world.is_settled("second")
                    await world.schedule(world.deleted_pods(["second"]))
            return found

        found = runner.run(attempt())

    assert found == []


def test_giving_memory_back_takes_none() -> None:
    with garbage() as found:
        allocator.give_back()

    assert found == []


def test_nothing_is_left_of_an_engine_whose_plugins_have_answered() -> None:
    def alive() -> int:
        gc.collect()
        return sum(type(each) is Framework for each in gc.get_objects())

    pod = pod_from_dict({"metadata": {"name": "web", "uid": "web"}, "spec": {"schedulerName": "default-scheduler"}})
    before = alive()

    simulate([], [pod], config_from_dict(CONFIG, plugins.IN_TREE), plugins.IN_TREE)

    assert alive() == before
