"""A client without a server: its calls have given outcomes, and the call after the last one is of interest."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias, cast
from unittest import mock

from scheduler.framework.errors import ApiError, BindRejected, ClusterError
from scheduler.kube.http import retries
from scheduler.kube.http.client import AnswerLost, Client, NotSent, Reply
from scheduler.kube.http.operations import Operation
from scheduler.kube.http.retries import Outcome
from scheduler.process.virtual_time import run_virtually

NextCall: TypeAlias = tuple[str, float]
"""Its verb, and the seconds that it was waited for."""


WAIT = 0.1
"""The first wait, without jitter."""


def answer(status: int, message: str = "", retry_after: float = 0.0) -> Reply:
    return Reply(status, b'{"message":"%b"}' % message.encode(), retry_after)


REFUSED = NotSent("connection refused")
NO_ANSWER = AnswerLost("timeout")
CONFLICT = answer(409, "conflict")
FAILED = answer(500, "etcdserver: request timed out")


class _NextCall(Exception):
    """There is no outcome for it."""


class Script:
    """Its `attempt` is that of a client."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = list(outcomes)
        self._ended = 0.0

    async def attempt(self, operation: Operation, *_: Any) -> Outcome:
        now = asyncio.get_running_loop().time()
        if not self._outcomes:
            raise _NextCall(operation.verb, round(now - self._ended, 3))
        self._ended = now
        return self._outcomes.pop(0)


def end_of(outcomes: Sequence[Outcome], work: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    """What comes of the work after these outcomes: its result, the text of its error, or its next call."""

    async def played() -> Any:
        try:
            return await work(cast("Client", Script(outcomes)))
        except _NextCall as call:
            return call.args
        except (ApiError, BindRejected, ClusterError) as error:
            return str(error)

    with mock.patch.object(retries, "JITTER", 0.0):
        return run_virtually(played())
