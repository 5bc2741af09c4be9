"""Requests and limits of containers that an API server would not store.

Rule: validateResourceRequirements and validateContainerResourceName in pkg/apis/core/validation/validation.go at
v1.36.3.
"""

from collections.abc import Iterator
from typing import Final

from scheduler.api.objects import ResourceRequirements
from scheduler.api.quantities.quantity import NANO, parse_quantity
from scheduler.framework.field_errors import forbidden, invalid, required

HUGE_PAGES: Final = "hugepages-"
_COMPUTE: Final = frozenset(("cpu", "memory"))
_STANDARD: Final = _COMPUTE | {"ephemeral-storage"}
_NATIVE: Final = "kubernetes.io/"


def resource_problems(path: str, resources: ResourceRequirements) -> Iterator[tuple[str, str]]:
    """Yield path and message for names and amounts that can be read but not be stored."""
    requests, limits = resources.requests or {}, resources.limits or {}
    own = {name: text for name, text in requests.items() if limits.get(name) != text}
    for key, amounts in (("limits", limits), ("requests", own)):
        for name, text in amounts.items():
            yield from ((f"{path}.{key}[{name}]", problem) for problem in _problems_of(name, text))
    for name, text in requests.items():
        if name not in limits:
            if not _may_exceed(name):
                yield f"{path}.limits", required(f"a limit must be set for {name}, which cannot be overcommitted")
            continue
        request, limit = parse_quantity(text), parse_quantity(limits[name])
        if request != limit and not _may_exceed(name):
            yield f"{path}.requests", invalid(text, f"must be equal to {name} limit of {limits[name]}")
        elif request > limit:
            yield f"{path}.requests", invalid(text, f"must be less than or equal to {name} limit of {limits[name]}")
    names = {*requests, *limits}
    if any(map(_is_huge, names)) and not names & _COMPUTE:
        yield path, forbidden("HugePages require cpu or memory")


def _problems_of(name: str, text: str | int | float) -> Iterator[str]:
    if "/" not in name:
        if name not in _STANDARD and not _is_huge(name):
            yield invalid(name, "must be a standard resource for containers, or fully qualified: example.com/gpu")
        elif _is_huge(name) and not _is_multiple(text, name.removeprefix(HUGE_PAGES)):
            yield invalid(text, f"must be a multiple of {name.removeprefix(HUGE_PAGES)}")
    elif _NATIVE not in name and parse_quantity(text) % NANO:
        yield invalid(text, "must be an integer")


def _may_exceed(name: str) -> bool:
    """Return whether the limits of all pods together may exceed what a node has."""
    return not _is_huge(name) and ("/" not in name or _NATIVE in name)


def _is_huge(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def _is_multiple(text: str | int | float, size: str) -> bool:
    try:
        page = parse_quantity(size)
    except ValueError:
        return False
    return page > 0 and parse_quantity(text) % page == 0
