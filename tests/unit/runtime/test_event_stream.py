"""The events of an engine: who is called, and what a listener that fails costs."""

from typing import Any

import pytest

from scheduler.framework.status import Code
from scheduler.runtime.event_stream import EventStream, Handlers, PointEnded

EVENT = PointEnded("Filter", Code.SUCCESS, 0.5)


def failing(_: Any) -> None:
    raise ZeroDivisionError("bug")


def test_an_event_reaches_all_that_listen_to_its_kind_in_the_order_of_their_subscriptions() -> None:
    stream, heard = EventStream(), list[str]()
    stream.subscribe({PointEnded: lambda _: heard.append("first")})
    stream.subscribe({PointEnded: lambda _: heard.append("second")})

    stream.publish(EVENT)

    assert heard == ["first", "second"]


def test_a_kind_of_event_without_listeners_is_not_listed() -> None:
    stream, heard = EventStream(), list[PointEnded]()
    handlers: Handlers = {PointEnded: heard.append}
    assert PointEnded not in stream.listeners

    stream.subscribe(handlers)
    stream.publish(EVENT)
    stream.unsubscribe(handlers)
    stream.unsubscribe(handlers)

    assert heard == [EVENT]
    assert PointEnded not in stream.listeners


def test_a_listener_that_fails_is_logged_once_and_listens_no_more_and_the_others_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream, heard = EventStream(), list[PointEnded]()
    stream.subscribe({PointEnded: failing})
    stream.subscribe({PointEnded: heard.append})

    stream.publish(EVENT)
    stream.publish(EVENT)

    assert heard == [EVENT, EVENT]
    assert [record.getMessage() for record in caplog.records] == ["A listener failed; it listens no more"]
