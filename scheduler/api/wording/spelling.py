"""Amounts of resources as people write them."""

from typing import Final

from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY

_BYTES: Final = frozenset((MEMORY, EPHEMERAL_STORAGE))
_SIZES: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_KUEUE: Final = "kueue.x-k8s.io/"
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def spelled(resource: str, value: int) -> str:
    """Say an amount in the units of `Pod.requests`: 400 of cpu is 0.4, 1610612736 of memory is 1.5Gi."""
    if resource == CPU:
        return f"{value / 1000:.3f}".rstrip("0").rstrip(".")
    if resource in _BYTES or resource.startswith("hugepages-"):
        size, unit = float(value), 0
        while abs(size) >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        return f"{size:.2f}".rstrip("0").rstrip(".") + _UNITS[unit]
    return str(value)


def spelled_for(source: str, resource: str, amount: int) -> str:
    """Say an amount of a share's resource: in Kueue's quotas the flavor stands before it."""
    return spelled(resource.partition("/")[2] if source.startswith(_KUEUE) else resource, amount)


def shortage(resource: str, least: int, most: int, wanted: int) -> str:
    """Say how much is missing on one node or on several: `0.4 to 3 cpu short of 2`."""
    return f"{spelled_range(resource, least, most)} {resource} short of {spelled(resource, wanted)}"


def spelled_range(resource: str, least: int, most: int) -> str:
    """Say two amounts that may be the same: `0.4 to 3`."""
    return spelled(resource, least) if least == most else f"{spelled(resource, least)} to {spelled(resource, most)}"


def quantity(resource: str, value: int) -> str:
    """Return an amount as a quantity of Kubernetes, exactly."""
    if resource == CPU:
        return f"{value}m" if value % 1000 else str(value // 1000)
    if resource in _BYTES:
        for unit, size in _SIZES:
            if value and not value % size:
                return f"{value // size}{unit}"
    return str(value)
