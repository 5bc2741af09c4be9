"""Names that may have been meant are found without holding up anybody else."""

import asyncio
from difflib import get_close_matches

import pytest

from scheduler.explain import near as module
from scheduler.explain.near import near
from tests.fakes import run

NAMES = [f"shop/web-{number}" for number in range(200)] + ["shop/wed", "prod/web", "shop/x"]


def test_the_names_are_those_that_difflib_finds() -> None:
    for wanted in ("shop/web", "shop/web-17x", "prod/wb", "nothing/like/it"):
        assert run(near(wanted, NAMES, 3)) == get_close_matches(wanted, NAMES, 3)


async def test_others_have_their_turn_meanwhile() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    names = ["ab" * 120 + f"{number:03}" for number in range(20)]  # each takes milliseconds to compare
    counting = asyncio.create_task(count())
    await near("ba" * 90, names, 3)
    counting.cancel()

    assert turns > 5


async def test_it_ends_however_many_names_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.02)
    endless = (f"shop/web-{number}" for number in iter(int, 1))
    found = await near("shop/web-0", endless, 3)

    assert found == ["shop/web-0"] * 3
