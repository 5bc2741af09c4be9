"""Allocates ResourceClaims that no pod uses, to fill a cluster before the measurement (allocResourceClaims). Pure.

scheduler_perf does it with the scheduler's allocator, on nodes in random order. Here it is for claims that ask for one
device of a class and nothing more, which every device is good for.
"""

import random
from collections.abc import Iterable, Iterator

from tests.bench.api import Object


def allocations(claims: Iterable[Object], slices: Iterable[Object], seed: int = 0) -> Iterator[tuple[Object, Object]]:
    """Each claim that has no allocation, with one. Raises LookupError if there are not enough devices."""
    taken: set[tuple[str, str]] = set()
    waiting: list[Object] = []
    for claim in claims:
        allocation = claim.get("status", {}).get("allocation")
        if allocation is None:
            waiting.append(claim)
        else:
            taken |= {(result["pool"], result["device"]) for result in allocation["devices"]["results"]}
    free = [
        (one["spec"]["driver"], one["spec"]["pool"]["name"], device["name"])
        for one in slices
        for device in one["spec"].get("devices", ())
        if (one["spec"]["pool"]["name"], device["name"]) not in taken
    ]
    random.Random(seed).shuffle(free)
    for claim in waiting:
        yield claim, allocation_of(claim, free)


def allocation_of(claim: Object, free: list[tuple[str, str, str]]) -> Object:
    """One device for a claim, taken off `free`; a pool has the name of its node."""
    if not free:
        raise LookupError(f"no device is left for the claim {claim['metadata']['name']}")
    driver, pool, device = free.pop()
    request = claim["spec"]["devices"]["requests"][0]["name"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pool]}]}
    return {
        "devices": {"results": [{"request": request, "driver": driver, "pool": pool, "device": device}]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
