"""What the watches may have missed, and until when."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scheduler.kube.gaps import Gaps
from scheduler.kube.informers.intake import NODES, PODS
from tests.unit.kube.fake_api import until


class Scene:
    """Both resources are watched; comparisons begin, and end when they may."""

    def __init__(self) -> None:
        self.gaps = Gaps(settle=0.0)
        self.comparisons = 0
        self.may_end = asyncio.Event()
        for resource in (PODS, NODES):
            self.gaps.listed(resource)
            self.gaps.opened(resource)

    async def compare_again(self) -> None:
        self.comparisons += 1
        await self.may_end.wait()
        self.may_end.clear()


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    scene = Scene()
    task = asyncio.create_task(scene.gaps.close_forever(scene.compare_again))
    try:
        yield scene
    finally:
        task.cancel()


async def test_the_first_lists_and_a_watch_that_is_opened_again_at_once_are_no_gaps() -> None:
    async with a_scene() as scene:
        scene.gaps.opened(PODS)
        await asyncio.sleep(0)

        assert scene.gaps.is_current
        assert scene.comparisons == 0


async def test_after_an_interruption_all_is_compared_once_every_watch_is_open() -> None:
    async with a_scene() as scene:
        scene.gaps.interrupted(PODS)
        scene.gaps.interrupted(NODES)
        scene.gaps.interrupted(NODES)
        scene.gaps.opened(PODS)
        for _ in range(5):
            await asyncio.sleep(0)
        while_one_is_away = scene.comparisons
        scene.gaps.opened(NODES)
        await until(lambda: scene.comparisons == 1)
        while_comparing = scene.gaps.is_current
        scene.may_end.set()
        await until(lambda: scene.gaps.is_current)

        assert (while_one_is_away, while_comparing, scene.comparisons) == (0, False, 1)


async def test_a_watch_that_begins_from_a_new_list_and_a_resource_that_is_served_later_are_gaps() -> None:
    async with a_scene() as scene:
        scene.gaps.absent("later")
        without = scene.gaps.is_current
        for number, resource in enumerate((PODS, "later"), 1):
            scene.gaps.listed(resource)
            before = scene.gaps.is_current
            scene.may_end.set()
            await until(lambda: scene.gaps.is_current)

            assert (without, before, scene.comparisons) == (True, False, number)


async def test_a_resource_that_goes_during_an_interruption_holds_up_nothing() -> None:
    async with a_scene() as scene:
        scene.gaps.interrupted(NODES)
        scene.gaps.absent(NODES)
        scene.may_end.set()
        await until(lambda: scene.gaps.is_current)

        assert scene.comparisons == 1


async def test_what_is_interrupted_during_the_comparison_is_compared_again() -> None:
    async with a_scene() as scene:
        scene.gaps.listed(PODS)
        await until(lambda: scene.comparisons == 1)
        scene.gaps.interrupted(NODES)
        scene.gaps.opened(NODES)
        scene.may_end.set()
        await until(lambda: scene.comparisons == 2)
        between = scene.gaps.is_current
        scene.may_end.set()
        await until(lambda: scene.gaps.is_current)

        assert not between
        assert scene.comparisons == 2
