"""Retries of calls to the API server, and the meaning of their outcomes: one policy for `scheduler.kube`.

    CALL ──2xx, 3xx, 4xx────────► SETTLED   done or refused: what a refusal means is up to the caller
      │ ──not sent, 401, 429────► AGAIN     certainly not carried out
      └──no answer, 5xx─────────► DOUBT     perhaps carried out, now or later
    AGAIN ──wait──► CALL                    until `RetryPolicy.tries` have failed
    DOUBT ──wait──► CALL                    the same, where a repetition is harmless or can be recognised
      └──► READ                             where it is not: a binding

Waits double from `first` to `limit`; the server's Retry-After prolongs them. What a 404 or a 409 means, and what a read
settles, differs from call to call: see `writes/` and the table in docs/design/kubernetes.md.
"""

import asyncio
import enum
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import aiohttp

from scheduler.kube.http.access import is_ours
from scheduler.kube.http.client import BadStatus, NoReply, NotSent, Reply

Outcome: TypeAlias = Reply | NoReply

FACTOR: Final = 2.0
"""How much longer each wait is than the one before."""

JITTER: Final = 0.25
"""The share by which a wait is longer or shorter at random."""

MAX_DOUBLINGS: Final = 32
"""Reaches every limit; a thousand would overflow a float."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The waits between tries, and their number. Iterating yields the waits in turn, without end."""

    first: float
    """Seconds before the second try. Positive."""

    limit: float
    """Seconds that no wait exceeds, jitter aside. At least `first`."""

    tries: int = 0
    """Failures after which there is no further try; 0: no end."""

    # Without __len__, or kopf would count the waits and give up after the last.
    def __iter__(self) -> Iterator[float]:
        return map(self.wait, itertools.count())

    def wait(self, failures: int, at_least: float = 0.0, chance: Callable[[], float] = random.random) -> float:
        """Seconds to wait after one more failure; `failures`: those before it; `chance`: 0 to 1, for the jitter."""
        wait = min(self.first * FACTOR ** min(failures, MAX_DOUBLINGS), self.limit)
        return max(wait * (1 + JITTER * (2 * chance() - 1)), at_least)


WRITES: Final = RetryPolicy(first=0.1, limit=2.0, tries=10)
"""For writes that a pod waits for: about 12 s. Then the pod is tried again, as the cluster is by then."""


class Meaning(enum.Enum):
    """The meaning of an outcome."""

    SETTLED = enum.auto()
    AGAIN = enum.auto()
    DOUBT = enum.auto()


def meaning_of(outcome: Outcome) -> Meaning:
    """Return the meaning of a status, or of a failure."""
    if isinstance(outcome, NoReply):
        return Meaning.AGAIN if isinstance(outcome, NotSent) else Meaning.DOUBT
    if outcome.status in (401, 429):
        return Meaning.AGAIN
    return Meaning.DOUBT if outcome.status >= 500 else Meaning.SETTLED


def is_trouble(status: int) -> bool:
    """Return whether an answer with this status means that the API server is in trouble."""
    return status == 429 or status >= 500


def is_outage(error: BaseException) -> bool:
    """Return whether a call failed, with an error of ours or of aiohttp, because the API server is in trouble.

    No restart of ours would cure that, unlike other statuses (401, 403), a certificate that cannot be verified, or
    credentials that cannot be read.
    """
    if isinstance(error, BadStatus):
        return is_trouble(error.status)
    return isinstance(error, NoReply | aiohttp.ClientError | TimeoutError) and not is_ours(error)


class GivenUp(Exception):
    """A call was refused, or has failed too often."""

    def __init__(self, because: str, status: int) -> None:
        """`status`: HTTP's; 0 without an answer."""
        super().__init__(because)
        self.status = status


class Retries:
    """The failures of calls that are repeated: whether there is another try, and when."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failures = 0

    @property
    def is_last(self) -> bool:
        """Whether the next failure is one too many."""
        return 0 < self._policy.tries <= self._failures + 1

    async def again(self, outcome: Outcome) -> None:
        """Wait for the next try. Raises GivenUp if the call was refused, or has failed too often."""
        if meaning_of(outcome) is Meaning.SETTLED:
            raise GivenUp(outcome.message, outcome.status)
        await self.later(outcome)

    async def later(self, outcome: Outcome) -> None:
        """Wait for the next try, also after a refusal. Raises GivenUp if too much has failed."""
        wait = self._policy.wait(self._failures, outcome.retry_after)
        self._failures += 1
        if 0 < self._policy.tries <= self._failures:
            raise GivenUp(f"{outcome.message} ({self._failures} tries)", outcome.status)
        await asyncio.sleep(wait)


async def repeated(call: Callable[[], Awaitable[Outcome]], policy: RetryPolicy) -> Outcome:
    """Make a call that changes nothing until it is answered or has failed too often; return the last outcome."""
    for failures in itertools.count():
        outcome = await call()
        if meaning_of(outcome) is Meaning.SETTLED or failures + 1 == policy.tries:
            break
        await pause(policy.wait(failures, outcome.retry_after))
    return outcome


async def pause(seconds: float) -> None:
    """Wait before a step; most begin at once."""
    if seconds:
        await asyncio.sleep(seconds)
