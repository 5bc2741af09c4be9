"""The text of the metrics: the same as in one piece, without holding the event loop."""

import asyncio
import time

import pytest
from prometheus_client import Gauge
from prometheus_client.exposition import choose_encoder

from scheduler.serve.endpoints.exposition import SAMPLES, Exposition
from scheduler.serve.port.answers import Answer
from tests.fakes import Metrics

FORMATS = ["text/plain", "application/openmetrics-text; version=1.0.0", ""]


def many_metrics(resources: int) -> Metrics:
    """Two families with a child for each resource: one of single samples, one of buckets."""
    metrics = Metrics()
    for number in range(resources):
        metrics.api_calls.labels("GET", f"r{number}", "200").inc(number)
        metrics.api_call_duration.labels("GET", f"r{number}").observe(number / 1000)
    return metrics


@pytest.mark.parametrize("accept", FORMATS)
@pytest.mark.parametrize("resources", [0, 1, SAMPLES, 3 * SAMPLES + 1])
async def test_pieces_make_the_same_text(accept: str, resources: int) -> None:
    registry = many_metrics(resources).registry
    encode, content_type = choose_encoder(accept)

    assert await Exposition(registry).whole(accept) == Answer(200, encode(registry), content_type)


@pytest.mark.parametrize("accept", FORMATS)
async def test_what_prometheus_keeps_for_the_end_of_a_family_stays_there(accept: str) -> None:
    metrics = Metrics()
    gauge = Gauge("room", "Rooms.\nWith two lines.", ["name"], registry=metrics.registry)
    for number in range(2 * SAMPLES):
        gauge.labels(f"# HELP {number}\n").set(number)
    encode, _ = choose_encoder(accept)

    assert (await Exposition(metrics.registry).whole(accept)).body == encode(metrics.registry)


@pytest.mark.parametrize("accept", FORMATS)
async def test_a_text_that_is_made_while_it_is_sent_is_the_same(accept: str) -> None:
    exposition = Exposition(many_metrics(3 * SAMPLES + 1).registry)
    whole, streamed = await exposition.whole(accept), await exposition.streamed(accept)

    assert not isinstance(streamed.body, bytes)
    assert b"".join([piece async for piece in streamed.body]) == whole.body
    assert streamed.content_type == whole.content_type


async def test_a_reader_who_goes_away_leaves_the_turn_to_the_next() -> None:
    exposition = Exposition(many_metrics(3 * SAMPLES).registry)
    gone = (await exposition.streamed("")).body
    assert not isinstance(gone, bytes)
    await anext(gone)

    await gone.aclose()

    assert (await exposition.whole("")).status == 200


async def test_others_get_their_turn_while_a_large_text_is_made() -> None:
    exposition = Exposition(many_metrics(2_000).registry)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    started = time.thread_time()
    await exposition.whole("")
    used = time.thread_time() - started
    counting.cancel()

    assert turns >= used / 0.010, "a turn for each 10 ms of work at the least"


async def test_one_text_is_made_at_a_time() -> None:
    registry = many_metrics(2_000).registry
    exposition = Exposition(registry)

    texts = await asyncio.gather(*(exposition.whole("") for _ in range(3)))

    assert len(set(texts)) == 1
