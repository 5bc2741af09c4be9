"""Pods that are made at a steady rate, live for a while and are deleted; and attacks, one after the other."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Final

import orjson

from tests.attacks.attack import Attack, Object, Target
from tests.attacks.runner import create_all, delete_all
from tests.bench.api import Api
from tests.bench.wire import Job, Request
from tests.soak.pods import churned_pod

BEAT_SECONDS: Final = 1.0
LIFE_BEATS: Final = 15
"""How long a pod lives."""


class Churn:
    """`beat` once in `BEAT_SECONDS`: makes pods, and deletes those whose time is over."""

    def __init__(self, api: Api, namespace: str, rate: int) -> None:
        """`rate`: pods for each beat."""
        self._api = api
        self._namespace = namespace
        self._rate = rate
        self._alive: deque[Sequence[str]] = deque()
        self.made = 0
        """Pods so far."""

    def beat(self) -> bool:
        """Make and delete pods; always True. Raises Refused or WireError."""
        pods = [churned_pod(number) for number in range(self.made, self.made + self._rate)]
        over = self._alive.popleft() if len(self._alive) >= LIFE_BEATS else ()
        self._api.bulk([*self._deletions(over), *self._creations(pods)], lambda *_: None)
        self._alive.append([pod["metadata"]["name"] for pod in pods])
        self.made += len(pods)
        return True

    def _creations(self, pods: Sequence[Object]) -> Iterator[Job]:
        path, what = self._api.path("v1/Pod", self._namespace)
        for pod in pods:
            yield [Request("POST", path, what, orjson.dumps(pod))]

    def _deletions(self, names: Sequence[str]) -> Iterator[Job]:
        for name in names:
            path, what = self._api.path("v1/Pod", self._namespace, name)
            yield [Request("DELETE", f"{path}?gracePeriodSeconds=0", what)]


class Attacks:
    """`beat` now and then: the objects of one attack come, or go."""

    def __init__(self, api: Api, attacks: Sequence[Attack], target: Target) -> None:
        self._api = api
        self._attacks = cycle(attacks)
        self._target = target
        self._there: Sequence[Object] = ()
        self.name = ""
        """The attack that is going on; empty if none is."""

    def beat(self) -> bool:
        """Begin the next attack or end the one that goes on; always True. Raises Refused or WireError."""
        if self._there:
            delete_all(self._api, self._there, self._target.namespace)
            self._there, self.name = (), ""
            return True
        attack = next(self._attacks)
        self.name, self._there = attack.name, list(attack.objects(self._target))
        create_all(self._api, self._there, self._target.namespace)
        return True
