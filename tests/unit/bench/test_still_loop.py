import asyncio

import aiohttp
import pytest

from tests.bench.still_loop import StillLoop, Tally, resource

Answered = list[tuple[str, str, bytes]]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/api/v1/namespaces/default/pods/web/binding", "pods/binding"),
        ("/api/v1/namespaces/default/pods/web", "pods"),
        ("/apis/events.k8s.io/v1/namespaces/default/events?limit=1", "events"),
        ("/api/v1/nodes", "nodes"),
        ("/api/v1/namespaces/default", "namespaces"),
    ],
)
def test_a_path_says_which_resource_is_meant(path: str, what: str) -> None:
    assert resource(path) == what


def test_requests_reach_the_server_in_this_process_and_are_counted() -> None:
    seen: Answered = []

    def answer(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        seen.append((method, path, body))
        return 201, b"made"

    async def ask() -> list[tuple[int, bytes]]:
        async with aiohttp.ClientSession() as session:
            found = []
            for body in (b"x", b"y" * 100_000):
                async with session.post("http://127.0.0.1:1/api/v1/namespaces/a/pods", data=body) as reply:
                    found.append((reply.status, await reply.read()))
            return found

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StillLoop)
        tally = Tally({"POST pods": answer})
        loop.serve(tally)
        found = runner.run(ask())

    assert found == [(201, b"made")] * 2
    assert [len(body) for _, _, body in seen] == [1, 100_000]
    assert tally.requests == {"POST pods": 2}


def test_short_waits_are_over_at_once_and_long_ones_are_left_when_nothing_else_is_to_do() -> None:
    done: list[str] = []

    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)
        done.append(f"{seconds:g} s")

    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StillLoop)
        tasks = [asyncio.create_task(wait(seconds)) for seconds in (0.9, 0.5, 60.0)]
        before = loop.time()
        await loop.idle()
        tasks[-1].cancel()
        return loop.time() - before

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        passed = runner.run(main())

    assert done == ["0.5 s", "0.9 s"]
    assert passed == pytest.approx(0.9)


def test_a_thread_is_refused_as_nobody_could_say_when_all_is_done() -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with asyncio.Runner(loop_factory=StillLoop) as runner, pytest.raises(AssertionError, match="a thread for"):
        runner.run(main())
