"""Places for connections: a bounded number in all, a share of it for each address, and so many handshakes a second.

    new connection ──its address has its share──► the quietest of that address ends ──┐
         │ ──no place is left───────────────────► the quietest of the address that    ├─► admitted
         │                                        has most ends                       │
         └──otherwise─────────────────────────────────────────────────────────────────┘
    admitted ──first byte──► shakes hands, unless the rate of its address is used up

A connection is quiet while no request of it is under way: it has not said a byte, which makes it the first to end,
shakes hands, or is kept for later. So a client that holds idle connections only loses its own, and a probe
of the kubelet finds a place at once. If all are busy, the new one is refused.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from scheduler.serve.port.connection import Connection
from scheduler.serve.port.limits import Limits

MAX_RATES: Final = 1024
"""Addresses whose rates are known; beyond them the one that is forgotten came least recently."""


class Places:
    """The places and their connections. No I/O."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._taken: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By address: how many more it may shake hands, as of when."""

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def busy(self) -> int:
        """Connections with a request under way."""
        return sum(place.quiet_since is None for place in self._taken)

    def admit(self, place: Connection) -> bool:
        """Give it a place, if need be that of another one, which is evicted; False: refuse it."""
        address = place.address
        if self._by_address[address] >= self._limits.connections_per_address:
            if not self._make_room(address):
                return False
        elif len(self._taken) >= self._limits.connections and not self._make_room(None):
            return False
        self._taken.add(place)
        self._by_address[address] += 1
        return True

    def release(self, place: Connection) -> None:
        """Its connection has ended. May be called twice."""
        if place in self._taken:
            self._taken.remove(place)
            self._by_address[place.address] -= 1
            if not self._by_address[place.address]:
                del self._by_address[place.address]

    def evict_where(self, chosen: Callable[[Connection], bool]) -> None:
        """End these connections."""
        for place in tuple(self._taken):
            if chosen(place):
                self._evict(place)

    def evict_quietest(self) -> bool:
        """End a connection of the address that has most; False if all are busy."""
        return self._make_room(None)

    def may_shake_hands(self, address: str) -> bool:
        """Return whether the rate of an address allows for one more handshake, which is then counted."""
        now, burst = self._now(), self._limits.burst
        left, then = self._rates.pop(address, (float(burst), now))
        left = min(burst, left + (now - then) * self._limits.handshakes_per_second)
        self._rates[address] = (max(0.0, left - 1.0) if left >= 1.0 else left, now)
        if len(self._rates) > MAX_RATES:
            self._rates.popitem(last=False)
        return left >= 1.0

    def _make_room(self, address: str | None) -> bool:
        """End the connection of `address`, or of the one with most, that has been quiet for longest."""
        quiet = [
            (place.has_spoken, 0 if address else -self._by_address[place.address], place.quiet_since, place)
            for place in self._taken
            if place.quiet_since is not None and address in (None, place.address)
        ]
        if not quiet:
            return False
        self._evict(min(quiet, key=lambda each: each[:3])[3])
        return True

    def _evict(self, place: Connection) -> None:
        self.release(place)
        place.end("evicted")


def peer_of(host: str) -> str:
    """Return the unit that limits count as one address: IPv4's own, also where it comes as IPv6; of IPv6 the network
    of 64 bits."""
    address = ip_address(host.partition("%")[0])
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{address.exploded[:19]}::/64"
