"""Usage that fades: shares that used little lately go first, whatever they use now.

The formula is Kueue's for AdmissionFairSharing (pkg/util/admissionfairsharing): after t seconds in which R was
running, usage becomes U·0.5^(t/half-life) + R·(1 - 0.5^(t/half-life)). Kueue samples R at an interval; here each
change of R is reported, so the sum has no error. At admission request·(1 - 0.5^(interval/half-life)) is added: else
all pods of a share that is first would go before its usage grows. The least Σ weight of a resource · its usage,
divided by the weight of the share, is first; a share without weight is last.

The usage of deleted shares fades on, so deleting and recreating a quota does not reset it. The `MAX_GONE` that have
used most are kept, so a share cannot shed its past by the creation of others that use less.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_GONE: Final = 1_000
"""Shares that are gone, of which it is kept what they have used."""

MAX_RESOURCES: Final = 100
"""Of one share: anyone who writes quotas invents names. Of more, those are kept that weigh most."""

NEGLIGIBLE: Final = 1e-6
"""Of a unit: less than this is nothing."""

_NOTHING: Final[Mapping[str, float]] = {}


@dataclass(slots=True, eq=False)
class _Record:
    """The usage of one share at a time, and what has been running since."""

    at: float
    running: Mapping[str, float] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)


class DecayedUsage:
    """The decayed usage of all shares."""

    def __init__(self, half_life: float, interval: float, weights: Mapping[str, float]) -> None:
        """Times are in seconds; a resource without a weight has 1; ValueError if the half-life is not positive."""
        if not half_life > 0:
            raise ValueError(f"the half-life is {half_life}: must be positive")
        self._half_life = half_life
        self._penalty = 1 - 0.5 ** (interval / half_life)
        self._weights = dict(weights)
        self._records: dict[str, _Record] = {}

    def run(self, share: str, running: Mapping[str, float], now: float) -> None:
        """Bring a share's usage up to date; from now on it runs the given amounts."""
        record = self._at(share, now)
        record.usage = self._charged(record, running)
        record.running = dict(running)
        if len(record.usage) > MAX_RESOURCES:
            most = heapq.nlargest(MAX_RESOURCES, record.usage, key=lambda each: self._weighed(each, record.usage[each]))
            record.usage = {each: record.usage[each] for each in most}

    def renew(self, running: Mapping[str, Mapping[str, float]], now: float) -> None:
        """Do the same for all shares that there are; all others are gone, and run nothing."""
        for share, amounts in running.items():
            if amounts or share in self._records:
                self.run(share, amounts, now)
        gone = {share: 0.0 for share in self._records if share not in running}
        for share in gone:
            self.run(share, _NOTHING, now)
            gone[share] = self.key(share, 1, now)
        kept = heapq.nlargest(MAX_GONE, (share for share, usage in gone.items() if usage), key=gone.__getitem__)
        for share in gone.keys() - set(kept):
            del self._records[share]

    def __len__(self) -> int:
        """Return of how many shares anything is known."""
        return len(self._records)

    def usage(self, share: str, now: float) -> Mapping[str, float]:
        return dict(self._at(share, now).usage)

    def key(self, share: str, weight: float, now: float, running: Mapping[str, float] = _NOTHING) -> float:
        """Return what orders shares, if a share ran so much: the least goes first; infinite without a weight."""
        if weight <= 0:
            return math.inf
        usage = self._charged(self._at(share, now), running)
        return sum(self._weighed(resource, amount) for resource, amount in usage.items()) / weight

    def _weighed(self, resource: str, amount: float) -> float:
        return self._weights.get(resource, 1.0) * amount

    def _charged(self, record: _Record, running: Mapping[str, float]) -> dict[str, float]:
        """Return a share's usage, charged with the first interval of what it newly runs."""
        usage = dict(record.usage)
        for resource, amount in running.items():
            more = amount - record.running.get(resource, 0)
            if more > 0:
                usage[resource] = usage.get(resource, 0.0) + more * self._penalty
        return usage

    def _at(self, share: str, now: float) -> _Record:
        """Return a share's record as of now; a clock that goes back changes nothing."""
        record = self._records.get(share)
        if record is None:
            record = self._records[share] = _Record(now)
        if now > record.at:
            rest = 0.5 ** ((now - record.at) / self._half_life)
            for resource in {*record.usage, *record.running}:
                running = record.running.get(resource, 0)
                amount = record.usage.get(resource, 0.0) * rest + running * (1 - rest)
                record.usage[resource] = amount
                if amount < NEGLIGIBLE and not running:
                    del record.usage[resource]
            record.at = now
        return record
