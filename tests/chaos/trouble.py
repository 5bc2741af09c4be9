"""What is wrong with the network of one replica at the moment. The proxy asks, faults set and clear it.

Everything is off at first, and after `clear`.
"""

import asyncio
import enum
import random
from dataclasses import dataclass, field

from tests.chaos.wire import Request


class Treatment(enum.Enum):
    """What happens to a request."""

    FORWARD = "forward"
    LOSE = "lose the answer"
    """The API server carries it out, the client's connection is reset."""
    CUT = "cut the answer"
    """The same in the middle of the answer."""
    HANG = "hang"
    """The same, but the connection stays and is silent."""
    BROKEN = "500 afterwards"
    """The same, but the client is told that it failed."""
    THROTTLE = "429"
    INTERNAL = "500"
    UNAVAILABLE = "503"
    DENY = "403"
    """As an admission webhook does: refused for good, and the pod waits still."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the requests is treated in some way."""

    treatment: Treatment
    share: float
    """0 to 1."""
    writes_only: bool = False
    bindings_only: bool = False
    retry_after: str = ""

    def concerns(self, request: Request) -> bool:
        if self.bindings_only:
            return request.is_binding
        return request.method != "GET" or not self.writes_only


FORWARD = Share(Treatment.FORWARD, 1.0)


@dataclass(slots=True)
class Trouble:
    """The state of one network."""

    rng: random.Random
    shares: list[Share] = field(default_factory=list)
    bytes_per_second: float = 0.0
    """Of an answer; 0: no limit."""
    thawed: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, nothing moves."""

    def __post_init__(self) -> None:
        self.thawed.set()

    def clear(self) -> None:
        self.shares.clear()
        self.bytes_per_second = 0.0
        self.thawed.set()

    def choose(self, request: Request) -> Share:
        """How to treat a request."""
        for share in self.shares:
            if share.concerns(request) and self.rng.random() < share.share:
                return share
        return FORWARD
