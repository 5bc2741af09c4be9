"""Make a failing case small: take away whatever it does not need to fail."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]
Failing = Callable[[Sequence[Json]], Iterable[bool]]
"""Says of several candidates which still fail; it may be lazy, for the first that does is taken."""

NEEDED = frozenset(
    {
        "apiVersion",
        "kind",
        "name",
        "namespace",
        "uid",
        "metadata",
        "spec",
        "status",
        "containers",
        "objects",
        "startTime",
    }
)
"""Without these an object is no object; whether it fails without them would teach nothing."""


def minimise(case: Json, failing: Failing, together: int = 64) -> Json:
    """The smallest case that greedy removal finds and that still fails.

    Candidates are judged many at a time, since the oracle takes nearly as long for one.
    """
    case = minimise_runs(case, len(case["objects"]), without_objects, failing, together)
    while smaller := first_failing(without_a_field(case), failing, together):
        case = smaller
    return case


def minimise_runs(
    case: Json, length: int, without: Callable[[Json, int], Iterator[Json]], failing: Failing, together: int = 64
) -> Json:
    """Take runs away, first long ones, then one by one. `without` yields the case without each run of a length."""
    size = max(1, length // 2)
    while True:
        smaller = first_failing(without(case, size), failing, together)
        if smaller:
            case = smaller
        elif size == 1:
            return case
        else:
            size //= 2


def first_failing(candidates: Iterator[Json], failing: Failing, together: int) -> Json | None:
    """The first candidate that still fails."""
    while batch := [candidate for _, candidate in zip(range(together), candidates, strict=False)]:
        for candidate, fails in zip(batch, failing(batch), strict=True):
            if fails:
                return candidate
    return None


def without_objects(case: Json, size: int) -> Iterator[Json]:
    """The case without each run of `size` objects."""
    objects = case["objects"]
    for start in range(0, len(objects), size):
        yield case | {"objects": objects[:start] + objects[start + size :]}


def without_a_field(case: Json) -> Iterator[Json]:
    """The case without each field or list item, the outermost first."""
    for path in sorted(paths(case), key=len):
        smaller = copy.deepcopy(case)
        parent: Any = smaller
        for step in path[:-1]:
            parent = parent[step]
        del parent[path[-1]]
        yield smaller


def paths(value: object, prefix: Path = ()) -> Iterator[Path]:
    """The way to everything that may be removed."""
    items: Sequence[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        if key not in NEEDED and not (prefix and prefix[-1] == "objects"):
            yield (*prefix, key)
        yield from paths(inner, (*prefix, key))
