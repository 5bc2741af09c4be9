"""When changes are reported, and what is reported again."""

import asyncio

from scheduler.process.reporting import Due, Said


async def test_all_that_changes_within_a_moment_is_reported_together() -> None:
    due, slept = Due(pause=1.0), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        due.soon()  # something else changes

    due.soon()
    await due.wait(sleep)

    waiting = asyncio.create_task(due.wait(sleep))
    await asyncio.sleep(0)
    assert not waiting.done()
    due.soon()
    await waiting
    assert slept == [1.0, 1.0]


async def test_if_nothing_changes_it_is_due_all_the_same_after_the_longest_time() -> None:
    due, slept = Due(pause=1.0), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await due.wait(sleep, most=0.0)

    assert slept == [1.0]


def test_a_thing_is_reported_once_until_something_else_is_the_matter_with_it() -> None:
    said = Said[str]()

    assert [said.is_new("a", text) for text in ("x", "x", "y", "", "", "y")] == [True, False, True, False, False, True]


def test_those_that_are_gone_and_those_beyond_the_most_are_forgotten() -> None:
    said = Said[str](most=2)
    for key in "abc":
        assert said.is_new(key, "x")
    assert said.is_new("a", "x")

    said.keep({"a"})

    assert [said.is_new(key, "x") for key in "ac"] == [False, True]
